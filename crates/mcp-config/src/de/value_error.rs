//! Errors of reading a single value. Messages never quote the value.

use std::borrow::Cow;
use std::fmt;

use serde::de;

use crate::de::suggest;
use crate::diagnostic::{Applicability, Code, FixIntent, ScalarKind, quoted, quoted_key};
use crate::profile::rules::Wording;
use crate::syntax::{last_key, pointer_segments};

/// The reason why a value could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.plain_message(""))]
pub(crate) enum ValueError {
    /// The value has another type.
    WrongType { expected: Expected, found: &'static str },
    /// The value is not one of these words. The suggestion is close to it.
    UnknownVariant { expected: &'static [&'static str], suggestion: Option<(&'static str, Applicability)> },
    /// The number does not fit any of our number types.
    OutOfRange,
    /// The value does not fit the type of the field. The words describe what fits.
    OutsideType(Cow<'static, str>),
    /// The type of the field refuses the value, with this message.
    Refused(String),
    /// The program has a type that this deserializer cannot read. The file is not at fault.
    UnsupportedType,
    /// The value is a text instead of a mapping, because a space is missing after the `:` of its key.
    MissingSpace {
        /// The blank of another kind that is there.
        blank: Option<char>,
    },
    /// The key is missing.
    Missing,
    /// The reason is already reported.
    Reported,
}

/// The expected value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    Text,
    Boolean,
    Integer,
    Number,
    List,
    Mapping,
    OneOf(&'static [&'static str]),
    /// A description in words.
    Description(&'static str),
}

impl ValueError {
    pub(crate) fn code(&self) -> Code {
        match self {
            ValueError::WrongType { .. }
            | ValueError::MissingSpace { .. }
            | ValueError::UnsupportedType
            | ValueError::Reported => Code::WrongType,
            ValueError::UnknownVariant { .. } => Code::UnknownWord,
            ValueError::OutOfRange | ValueError::OutsideType(_) | ValueError::Refused(_) => Code::OutOfRange,
            ValueError::Missing => Code::MissingKey,
        }
    }

    /// The message for the value at `pointer`.
    pub(crate) fn message(&self, wording: Wording, pointer: &str) -> String {
        match wording {
            Wording::Plain | Wording::Json => self.plain_message(pointer),
            Wording::Dominds => self.dominds_message(pointer),
        }
    }

    fn plain_message(&self, pointer: &str) -> String {
        let name = value_name(pointer);
        match self {
            ValueError::WrongType { expected: Expected::OneOf(words), found: _ }
            | ValueError::UnknownVariant { expected: words, suggestion: _ } => {
                format!("{name} must be one of {}", word_list(words))
            }
            // It has a fraction or more than 64 bits.
            ValueError::WrongType { expected: Expected::Integer, found: "a number" } => {
                format!("{name} must be a whole number without a fraction, of at most 64 bits")
            }
            ValueError::WrongType { expected, found } => {
                format!("{name} must be {}, not {found}", expected.description())
            }
            ValueError::MissingSpace { .. } => format!("{name} must be a mapping, not text"),
            ValueError::OutOfRange => format!("{name} is too large a number"),
            ValueError::OutsideType(words) => format!("{name} must be {words}"),
            ValueError::UnsupportedType => format!("the program cannot read {name}"),
            ValueError::Missing => format!("{name} is required"),
            ValueError::Refused(message) => format!("{name} cannot be read: {message}"),
            ValueError::Reported => format!("{name} cannot be read"),
        }
    }

    fn dominds_message(&self, pointer: &str) -> String {
        let path = dominds_path(pointer);
        match self {
            ValueError::WrongType { expected: Expected::Mapping, found: _ }
            | ValueError::MissingSpace { .. } => {
                format!("Invalid mcp.yaml: expected object at {path}")
            }
            ValueError::WrongType { expected: Expected::OneOf(words), found: _ }
            | ValueError::UnknownVariant { expected: words, suggestion: _ } => {
                let words: Vec<_> = words.iter().map(|it| format!("'{it}'")).collect();
                format!("Invalid mcp.yaml: {path} must be {}", words.join(" or "))
            }
            ValueError::WrongType { expected, found: _ } => {
                let words = match expected {
                    Expected::Text => "a string",
                    Expected::Boolean => "a boolean",
                    Expected::Integer => "an integer",
                    Expected::Number => "a number",
                    Expected::List => "string[]",
                    Expected::Description(words) => words,
                    Expected::Mapping | Expected::OneOf(_) => "something else",
                };
                format!("Invalid mcp.yaml: {path} must be {words}")
            }
            ValueError::OutOfRange => format!("Invalid mcp.yaml: {path} is too large a number"),
            ValueError::OutsideType(words) => format!("Invalid mcp.yaml: {path} must be {words}"),
            ValueError::Missing => format!("Invalid mcp.yaml: {path} is required"),
            ValueError::UnsupportedType | ValueError::Refused(_) | ValueError::Reported => {
                format!("Invalid mcp.yaml: {path} cannot be read")
            }
        }
    }

    /// The intended value, if it is known.
    pub(crate) fn fix(&self) -> Option<FixIntent> {
        match self {
            ValueError::UnknownVariant { expected: _, suggestion: near } => {
                near.map(|it| FixIntent::ReplaceScalar(it.0.to_owned(), it.1))
            }
            ValueError::WrongType { expected, found } => expected.fix(found),
            ValueError::MissingSpace { .. }
            | ValueError::OutOfRange
            | ValueError::OutsideType(_)
            | ValueError::Refused(_)
            | ValueError::UnsupportedType
            | ValueError::Missing
            | ValueError::Reported => None,
        }
    }

    /// How to fix it, if that is known.
    pub(crate) fn help(&self, wording: Wording, pointer: &str) -> Option<String> {
        Some(match self {
            ValueError::UnknownVariant { expected: _, suggestion: Some((near, _)) } => {
                format!("did you mean `{near}`?")
            }
            ValueError::UnknownVariant { expected, suggestion: None } => {
                format!("write one of {}", word_list(expected))
            }
            ValueError::WrongType { expected: _, found: "nothing" } => {
                "give it a value, or remove the key".to_owned()
            }
            ValueError::WrongType { expected, found } => expected.help(found, wording),
            ValueError::MissingSpace { blank: None } => {
                "write a space after the `:`: `key: value`".to_owned()
            }
            ValueError::MissingSpace { blank: Some(blank) } => {
                format!("replace U+{:04X} after the `:` by a space: `key: value`", u32::from(*blank))
            }
            ValueError::OutOfRange => "write a smaller number".to_owned(),
            ValueError::OutsideType(words) => format!("write {words}"),
            ValueError::Missing => format!("add `{}`", quoted(&last_key(pointer))),
            ValueError::UnsupportedType => {
                "this is a fault of the program, not of the file: it uses a type that its reader does not support"
                    .to_owned()
            }
            ValueError::Refused(_) | ValueError::Reported => return None,
        })
    }
}

impl Expected {
    fn description(self) -> String {
        match self {
            Expected::Text => "text".to_owned(),
            Expected::Boolean => "true or false".to_owned(),
            Expected::Integer => "a whole number".to_owned(),
            Expected::Number => "a number".to_owned(),
            Expected::List => "a list".to_owned(),
            Expected::Mapping => "a mapping".to_owned(),
            Expected::OneOf(words) => format!("one of {}", word_list(words)),
            Expected::Description(words) => words.to_owned(),
        }
    }

    fn fix(self, found: &str) -> Option<FixIntent> {
        match (self, found) {
            (Expected::Text | Expected::Description(_), "a number" | "a boolean") => Some(FixIntent::Quote),
            (Expected::Boolean, "text") => Some(FixIntent::Unquote(ScalarKind::Boolean)),
            (Expected::Integer, "text") => Some(FixIntent::Unquote(ScalarKind::Integer)),
            (Expected::Number, "text") => Some(FixIntent::Unquote(ScalarKind::Number)),
            (Expected::List, "text") => Some(FixIntent::WrapInList),
            _ => None,
        }
    }

    fn help(self, found: &str, wording: Wording) -> String {
        match (self, found) {
            (Expected::Boolean, "text") if wording == Wording::Json => {
                "write `true` or `false`, without quotes".to_owned()
            }
            (Expected::Mapping, _) if wording == Wording::Json => {
                "write keys and values: `{\"key\": \"value\"}`".to_owned()
            }
            (Expected::Text | Expected::Description(_), "a number" | "a boolean") => {
                "put the value into quotes".to_owned()
            }
            (Expected::Text, _) => "write one text".to_owned(),
            (Expected::Boolean, "text") => {
                "write `true` or `false`, without quotes; `yes` and `no` are text in YAML 1.2".to_owned()
            }
            (Expected::Boolean, _) => "write `true` or `false`".to_owned(),
            (Expected::Integer, "a number") => "write a number without a fraction".to_owned(),
            (Expected::Integer | Expected::Number, _) => {
                "write the number alone, without quotes or unit".to_owned()
            }
            (Expected::List, _) => "write a list, even of one: `[\"…\"]`".to_owned(),
            (Expected::Mapping, _) => "write keys and values: `{key: value}`".to_owned(),
            (Expected::OneOf(words), _) => format!("write one of {}", word_list(words)),
            (Expected::Description(words), _) => format!("write {words}"),
        }
    }
}

fn word_list(words: &[&str]) -> String {
    words.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
}

/// The name of a value in messages: `'args'`, or `item 2 of 'args'`.
fn value_name(pointer: &str) -> String {
    let segments: Vec<_> = pointer_segments(pointer).collect();
    match &segments[..] {
        [] => "the file".to_owned(),
        [.., parent, last] if last.bytes().all(|it| it.is_ascii_digit()) => {
            format!("item {} of '{}'", last.parse::<usize>().map_or(0, |it| it + 1), quoted(parent))
        }
        [.., parent, last] => format!("'{}'", quoted_key(parent, last)),
        [last] => format!("'{}'", quoted(last)),
    }
}

/// A path as Dominds prints it: `servers.a.transform[0].prefix`.
pub(crate) fn dominds_path(pointer: &str) -> String {
    const LISTS: [&str; 5] = ["args", "whitelist", "blacklist", "transform", "mimeTypes"];
    let mut res = String::new();
    let mut parent = String::new();
    for segment in pointer_segments(pointer) {
        let shown = quoted_key(&parent, &segment);
        if LISTS.contains(&parent.as_str()) && segment.bytes().all(|it| it.is_ascii_digit()) {
            res.push_str(&format!("[{shown}]"));
        } else {
            if !res.is_empty() {
                res.push('.');
            }
            res.push_str(&shown);
        }
        parent = segment;
    }
    if res.is_empty() { "mcp.yaml root".to_owned() } else { res }
}

/// A type's own errors. Those of serde quote the value, which may be a secret; only what is expected is kept of them.
impl de::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> ValueError {
        ValueError::Refused(message.to_string())
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> ValueError {
        match found {
            // The text of an enum selects a variant that has content.
            de::Unexpected::UnitVariant => ValueError::UnsupportedType,
            _ => ValueError::OutsideType(expected.to_string().into()),
        }
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> ValueError {
        ValueError::OutsideType(expected.to_string().into())
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> ValueError {
        ValueError::UnknownVariant { expected, suggestion: suggest(variant, expected.iter().copied()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_named_as_in_each_dialect() {
        assert_eq!(value_name("/tools/0/args"), "'args'");
        assert_eq!(value_name("/tools/0/args/1"), "item 2 of 'args'");
        assert_eq!(value_name(""), "the file");
        assert_eq!(dominds_path("/servers/10/transform/0/prefix"), "servers.10.transform[0].prefix");
        assert_eq!(dominds_path(""), "mcp.yaml root");
    }
}
