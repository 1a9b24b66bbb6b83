//! What is wrong with an argument, in words that show where it is and what was expected, never what was given.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use crate::name::display::{escape_name, truncate};
use crate::validate::SchemaViolation;

/// The longest message or pointer, in bytes.
const LIMIT: usize = 300;
/// How many alternatives of an `anyOf` or `oneOf` are spelled out.
const ALTERNATIVES: usize = 4;

/// Describes one mistake. The value itself reads `value`.
pub(super) fn describe(error: &ValidationError<'_>) -> SchemaViolation {
    SchemaViolation {
        message: truncate(expectation(error), LIMIT),
        pointer: truncate(label_pointer(error.instance_path().as_str()), LIMIT),
    }
}

fn expectation(error: &ValidationError<'_>) -> String {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return plain(error);
    };
    let outer = error.instance_path().as_str();
    let why = |alternative: &Vec<ValidationError<'_>>| {
        let inner = alternative.first()?;
        let at = inner.instance_path().as_str();
        match at.strip_prefix(outer).unwrap_or(at) {
            "" => Some(plain(inner)),
            below => Some(format!("{}: {}", label_pointer(below), plain(inner))),
        }
    };
    let mut told: Vec<String> = context.iter().take(ALTERNATIVES).filter_map(why).collect();
    told.dedup();
    if told.is_empty() {
        return plain(error);
    }
    format!("value fits none of {} alternatives: {}", context.len(), told.join("; "))
}

/// One mistake without the alternatives inside of it.
fn plain(error: &ValidationError<'_>) -> String {
    match error.kind() {
        // The masked text of these shows any number of names out of the arguments, or the name itself.
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => names(unexpected),
        ValidationErrorKind::PropertyNames { error } => {
            format!("a property's name is wrong: {}", error.masked())
        }
        // Whoever corrects the argument wants all the candidates, not the first three.
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(|it| it.to_string()).collect();
            format!("value is not one of {}", options.join(", "))
        }
        _ => error.masked().to_string(),
    }
}

fn names(unexpected: &[String]) -> String {
    let shown: Vec<String> = unexpected.iter().take(5).map(|it| format!("`{}`", escape_name(it))).collect();
    let more = if unexpected.len() > shown.len() { ", …" } else { "" };
    let noun = if unexpected.len() == 1 { "property" } else { "properties" };
    format!("unknown {noun}: {}{more}", shown.join(", "))
}

fn label_pointer(pointer: &str) -> String {
    pointer.split('/').map(escape_name).collect::<Vec<_>>().join("/")
}
