//! Answers the questions that a server asks its user during a call, at the terminal.
//!
//! A form is asked field by field, and its values are shown before they are sent. A page is opened only after its
//! whole address was shown. Without a terminal, the handshake says that there are no answers.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{RawJson, RpcError, code};
use mcp_host_registry::ValidatorCache;
use mcp_host_runtime::HostOptions;
use mcp_host_transport::{
    Caller, CallerId, ElicitMode, ElicitParams, ElicitRequest, ElicitResult, Elicitation, Handlers,
    async_trait,
};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::call_arguments::pairs::{Pair, pairs_to_object};
use crate::call_arguments::schema::is_required;
use crate::config::context::Context;
use crate::host::{APPS_CAPABILITY, client_capabilities};
use crate::output::console::{Console, Report};
use crate::output::progress::ProgressDisplay;
use crate::output::question::is_interactive;
use crate::output::sanitize;
use crate::runtime::browser::open_browser;
use crate::runtime::{run_blocking, system};

/// The capabilities of a client whose user answers.
const ELICITATION_CAPABILITY: &str = r#""elicitation":{"form":{},"url":{}}"#;

/// The maximum number of fields of a form.
const MAX_FIELDS: usize = 50;

/// The maximum number of characters of a text from the server.
const MAX_TEXT_CHARS: usize = 2000;

/// How often a field is asked until a value is valid.
const MAX_ATTEMPTS: usize = 5;

/// How long a call waits for its user, in total.
const MAX_PAUSE: Duration = Duration::from_secs(30 * 60);

/// The caller of a command with a user, who answers the questions of servers. `None` without a terminal. The
/// handshakes say that questions are answered.
pub(super) fn terminal_caller(
    context: &Context,
    progress: &ProgressDisplay,
    options: &mut HostOptions,
) -> Option<Arc<Caller>> {
    if !is_interactive() {
        return None;
    }
    let capabilities = client_capabilities(&format!("{ELICITATION_CAPABILITY},{APPS_CAPABILITY}"));
    options.server_requests.declared_capabilities = capabilities.clone();
    let mut handlers = Handlers::default();
    handlers.elicitation = Some(Arc::new(TerminalForm {
        console: context.console,
        progress: progress.clone(),
        turn: Mutex::default(),
    }));
    let mut caller = Caller::new(CallerId::unique(), handlers);
    caller.capabilities = capabilities;
    caller.max_deadline_pause = MAX_PAUSE;
    Some(Arc::new(caller))
}

/// Asks at the terminal, one question after the other.
struct TerminalForm {
    console: Console,
    progress: ProgressDisplay,
    turn: Mutex<()>,
}

#[async_trait]
impl Elicitation for TerminalForm {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form, ElicitMode::Url]
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        let _turn = self.turn.lock().await;
        self.progress.clear();
        let message = shorten(&sanitize::block(&request.message));
        self.print(format!("The server asks:\n  {}\n", message.trim_end().replace('\n', "\n  "))).await;
        let answered = match &request.params {
            ElicitParams::Form { schema } => self.fill_form(schema).await,
            ElicitParams::Url { url, .. } => self.open_page(url).await,
            _ => Ok(ElicitResult::Decline),
        };
        self.progress.resume();
        answered.map_err(|error| {
            RpcError::new(code::INTERNAL_ERROR, format!("the terminal of the user cannot be read: {error}"))
        })
    }
}

impl TerminalForm {
    /// Asks for each field, shows the values, and asks whether they are sent.
    async fn fill_form(&self, schema: &RawJson) -> io::Result<ElicitResult> {
        let Some(fields) = read_fields(schema) else {
            self.print("Its form cannot be shown, so it is declined.\n".to_owned()).await;
            return Ok(ElicitResult::Decline);
        };
        let mut pairs = Vec::new();
        for field in &fields {
            match self.fill_field(field).await? {
                FieldAnswer::Values(values) => pairs.extend(values),
                FieldAnswer::Declined => return Ok(ElicitResult::Decline),
            }
        }
        let Ok(values) = pairs_to_object(&pairs, Some(schema)) else { return Ok(ElicitResult::Decline) };
        self.print(format!("These values are sent: {}\n", sanitize::line(values.as_str()))).await;
        match self.ask("Send them? [y] yes, [N] no: ").await?.as_str() {
            "y" | "yes" => Ok(ElicitResult::Accept(Some(values))),
            _ => Ok(ElicitResult::Decline),
        }
    }

    /// Asks for a field until its value is valid.
    async fn fill_field(&self, field: &Field) -> io::Result<FieldAnswer> {
        self.print(field.description()).await;
        for _ in 0..MAX_ATTEMPTS {
            let line = self.ask_as_typed(&format!("  {}: ", field.label())).await?;
            match field.parse(line.trim()) {
                Ok(answer) => return Ok(answer),
                Err(message) => self.print(format!("  {}\n", sanitize::line(&message))).await,
            }
        }
        Ok(FieldAnswer::Declined)
    }

    /// Shows the whole address of a page, and opens it if the user wants so.
    async fn open_page(&self, url: &str) -> io::Result<ElicitResult> {
        let Some(page) = url::Url::parse(url).ok().filter(|page| ["http", "https"].contains(&page.scheme()))
        else {
            self.print("Its page has no address that a browser opens, so it is declined.\n".to_owned()).await;
            return Ok(ElicitResult::Decline);
        };
        let host = page.host_str().unwrap_or_default();
        self.print(format!(
            "It wants you to open a page of {}:\n  {}\n",
            sanitize::line(host),
            sanitize::line(page.as_str())
        ))
        .await;
        match self.ask("Open it? [y] yes, [N] no: ").await?.as_str() {
            "y" | "yes" => {
                if system::has_display() {
                    open_browser(page.as_str());
                } else {
                    self.print(
                        "There is no screen for a browser: open the page on another machine.\n".to_owned(),
                    )
                    .await;
                }
                Ok(ElicitResult::Accept(None))
            }
            _ => Ok(ElicitResult::Decline),
        }
    }

    async fn print(&self, text: String) {
        let console = self.console;
        run_blocking(move || console.print(&Report::err(text))).await;
    }

    /// The next line of the terminal, in small letters.
    async fn ask(&self, question: &str) -> io::Result<String> {
        Ok(self.ask_as_typed(question).await?.trim().to_lowercase())
    }

    async fn ask_as_typed(&self, question: &str) -> io::Result<String> {
        self.print(question.to_owned()).await;
        system::read_terminal_line().await
    }
}

/// A field of a form.
struct Field {
    name: String,
    schema: Value,
    is_required: bool,
}

/// What the user entered for a field.
#[derive(Debug, PartialEq)]
enum FieldAnswer {
    /// The values: none if an optional field stays empty, several of a list.
    Values(Vec<Pair>),
    /// No value, although one is required.
    Declined,
}

/// The fields of a form, in their order. `None` if it has too many, or is no object.
fn read_fields(schema: &RawJson) -> Option<Vec<Field>> {
    let root: Value = schema.read().ok()?;
    let members = schema.members()?;
    let (_, properties) = members.into_iter().find(|(name, _)| name == "properties")?;
    let fields = properties.members()?;
    if fields.len() > MAX_FIELDS {
        return None;
    }
    let field = |(name, schema): (Cow<'_, str>, RawJson)| {
        Some(Field {
            is_required: is_required(&root, &name),
            name: name.into_owned(),
            schema: schema.read().ok()?,
        })
    };
    fields.into_iter().map(field).collect()
}

impl Field {
    /// The name with what may be entered.
    fn label(&self) -> String {
        let text = |key: &str| self.schema.get(key).and_then(Value::as_str);
        let kind = match (self.choices().is_empty(), self.is_list(), text("type")) {
            (false, true, _) => "values, separated by commas".to_owned(),
            (false, false, _) => "one of the values".to_owned(),
            (true, _, Some("boolean")) => "true or false".to_owned(),
            (true, _, kind) => text("format").or(kind).unwrap_or("text").to_owned(),
        };
        let end = match (self.default(), self.is_required) {
            (Some(default), _) => format!("; Enter: {default}"),
            (None, true) => "; required, Enter declines".to_owned(),
            (None, false) => "; Enter leaves it out".to_owned(),
        };
        shorten(&sanitize::line(&format!("{} ({kind}{end})", self.name)))
    }

    /// The title, the description and the values to choose from, in lines.
    fn description(&self) -> String {
        let text = |key: &str| self.schema.get(key).and_then(Value::as_str).map(sanitize::line);
        let about: Vec<String> = [text("title"), text("description")].into_iter().flatten().collect();
        let mut lines =
            if about.is_empty() { String::new() } else { format!("  {}\n", shorten(&about.join(": "))) };
        for (value, title) in self.choices() {
            let title = title.map(|title| format!("  {title}")).unwrap_or_default();
            lines.push_str(&format!("    {}\n", shorten(&sanitize::line(&format!("{value}{title}")))));
        }
        lines
    }

    fn is_list(&self) -> bool {
        self.schema.get("type").and_then(Value::as_str) == Some("array")
    }

    /// The values to choose from, with their titles.
    fn choices(&self) -> Vec<(&str, Option<&str>)> {
        let schema = self.schema.get("items").filter(|_| self.is_list()).unwrap_or(&self.schema);
        let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        let names = schema.get("enumNames").and_then(Value::as_array);
        let plain = list("enum").enumerate().filter_map(|(index, value)| {
            Some((value.as_str()?, names.and_then(|names| names.get(index)).and_then(Value::as_str)))
        });
        let titled = list("oneOf").chain(list("anyOf")).filter_map(|choice| {
            Some((choice.get("const")?.as_str()?, choice.get("title").and_then(Value::as_str)))
        });
        plain.chain(titled).collect()
    }

    /// The value of an empty line, as it would be typed.
    fn default(&self) -> Option<String> {
        match self.schema.get("default")? {
            Value::String(text) => Some(text.clone()),
            Value::Array(items) => {
                Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
            }
            other => Some(other.to_string()),
        }
    }

    /// Parses a line, and validates the value by the schema. The error is a message for the user.
    fn parse(&self, line: &str) -> Result<FieldAnswer, String> {
        let line = match (line, self.default(), self.is_required) {
            ("", Some(default), _) => default,
            ("", None, true) => return Ok(FieldAnswer::Declined),
            ("", None, false) => return Ok(FieldAnswer::Values(Vec::new())),
            (line, _, _) => line.to_owned(),
        };
        let values: Vec<&str> =
            if self.is_list() { line.split(',').map(str::trim).collect() } else { vec![line.as_str()] };
        let pairs: Vec<Pair> = values.into_iter().map(|value| Pair::text(&self.name, value)).collect();
        let schema = serde_json::json!({"type": "object", "properties": {self.name.as_str(): self.schema}});
        let schema = RawJson::from_value(&schema).map_err(|error| error.to_string())?;
        let object = pairs_to_object(&pairs, Some(&schema)).map_err(|error| error.message)?;
        ValidatorCache::new().check_arguments(&schema, &object).map_err(|error| error.to_string())?;
        Ok(FieldAnswer::Values(pairs))
    }
}

/// The beginning of a text of the server.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}
