//! Checks the fields of a HoloDeck item and lowers them to the model.

use std::time::Duration;

use mcp_host_model::{ConfigValue, Limits, Passthrough, ServerId};

use crate::de::{Field, Location, NullableField, OptionalField, OrderedMap, RawObject, ReadContext};
use crate::diagnostic::{Applicability, CheckError, Code, FixIntent};
use crate::dialect::{checks, lowering};
use crate::profile::rules::NameRule;
use crate::syntax::template::{ReferenceRule, has_holodeck_reference, parse_value};

/// Reports missing keys that the profile requires or recommends. `given` has each key and whether the entry has it.
pub(super) fn report_missing_keys(given: &[(&'static str, bool)], at: &Location, context: &ReadContext) {
    for (key, _) in given.iter().filter(|it| !it.1) {
        let at = at.missing(key, context);
        let message = format!("'{key}' is required");
        if context.rules.required_keys.contains(key) && !context.has_error(&at) {
            let help = match *key {
                "server" => {
                    "add the name of the package or service; HoloDeck 0.7 does not have this key: use its profile"
                }
                _ => "describe what the server is for; models read it",
            };
            context.error(Code::MissingKey, &at, message, help);
        } else if context.rules.recommended_keys.contains(key) && !context.has_error(&at) {
            let message = format!("'{key}' is missing");
            let help = "describe what the server is for; models read it";
            context.warning(Code::MissingKey, &at, message, help);
        }
    }
}

/// Parses the name of an item (HD-002, HD-003).
pub(super) fn parse_id(name: &Field<String>, context: &ReadContext) -> Option<ServerId> {
    let text = name.value()?;
    let id = context.parse_id(text, &name.at, "write a short name")?;
    let word = text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    if context.rules.name_rule == NameRule::Word && !word {
        let message = "'name' must have only ASCII letters, digits and `_`";
        context.error(Code::InvalidName, &name.at, message, "replace other characters by `_`");
        return None;
    }
    Some(id)
}

/// Reports an empty `server` (HD-009, HD-065).
pub(super) fn check_server_key(server: &OptionalField<String>, context: &ReadContext) {
    if server.value().is_some_and(|it| it.trim().is_empty()) {
        let message = "'server' must be a non-empty identifier";
        context.error(Code::EmptyServer, &server.at, message, "write the package's or service's name");
    }
}

/// Returns the one of `envFile` and `env_file` that is given. Reports an item with both, because they are the same key
/// and a blank one.
pub(super) fn merge_env_file_keys(
    file: NullableField<String>,
    alias: NullableField<String>,
    context: &ReadContext,
) -> NullableField<String> {
    if file.is_given() && alias.is_given() {
        let same = file.value().is_some() && file.value() == alias.value();
        let applicability = if same { Applicability::Certain } else { Applicability::Suggested };
        let fix = FixIntent::RemoveMember(alias.at.pointer(context), applicability);
        let message = "'envFile' and 'env_file' are the same key; only one is allowed";
        context.report(context.exclusive_keys_diagnostic(&alias.at, &file.at, message).fix(fix));
    }
    let res = if file.is_given() { file } else { alias };
    if res.value().is_some_and(|it| it.trim().is_empty()) {
        let help = "name a file, or remove the key";
        context.error(Code::EmptyValue, &res.at, "'envFile' must not be empty", help);
    }
    res
}

/// Lowers the timeout of a request; the default if it is missing or invalid. Reports one that is not positive (HD-031,
/// HD-032).
pub(super) fn lower_request_timeout(slot: &OptionalField<i64>, context: &ReadContext) -> Duration {
    let default = Limits::default().request;
    let Some(value) = slot.value() else { return default };
    let Some(duration) = checks::duration_from_secs(*value as f64) else {
        let help = "write seconds, such as 60";
        context.error(Code::OutOfRange, &slot.at, "request_timeout must be positive", help);
        return default;
    };
    lowering::warn_if_milliseconds(*value as f64, &slot.at, context);
    duration
}

/// Lowers the arguments of the program (HD-015).
pub(super) fn lower_args(args: NullableField<Vec<Field<String>>>, context: &ReadContext) -> Vec<ConfigValue> {
    let mut res = Vec::new();
    for slot in args.into_value().unwrap_or_default() {
        if let Some(text) = slot.value() {
            check_literal(text, &slot.at, checks::check_argument, context);
            res.push(parse_value(text, context.rules.reference_rule));
        }
    }
    res
}

/// Lowers the environment variables of the program (HD-016).
pub(super) fn lower_environment(
    env: NullableField<OrderedMap<String>>,
    context: &ReadContext,
) -> Vec<(String, ConfigValue)> {
    let at = env.at;
    lowering::lower_environment(env.into_value(), &at, context, |text: String, at| {
        check_literal(&text, at, checks::check_env_value, context);
        parse_value(text, context.rules.reference_rule)
    })
}

/// Lowers the encoding of the program's streams; `utf-8` by default (HD-020).
pub(super) fn lower_encoding(slot: &NullableField<String>, context: &ReadContext) -> String {
    let Some(label) = slot.value() else { return "utf-8".to_owned() };
    check_literal(label, &slot.at, checks::check_encoding, context);
    label.clone()
}

/// Lowers the JSON configuration that is passed to the server (HD-028). `None` if it is empty.
pub(super) fn lower_config(RawObject(json): RawObject, variables: ReferenceRule) -> Option<Passthrough> {
    if json.as_str() == "{}" {
        return None;
    }
    if variables != ReferenceRule::Literal && json.as_str().contains("${") {
        return Some(Passthrough::Template(json));
    }
    Some(Passthrough::Literal(json))
}

/// Checks a text that has no variables. A text with variables is checked when they are replaced.
pub(super) fn check_literal(
    text: &str,
    at: &Location,
    check: fn(&str) -> Result<(), CheckError>,
    context: &ReadContext,
) {
    lowering::warn_literal_reference(text, at, context.rules.reference_rule, context);
    if context.rules.reference_rule != ReferenceRule::Literal && has_holodeck_reference(text) {
        return;
    }
    context.report_check(at, check(text));
}
