//! Lowers the fields of an entry that have several keys or forms.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{
    ConfigValue, Exposure, ExposureFilter, Limits, NameClass, NamePolicy, Severity, StartLimit, TemplatePart,
};

use crate::de::{Field, Location, NullableField, OrderedMap, ReadContext};
use crate::diagnostic::{CheckError, Code, FixIntent, quoted, quoted_key};
use crate::dialect::editor::conventions::{EnvValues, Program, ShellVariables, TimeoutUnit, VariableSyntax};
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
    /// Reads the `inputs` of a file.
    pub(super) fn read(root: &Node) -> DeclaredInputs {
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

/// Converts the texts of an entry to values. Warns about references that are not replaced.
pub(super) struct ValueReader<'a> {
    pub(super) context: &'a ReadContext,
    pub(super) inputs: &'a DeclaredInputs,
    pub(super) rule: ReferenceRule,
    pub(super) program: &'static Program,
}

impl ValueReader<'_> {
    /// Converts a text to a value. `check` runs now if the text has no references, else when they are replaced.
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
        self.warn_about_foreign_reference(text, at);
        if !template::may_have_reference(text) {
            return;
        }
        let parts = template::split_references(text, self.rule);
        if self.program.variables == VariableSyntax::Unsupported
            && parts.iter().any(|it| !matches!(it, TemplatePart::Text(_)))
        {
            let name = self.program.name;
            let message = format!("{name} replaces no variables: only mcp-host replaces `${{…}}`");
            self.context.warning(Code::UnknownReference, at, message, "write the value itself");
            return;
        }
        for part in &parts {
            let TemplatePart::Input(id) = part else { continue };
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
        lowering::warn_literal_parts(&parts, at, self.rule, self.context);
    }

    /// Like [`ValueReader::value`], for fields in which some programs replace `$NAME`. Warns about it in files of other
    /// programs.
    pub(super) fn value_with_shell_check(
        &self,
        text: String,
        at: &Location,
        check: fn(&str) -> Result<(), CheckError>,
    ) -> ConfigValue {
        self.report_shell_variable(&text, at);
        self.value(text, at, check)
    }

    /// A reader for fields in which only Gemini CLI replaces `$NAME`.
    pub(super) fn without_shell_syntax(&self) -> ValueReader<'_> {
        let rule = match self.rule {
            ReferenceRule::EditorAndShell => ReferenceRule::Editor,
            rule => rule,
        };
        ValueReader { rule, ..*self }
    }
}

/// Rewrites a text, such as a working directory, to the form of the model, in which references are `${…}`.
pub(super) fn normalize_references(text: &str, rule: ReferenceRule) -> String {
    let is_other_form = match rule {
        ReferenceRule::Braces | ReferenceRule::EditorAndOptionalShell => true,
        ReferenceRule::Literal
        | ReferenceRule::Secrets
        | ReferenceRule::Expand
        | ReferenceRule::ExpandWithFolder
        | ReferenceRule::Editor
        | ReferenceRule::EditorAndShell => false,
    };
    if !is_other_form {
        return text.to_owned();
    }
    let part = |part: &TemplatePart| match part {
        TemplatePart::Text(text) => text.expose().to_owned(),
        TemplatePart::Variable(name) => format!("${{{name}}}"),
        TemplatePart::OptionalVariable(name) => format!("${{{name}:-${name}}}"),
        TemplatePart::VariableOr { name, default } => format!("${{{name}:-{}}}", default.expose()),
        TemplatePart::Input(id) => format!("${{input:{id}}}"),
        TemplatePart::File(path) => format!("${{file:{path}}}"),
        TemplatePart::Secret(name) => format!("${{secret:{name}}}"),
    };
    template::split_references(text, rule).iter().map(part).collect()
}

/// Lowers the arguments of a program.
pub(super) fn lower_args(list: Vec<Field<String>>, values: &ValueReader<'_>) -> Vec<ConfigValue> {
    let values = values.without_shell_syntax();
    let value = |it: Field<String>| {
        let at = it.at;
        it.into_value().map(|text| {
            check_argument_line(&text, &at, values.context);
            let text = values.rewrite_start_text(text, &at, Severity::Info);
            values.value(text, &at, checks::check_argument)
        })
    };
    list.into_iter().filter_map(value).collect()
}

/// Lowers the variables of an entry. `places` are `env`, `environment`, and the `env` of a command mapping; only one
/// may be given.
pub(super) fn lower_environment(
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
    match first.into_value() {
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
            lowering::lower_environment(Some(entries), &at, context, |scalar, at| {
                lower_variable(scalar, at, values)
            })
        }
        Some(Environment::List(items)) => {
            items.into_iter().filter_map(|it| lower_list_item(it, values)).collect()
        }
    }
}

/// Lowers the value of a variable.
fn lower_variable(scalar: Scalar, at: &Location, values: &ValueReader<'_>) -> ConfigValue {
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

/// Warns about the value of a variable that is not text. A number or boolean is read as its text, and null as no
/// variable, but most programs refuse the server. VS Code accepts numbers and null.
fn warn_if_not_text(found: &str, at: &Location, values: &ValueReader<'_>) {
    if values.program.env_values == EnvValues::NumbersAndNull && found != "a boolean" {
        return;
    }
    let context = values.context;
    let name = quoted_key("env", &crate::syntax::last_key(&at.pointer(context)));
    let message = format!("the variable '{name}' is {found}, not text; most programs refuse that");
    let (help, fix) = match found {
        "null" => ("write `\"\"` for an empty variable, or remove it", None),
        _ => ("put the value into quotes", Some(FixIntent::Quote)),
    };
    let diagnostic = context.new_diagnostic(Code::WrongType, at, message);
    context.report(diagnostic.warning().help(help).fix(fix));
}

/// Warns about a list of variables or headers, because programs read a mapping.
pub(super) fn warn_about_list(at: &Location, context: &ReadContext) {
    let key = crate::syntax::last_key(&at.pointer(context));
    if !keys::find(&key).is_some_and(EntryKey::is_common) {
        return;
    }
    let message = format!("'{key}' is a list; the programs that have such files read a mapping");
    let help = format!("write `\"{key}\": {{\"NAME\": \"value\"}}`");
    context.warning(Code::WrongType, &at.at_key(), message, help);
}

/// Lowers a variable of a list.
fn lower_list_item(item: Field<VariableItem>, values: &ValueReader<'_>) -> Option<(String, ConfigValue)> {
    let at = item.at;
    let (name, text, at) = match item.into_value()? {
        VariableItem::NamedValue(NamedValue { name, value }) => {
            (name.into_value()?, value.value()?.clone(), value.at)
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

/// Lowers the headers of an entry.
pub(super) fn lower_headers(
    headers: NullableField<Headers>,
    values: &ValueReader<'_>,
) -> Vec<(String, ConfigValue)> {
    let context = values.context;
    let value =
        |text: String, at: &Location| values.value_with_shell_check(text, at, checks::check_header_value);
    match headers.into_value() {
        None => Vec::new(),
        Some(Headers::Mapping(entries)) => {
            for (name, slot) in &entries.0 {
                lowering::report_owned_header(name, &slot.at.at_key(), context);
            }
            lowering::lower_headers(Some(entries), context, value)
        }
        Some(Headers::List(items)) => {
            let mut res = Vec::new();
            for pair in items.into_iter().filter_map(Field::into_value) {
                let NamedValue { name, value: text } = pair;
                let Some(name_text) = name.value() else { continue };
                if context.report_check(&name.at, checks::check_header_name(name_text)) {
                    lowering::report_owned_header(name_text, &name.at, context);
                }
                let at = text.at;
                if let (Some(name), Some(text)) = (name.into_value(), text.into_value()) {
                    res.push((name, value(text, &at)));
                }
            }
            res
        }
    }
}

/// Adds the variables of `env_keys`, which Goose requires in the environment. A variable of `env` is not replaced.
pub(super) fn add_required_variables(
    names: NullableField<Vec<Field<String>>>,
    env: &mut Vec<(String, ConfigValue)>,
    context: &ReadContext,
) {
    for slot in names.into_value().unwrap_or_default() {
        let at = slot.at;
        if let Some(name) = slot.into_value()
            && let Some(value) = lower_env_name(&name, "", &at, context)
            && !env.iter().any(|it| it.0 == name)
        {
            env.push((name, value));
        }
    }
}

/// Lowers Codex's headers whose values are variables, and the variable `bearer` of the token.
pub(super) fn lower_header_variables(
    headers: NullableField<OrderedMap<String>>,
    bearer: &NullableField<String>,
    context: &ReadContext,
) -> Vec<(String, ConfigValue)> {
    let mut res = Vec::new();
    if let Some(name) = bearer.value()
        && let Some(value) = lower_env_name(name, "Bearer ", &bearer.at, context)
    {
        res.push(("Authorization".to_owned(), value));
    }
    for (header, slot) in headers.into_value().into_iter().flat_map(|it| it.0) {
        let at = slot.at;
        if !context.report_check(&at.at_key(), checks::check_header_name(&header)) {
            continue;
        }
        let value = slot.into_value().and_then(|name| lower_env_name(&name, "", &at, context));
        res.extend(value.map(|it| (header, it)));
    }
    res
}

/// The value of the environment variable `name`, after a prefix. Reports an invalid name.
fn lower_env_name(name: &str, prefix: &str, at: &Location, context: &ReadContext) -> Option<ConfigValue> {
    let is_name = context.report_check(at, checks::check_env_name(name));
    is_name.then(|| template::parse_value(format!("{prefix}${{{name}}}"), ReferenceRule::Editor))
}

/// Lowers the timeouts of an entry. Each key has its own unit (DIA-07). In some programs, `timeout` or
/// `connectionTimeout` limits the start too (RPT-110).
pub(super) fn lower_limits(durations: &Durations, program: &Program, context: &ReadContext) -> Limits {
    let Durations {
        timeout,
        request_milliseconds,
        request_seconds,
        connect_milliseconds,
        start_seconds,
        start_milliseconds,
    } = durations;
    let mut limits = Limits::default();
    let any_timeout = lower_timeout(timeout, program, context);
    let connect = lower_duration(connect_milliseconds, MILLISECONDS_PER_SECOND, context);
    let start_under_other_key = match program.start_limit {
        StartLimit::Key(TIMEOUT) => any_timeout,
        StartLimit::Key(CONNECTION_TIMEOUT) => connect,
        StartLimit::Key(_) | StartLimit::Variable(_) => None,
    };
    limits.request = lower_duration(request_milliseconds, MILLISECONDS_PER_SECOND, context)
        .or(lower_duration(request_seconds, 1.0, context))
        .or(any_timeout)
        .unwrap_or(limits.request);
    limits.connect = connect.unwrap_or(limits.connect);
    limits.startup = lower_duration(start_seconds, 1.0, context)
        .or(lower_duration(start_milliseconds, MILLISECONDS_PER_SECOND, context))
        .or(start_under_other_key)
        .unwrap_or(limits.startup);
    limits
}

const MILLISECONDS_PER_SECOND: f64 = 1000.0;

// Keys that limit the start in some programs.
const TIMEOUT: &str = "timeout";
const CONNECTION_TIMEOUT: &str = "connectionTimeout";

/// Lowers `timeout`, which is in seconds for some programs (Cline: 60) and in milliseconds for others (Gemini CLI:
/// 30000). If the program is unknown, values from 1000 on are milliseconds; those that could also be seconds get a
/// warning. Less than a second is always meant as seconds.
fn lower_timeout(slot: &NullableField<f64>, program: &Program, context: &ReadContext) -> Option<Duration> {
    let value = *slot.value()?;
    let unit = program.timeout_unit;
    if value < 1000.0 || unit == TimeoutUnit::Seconds {
        if value > 0.0 && unit == TimeoutUnit::Milliseconds {
            let message = format!(
                "{} reads 'timeout' in milliseconds, and {value} is too short: it is read as {value} seconds",
                program.name
            );
            context.warning(Code::SuspiciousUnit, &slot.at, message, format!("write {}", value * 1000.0));
        }
        return lower_duration(slot, 1.0, context);
    }
    if value <= 3600.0 && unit == TimeoutUnit::BySize {
        let message = format!("'timeout' is read as {value} milliseconds");
        let help =
            "some programs read it as seconds; write `requestTimeout`, which is always in milliseconds";
        context.warning(Code::SuspiciousUnit, &slot.at, message, help);
    }
    lower_duration(slot, MILLISECONDS_PER_SECOND, context)
}

/// Lowers a number in a unit of which a second has `per_second`; reports one that is not positive.
fn lower_duration(slot: &NullableField<f64>, per_second: f64, context: &ReadContext) -> Option<Duration> {
    let value = *slot.value()?;
    let res = checks::duration_from_secs(value / per_second);
    if res.is_none() {
        let key = crate::syntax::last_key(&slot.at.pointer(context));
        let message = format!("'{key}' must be a finite number greater than zero");
        let unit = if per_second > 1.0 { "milliseconds, such as 30000" } else { "seconds, such as 30" };
        context.error(Code::OutOfRange, &slot.at, message, format!("write {unit}"));
    }
    res
}

/// Lowers the tool lists. An excluded tool is hidden even if another list includes it.
///
/// In the model a whitelist overrides the blacklist, so excluded names are removed from the whitelist here.
///
/// Gemini CLI also accepts a name with its arguments, such as `run(ls)`.
pub(super) fn lower_exposure(lists: ToolLists, program: &Program) -> Exposure {
    let names = |lists: &mut dyn Iterator<Item = Vec<Field<String>>>| -> Vec<String> {
        lists.flatten().filter_map(Field::into_value).filter(|it| !it.trim().is_empty()).collect()
    };
    let ToolLists { included, available, tools, excluded } = lists;
    let available = available.into_value().filter(|it| !it.is_empty());
    let listed = match tools.into_value() {
        Some(Tools::List(list)) => Some(list),
        Some(Tools::Mapping(_)) | None => None,
    };
    let included: Vec<_> =
        included.into_iter().filter_map(NullableField::into_value).chain(listed).chain(available).collect();
    let has_list = !included.is_empty();
    let mut included = names(&mut included.into_iter());
    if program.shell_variables == ShellVariables::ReplacedEverywhere {
        for name in &mut included {
            name.truncate(name.find('(').filter(|at| *at > 0).unwrap_or(name.len()));
        }
    }
    let is_restricted = has_list && !included.iter().any(|it| it == "*");
    let excluded = names(&mut excluded.into_iter().filter_map(NullableField::into_value));
    let mut res = Exposure::all(NamePolicy::Qualify { class: NameClass::Strict });
    res.tools.filter = if is_restricted {
        let excluded: HashSet<String> = excluded.into_iter().collect();
        let whitelist: Vec<_> = included.into_iter().filter(|it| !excluded.contains(it)).collect();
        // An empty whitelist would restrict nothing.
        let blacklist = if whitelist.is_empty() { vec!["*".to_owned()] } else { Vec::new() };
        ExposureFilter { whitelist, blacklist }
    } else {
        ExposureFilter { whitelist: Vec::new(), blacklist: excluded }
    };
    res
}
