//! Messages for schema violations: the position and the expected value, never the actual one.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use crate::name::display::{escape_name, truncate};
use crate::validate::schema_violation::SchemaViolation;

/// The maximum length of a message or pointer, in bytes.
const MAX_MESSAGE_BYTES: usize = 300;
/// The maximum number of alternatives of an `anyOf` or `oneOf` in a message.
const MAX_ALTERNATIVES: usize = 4;

/// Describes a violation. Messages call the actual value `value`.
pub(super) fn describe(error: &ValidationError<'_>) -> SchemaViolation {
    SchemaViolation {
        message: truncate(describe_expectation(error), MAX_MESSAGE_BYTES),
        pointer: truncate(escape_pointer(error.instance_path().as_str()), MAX_MESSAGE_BYTES),
    }
}

/// Describes what the schema expects, with the reasons of the alternatives of an `anyOf` or `oneOf`.
fn describe_expectation(error: &ValidationError<'_>) -> String {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return describe_without_alternatives(error);
    };
    let outer = error.instance_path().as_str();
    let reason = |alternative: &Vec<ValidationError<'_>>| {
        let inner = alternative.first()?;
        let at = inner.instance_path().as_str();
        match at.strip_prefix(outer).unwrap_or(at) {
            "" => Some(describe_without_alternatives(inner)),
            below => Some(format!("{}: {}", escape_pointer(below), describe_without_alternatives(inner))),
        }
    };
    let mut reasons: Vec<String> = context.iter().take(MAX_ALTERNATIVES).filter_map(reason).collect();
    reasons.dedup();
    if reasons.is_empty() {
        return describe_without_alternatives(error);
    }
    format!("value fits none of {} alternatives: {}", context.len(), reasons.join("; "))
}

/// Describes a violation without the alternatives inside of it.
fn describe_without_alternatives(error: &ValidationError<'_>) -> String {
    match error.kind() {
        // jsonschema's masked text of these contains names from the arguments.
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => describe_unexpected(unexpected),
        ValidationErrorKind::PropertyNames { error } => {
            format!("a property's name is wrong: {}", error.masked())
        }
        // jsonschema lists three candidates; all of them are needed for a correction.
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(|it| it.to_string()).collect();
            format!("value is not one of {}", options.join(", "))
        }
        _ => error.masked().to_string(),
    }
}

/// Lists unknown properties.
fn describe_unexpected(unexpected: &[String]) -> String {
    let shown: Vec<String> = unexpected.iter().take(5).map(|it| format!("`{}`", escape_name(it))).collect();
    let more = if unexpected.len() > shown.len() { ", …" } else { "" };
    let noun = if unexpected.len() == 1 { "property" } else { "properties" };
    format!("unknown {noun}: {}{more}", shown.join(", "))
}

/// Escapes and shortens each name in a JSON pointer.
fn escape_pointer(pointer: &str) -> String {
    pointer.split('/').map(escape_name).collect::<Vec<_>>().join("/")
}
