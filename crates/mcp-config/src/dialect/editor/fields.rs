//! Lowers the single fields of an entry, in all their spellings.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{ConfigValue, Exposure, ExposureFilter, Limits, NameClass, NamePolicy, TemplatePart};

use crate::de::{Field, Location, NullableField, OrderedMap, ReadContext};
use crate::diagnostic::{CheckError, Code, FixIntent, quoted, quoted_key};
use crate::dialect::editor::conventions::{EnvValues, Program, VariableSyntax};
use crate::dialect::editor::entry_fields::{Durations, ToolLists};
use crate::dialect::editor::keys::{self, EntryKey};
use crate::dialect::editor::server_maps::declared_inputs;
use crate::dialect::editor::wire::{Environment, Headers, NamedValue, Scalar, Tools, VariableItem};
use crate::dialect::program_text::check_argument_line;
use crate::dialect::{checks, lowering};
use crate::syntax::template::ReferenceRule;
use crate::syntax::{Node, template};

/// The inputs that a file declares: their ids and defaults.
pub(super) struct DeclaredInputs {
    ids: BTreeSet<String>,
    pub(super) defaults: Arc<BTreeMap<String, String>>,
}

impl DeclaredInputs {
    /// Reads `inputs` next to the servers.
    pub(super) fn of(root: &Node) -> DeclaredInputs {
        let (mut ids, mut defaults) = (BTreeSet::new(), BTreeMap::new());
        for item in declared_inputs(root) {
            let Some(id) = item.text_of("id") else { continue };
            ids.insert(id.to_owned());
            if let Some(default) = item.text_of("default") {
                defaults.insert(id.to_owned(), default.to_owned());
            }
        }
        DeclaredInputs { ids, defaults: Arc::new(defaults) }
    }
}

/// Converts texts to values and warns about references that are not replaced.
pub(super) struct ValueReader<'a> {
    pub(super) context: &'a ReadContext,
    pub(super) inputs: &'a DeclaredInputs,
    pub(super) rule: ReferenceRule,
    pub(super) program: &'static Program,
}

impl ValueReader<'_> {
    /// A text as a value; checked now if it has no references.
    pub(super) fn value(
        &self,
        text: String,
        at: &Location,
        check: fn(&str) -> Result<(), CheckError>,
    ) -> ConfigValue {
        self.check_references(&text, at);
        let res = template::parse_value(text, self.rule);
        if let ConfigValue::Literal(text) = &res {
            self.context.report_check(at, check(text.expose()));
        }
        res
    }

    /// Warns about undeclared inputs and unknown references.
    pub(super) fn check_references(&self, text: &str, at: &Location) {
        if !template::may_have_reference(text) {
            return;
        }
        let pieces = template::split(text, self.rule);
        if self.program.variables == VariableSyntax::Unsupported
            && pieces.iter().any(|it| !matches!(it, TemplatePart::Text(_)))
        {
            let name = self.program.name;
            let message = format!("{name} replaces no variables: the server gets `${{…}}` as text");
            self.context.warning(Code::UnknownReference, at, message, "write the value itself");
            return;
        }
        for piece in &pieces {
            let TemplatePart::Input(id) = piece else { continue };
            if self.inputs.ids.contains(id) {
                continue;
            }
            let message = format!("no input '{}' is declared", quoted(id));
            let help = match self.context.closest(id, self.inputs.ids.iter().map(String::as_str).take(100)) {
                Some(near) => format!("did you mean `{}`?", quoted(near)),
                None => {
                    format!("add it to `inputs`, or set {} before the start", template::input_variable(id))
                }
            };
            self.context.warning(Code::MissingInput, at, message, help);
            // One warning per value is enough.
            break;
        }
        lowering::warn_literal_piece(&pieces, at, self.rule, self.context);
    }

    /// Like [`ValueReader::value`], for fields in which some programs replace `$NAME`. In files of other
    /// programs `$NAME` is not replaced, and a warning says so.
    pub(super) fn value_with_shell_check(
        &self,
        text: String,
        at: &Location,
        check: fn(&str) -> Result<(), CheckError>,
    ) -> ConfigValue {
        if self.rule == ReferenceRule::Editor && is_shell_variable(&text) {
            let programs = Program::names_with_shell_variables().join(", ");
            let message = format!("`$NAME` is not replaced: only files of {programs} have it");
            let help = "write `${NAME}` if a variable is meant";
            self.context.warning(Code::UnknownReference, at, message, help);
        }
        self.value(text, at, check)
    }

    /// A reader for fields in which no program replaces `$NAME`.
    pub(super) fn without_shell_syntax(&self) -> ValueReader<'_> {
        let rule = match self.rule {
            ReferenceRule::EditorAndShell => ReferenceRule::Editor,
            rule => rule,
        };
        ValueReader { rule, ..*self }
    }
}

/// A text of the model, such as a working directory, in which references have the form `${…}`.
pub(super) fn editor_text(text: &str, rule: ReferenceRule) -> String {
    if rule != ReferenceRule::Opencode {
        return text.to_owned();
    }
    let piece = |piece: &TemplatePart| match piece {
        TemplatePart::Text(text) => text.expose().to_owned(),
        TemplatePart::Variable(name) => format!("${{{name}}}"),
        TemplatePart::File(path) => format!("${{file:{path}}}"),
        TemplatePart::VariableOr { .. } | TemplatePart::Input(_) => String::new(),
    };
    template::split(text, rule).iter().map(piece).collect()
}

/// Returns whether the text, or its last word, is exactly `$NAME`. A password may contain a `$` anywhere.
fn is_shell_variable(text: &str) -> bool {
    let last = text.rsplit(' ').next().unwrap_or_default();
    let Some(name) = last.strip_prefix('$') else { return false };
    let upper = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
    name.len() > 2 && name.starts_with(|it: char| it.is_ascii_uppercase()) && name.bytes().all(upper)
}

/// A list of texts as arguments.
pub(super) fn texts(list: Vec<Field<String>>, values: &ValueReader<'_>) -> Vec<ConfigValue> {
    let values = values.without_shell_syntax();
    let value = |it: Field<String>| {
        let at = it.at;
        it.take().map(|text| {
            check_argument_line(&text, &at, values.context);
            values.value(text, &at, checks::check_argument)
        })
    };
    list.into_iter().filter_map(value).collect()
}

/// The variables of an entry: `env`, `environment`, or those of a command mapping.
pub(super) fn environment(
    places: Vec<NullableField<Environment>>,
    values: &ValueReader<'_>,
) -> Vec<(String, ConfigValue)> {
    let context = values.context;
    let mut given = places.into_iter().filter(NullableField::is_given);
    let Some(first) = given.next() else { return Vec::new() };
    for other in given {
        let message = "the environment is given twice; only one is allowed";
        context.report(context.exclusive_keys_diagnostic(&other.at, &first.at, message));
    }
    let at = first.at;
    match first.take() {
        None => Vec::new(),
        Some(Environment::Mapping(entries)) => {
            let mut entries = entries;
            entries.0.retain(|(_, slot)| {
                let is_null = matches!(slot.value(), Some(Scalar::Null(_)));
                if is_null {
                    warn_if_not_text("null", &slot.at, values);
                }
                !is_null
            });
            lowering::environment(Some(entries), &at, context, |scalar, at| variable(scalar, at, values))
        }
        Some(Environment::List(items)) => items.into_iter().filter_map(|it| list_item(it, values)).collect(),
    }
}

fn variable(scalar: Scalar, at: &Location, values: &ValueReader<'_>) -> ConfigValue {
    let text = match scalar {
        Scalar::Text(text) => text,
        Scalar::Number(number) => {
            warn_if_not_text("a number", at, values);
            number.to_string()
        }
        Scalar::Boolean(value) => {
            warn_if_not_text("a boolean", at, values);
            value.to_string()
        }
        Scalar::Null(_) => String::new(),
    };
    values.value_with_shell_check(text, at, checks::check_env_value)
}

/// Warns about the value of a variable that is not text. It is read as its text here, and null as no variable, but most
/// programs refuse the server. VS Code accepts numbers and null.
fn warn_if_not_text(found: &str, at: &Location, values: &ValueReader<'_>) {
    if values.program.env_values == EnvValues::NumbersAndNull && found != "a boolean" {
        return;
    }
    let context = values.context;
    let name = quoted_key("env", &crate::syntax::last(&at.pointer(context)));
    let message = format!("the variable '{name}' is {found}, not text; most programs refuse that");
    let (help, fix) = match found {
        "null" => ("write `\"\"` for an empty variable, or remove it", None),
        _ => ("put the value into quotes", Some(FixIntent::Quote)),
    };
    let diagnostic = context.new_diagnostic(Code::WrongType, at, message);
    context.report(diagnostic.warning().help(help).fix(fix));
}

/// Warns about a list where the programs of these files read a mapping.
pub(super) fn warn_about_list(at: &Location, context: &ReadContext) {
    let key = crate::syntax::last(&at.pointer(context));
    if !keys::find(&key).is_some_and(EntryKey::is_common) {
        return;
    }
    let message = format!("'{key}' is a list; the programs that have such files read a mapping");
    let help = format!("write `\"{key}\": {{\"NAME\": \"value\"}}`");
    context.warning(Code::WrongType, &at.at_key(), message, help);
}

fn list_item(item: Field<VariableItem>, values: &ValueReader<'_>) -> Option<(String, ConfigValue)> {
    let at = item.at;
    let (name, text, at) = match item.take()? {
        VariableItem::NamedValue(NamedValue { name, value }) => {
            (name.take()?, value.value()?.clone(), value.at)
        }
        // A name without value passes the host's variable of that name.
        VariableItem::Line(line) => match line.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned(), at),
            None => (line.clone(), format!("${{{line}}}"), at),
        },
    };
    if !values.context.report_check(&at, checks::check_env_name(&name)) {
        return None;
    }
    let value = values.value_with_shell_check(text, &at, checks::check_env_value);
    Some((name, value))
}

/// The headers of an entry.
pub(super) fn headers(
    headers: NullableField<Headers>,
    values: &ValueReader<'_>,
) -> Vec<(String, ConfigValue)> {
    let context = values.context;
    let value =
        |text: String, at: &Location| values.value_with_shell_check(text, at, checks::check_header_value);
    match headers.take() {
        None => Vec::new(),
        Some(Headers::Mapping(entries)) => {
            for (name, slot) in &entries.0 {
                lowering::report_owned_header(name, &slot.at.at_key(), context);
            }
            lowering::headers(Some(entries), context, value)
        }
        Some(Headers::List(items)) => {
            let mut res = Vec::new();
            for pair in items.into_iter().filter_map(Field::take) {
                let NamedValue { name, value: text } = pair;
                let Some(name_text) = name.value() else { continue };
                if context.report_check(&name.at, checks::check_header_name(name_text)) {
                    lowering::report_owned_header(name_text, &name.at, context);
                }
                let at = text.at;
                if let (Some(name), Some(text)) = (name.take(), text.take()) {
                    res.push((name, value(text, &at)));
                }
            }
            res
        }
    }
}

/// Adds variables of the environment without which the server does not start. Goose asks for them.
pub(super) fn add_required_variables(
    names: NullableField<Vec<Field<String>>>,
    env: &mut Vec<(String, ConfigValue)>,
    context: &ReadContext,
) {
    for slot in names.take().unwrap_or_default() {
        let at = slot.at;
        let value = slot.take().and_then(|name| Some((variable_value(&name, "", &at, context)?, name)));
        if let Some((value, name)) = value
            && !env.iter().any(|it| it.0 == name)
        {
            env.push((name, value));
        }
    }
}

/// The headers that name a variable, as in Codex's file.
pub(super) fn variable_headers(
    headers: NullableField<OrderedMap<String>>,
    bearer: &NullableField<String>,
    context: &ReadContext,
) -> Vec<(String, ConfigValue)> {
    let mut res = Vec::new();
    if let Some(name) = bearer.value()
        && let Some(value) = variable_value(name, "Bearer ", &bearer.at, context)
    {
        res.push(("Authorization".to_owned(), value));
    }
    for (header, slot) in headers.take().into_iter().flat_map(|it| it.0) {
        let at = slot.at;
        if !context.report_check(&at.at_key(), checks::check_header_name(&header)) {
            continue;
        }
        let value = slot.take().and_then(|name| variable_value(&name, "", &at, context));
        res.extend(value.map(|it| (header, it)));
    }
    res
}

/// The value of a variable of the environment, after a prefix.
fn variable_value(name: &str, prefix: &str, at: &Location, context: &ReadContext) -> Option<ConfigValue> {
    let is_name = context.report_check(at, checks::check_env_name(name));
    is_name.then(|| template::parse_value(format!("{prefix}${{{name}}}"), ReferenceRule::Editor))
}

/// The limits of an entry. Each key has its own unit (DIA-07).
pub(super) fn limits(durations: &Durations, context: &ReadContext) -> Limits {
    const MILLISECONDS: f64 = 1000.0;
    let Durations {
        timeout,
        request_milliseconds,
        request_seconds,
        connect_milliseconds,
        start_seconds,
        start_milliseconds,
    } = durations;
    let mut limits = Limits::default();
    limits.request = duration(request_milliseconds, MILLISECONDS, context)
        .or(duration(request_seconds, 1.0, context))
        .or(timeout_value(timeout, context))
        .unwrap_or(limits.request);
    limits.connect = duration(connect_milliseconds, MILLISECONDS, context).unwrap_or(limits.connect);
    limits.startup = duration(start_seconds, 1.0, context)
        .or(duration(start_milliseconds, MILLISECONDS, context))
        .unwrap_or(limits.startup);
    limits
}

/// `timeout` is in seconds for some programs (Cline: 60) and in milliseconds for others (Gemini CLI: 30000). Values
/// from 1000 on are milliseconds; those that could also be seconds get a warning.
fn timeout_value(slot: &NullableField<f64>, context: &ReadContext) -> Option<Duration> {
    let value = *slot.value()?;
    if value < 1000.0 {
        return duration(slot, 1.0, context);
    }
    if value <= 3600.0 {
        let message = format!("'timeout' is read as {value} milliseconds");
        let help =
            "some programs read it as seconds; write `requestTimeout`, which is always in milliseconds";
        context.warning(Code::SuspiciousUnit, &slot.at, message, help);
    }
    duration(slot, 1000.0, context)
}

fn duration(slot: &NullableField<f64>, unit: f64, context: &ReadContext) -> Option<Duration> {
    let value = *slot.value()?;
    let res = checks::duration_from_secs(value / unit);
    if res.is_none() {
        let key = crate::syntax::last(&slot.at.pointer(context));
        let message = format!("'{key}' must be a finite number greater than zero");
        let help = if unit > 1.0 { "write milliseconds, such as 30000" } else { "write seconds, such as 30" };
        context.error(Code::OutOfRange, &slot.at, message, help);
    }
    res
}

/// Lowers the tool lists: an excluded tool is hidden even if another list includes it.
///
/// In the model a whitelist overrides the blacklist, so excluded names are removed from the whitelist here.
pub(super) fn exposure(shown: ToolLists) -> Exposure {
    let names = |lists: &mut dyn Iterator<Item = Vec<Field<String>>>| -> Vec<String> {
        lists.flatten().filter_map(Field::take).filter(|it| !it.trim().is_empty()).collect()
    };
    let ToolLists { included, available, tools, excluded } = shown;
    let available = available.take().filter(|it| !it.is_empty());
    let listed = match tools.take() {
        Some(Tools::List(list)) => Some(list),
        Some(Tools::Mapping(_)) | None => None,
    };
    let included: Vec<_> =
        included.into_iter().filter_map(NullableField::take).chain(listed).chain(available).collect();
    let given = !included.is_empty();
    let included = names(&mut included.into_iter());
    let restricted = given && !included.iter().any(|it| it == "*");
    let excluded = names(&mut excluded.into_iter().filter_map(NullableField::take));
    let mut res = Exposure::all(NamePolicy::Qualify { class: NameClass::Strict });
    res.tools.filter = match restricted {
        false => ExposureFilter { whitelist: Vec::new(), blacklist: excluded },
        true => {
            let excluded: HashSet<String> = excluded.into_iter().collect();
            let whitelist: Vec<_> = included.into_iter().filter(|it| !excluded.contains(it)).collect();
            // An empty whitelist would restrict nothing.
            let blacklist = if whitelist.is_empty() { vec!["*".to_owned()] } else { Vec::new() };
            ExposureFilter { whitelist, blacklist }
        }
    };
    res
}
