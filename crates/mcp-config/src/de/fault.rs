//! Why a value could not be read, in words that never quote it.

use std::fmt;

use serde::de;

use super::meant;
use crate::diagnostic::Code;
use crate::diagnostic::{quoted, quoted_key};
use crate::dialect::policy::Wording;
use crate::edit::fix::{Applicability, Repair, Says};
use crate::syntax::{last, segments};

/// Why a value could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.plain(""))]
pub(crate) enum Fault {
    /// Something else was expected.
    Type { expected: Expected, found: &'static str },
    /// One of these words was expected; the second is near to what stands there.
    Word { expected: &'static [&'static str], near: Option<(&'static str, Applicability)> },
    /// A number that no number type of ours holds.
    Range,
    /// The key is missing.
    Missing,
    /// A wire struct asked for something that the tree cannot give.
    Strange,
}

/// What was expected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    Text,
    Boolean,
    Whole,
    Number,
    List,
    Mapping,
    OneOf(&'static [&'static str]),
    /// In words.
    Words(&'static str),
}

impl Fault {
    pub(crate) fn code(&self) -> Code {
        match self {
            Fault::Type { .. } | Fault::Strange => Code::WrongType,
            Fault::Word { .. } => Code::UnknownWord,
            Fault::Range => Code::OutOfRange,
            Fault::Missing => Code::MissingKey,
        }
    }

    /// What is wrong with the value at `pointer`.
    pub(crate) fn message(&self, wording: Wording, pointer: &str) -> String {
        match wording {
            Wording::Plain | Wording::Json => self.plain(pointer),
            Wording::Dominds => self.dominds(pointer),
        }
    }

    fn plain(&self, pointer: &str) -> String {
        let name = name(pointer);
        match self {
            Fault::Type { expected: Expected::OneOf(words), found: _ }
            | Fault::Word { expected: words, near: _ } => format!("{name} must be one of {}", list(words)),
            Fault::Type { expected, found } => format!("{name} must be {}, not {found}", expected.words()),
            Fault::Range => format!("{name} is too large a number"),
            Fault::Missing => format!("{name} is required"),
            Fault::Strange => format!("{name} cannot be read"),
        }
    }

    fn dominds(&self, pointer: &str) -> String {
        let path = dotted(pointer);
        match self {
            Fault::Type { expected: Expected::Mapping, found: _ } => {
                format!("Invalid mcp.yaml: expected object at {path}")
            }
            Fault::Type { expected: Expected::OneOf(words), found: _ }
            | Fault::Word { expected: words, near: _ } => {
                let words: Vec<_> = words.iter().map(|it| format!("'{it}'")).collect();
                format!("Invalid mcp.yaml: {path} must be {}", words.join(" or "))
            }
            Fault::Type { expected, found: _ } => {
                let words = match expected {
                    Expected::Text => "a string",
                    Expected::Boolean => "a boolean",
                    Expected::Whole => "an integer",
                    Expected::Number => "a number",
                    Expected::List => "string[]",
                    Expected::Words(words) => words,
                    Expected::Mapping | Expected::OneOf(_) => "something else",
                };
                format!("Invalid mcp.yaml: {path} must be {words}")
            }
            Fault::Range => format!("Invalid mcp.yaml: {path} is too large a number"),
            Fault::Missing => format!("Invalid mcp.yaml: {path} is required"),
            Fault::Strange => format!("Invalid mcp.yaml: {path} cannot be read"),
        }
    }

    /// What is meant instead, where that can be told.
    pub(crate) fn repair(&self) -> Option<Repair> {
        match self {
            Fault::Word { expected: _, near } => near.map(|it| Repair::Word(it.0.to_owned(), it.1)),
            Fault::Type { expected, found } => expected.repair(found),
            Fault::Range | Fault::Missing | Fault::Strange => None,
        }
    }

    /// What to do about it.
    pub(crate) fn help(&self, wording: Wording, pointer: &str) -> String {
        match self {
            Fault::Word { expected: _, near: Some((near, _)) } => format!("did you mean `{near}`?"),
            Fault::Word { expected, near: None } => format!("write one of {}", list(expected)),
            Fault::Type { expected: _, found: "nothing" } => "give it a value, or remove the key".to_owned(),
            Fault::Type { expected, found } => expected.help(found, wording),
            Fault::Range => "write a smaller number".to_owned(),
            Fault::Missing => format!("add `{}`", quoted(&last(pointer))),
            Fault::Strange => "remove it".to_owned(),
        }
    }
}

impl Expected {
    fn words(self) -> String {
        match self {
            Expected::Text => "text".to_owned(),
            Expected::Boolean => "true or false".to_owned(),
            Expected::Whole => "a whole number".to_owned(),
            Expected::Number => "a number".to_owned(),
            Expected::List => "a list".to_owned(),
            Expected::Mapping => "a mapping".to_owned(),
            Expected::OneOf(words) => format!("one of {}", list(words)),
            Expected::Words(words) => words.to_owned(),
        }
    }

    fn repair(self, found: &str) -> Option<Repair> {
        match (self, found) {
            (Expected::Text | Expected::Words(_), "a number" | "a boolean") => Some(Repair::Quote),
            (Expected::Boolean, "text") => Some(Repair::Unquote(Says::Truth)),
            (Expected::Whole, "text") => Some(Repair::Unquote(Says::Whole)),
            (Expected::Number, "text") => Some(Repair::Unquote(Says::Number)),
            (Expected::List, "text") => Some(Repair::List),
            (
                Expected::Text
                | Expected::Boolean
                | Expected::Whole
                | Expected::Number
                | Expected::List
                | Expected::Mapping
                | Expected::OneOf(_)
                | Expected::Words(_),
                _,
            ) => None,
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
            (Expected::Text | Expected::Words(_), "a number" | "a boolean") => {
                "put the value into quotes".to_owned()
            }
            (Expected::Text, _) => "write one text".to_owned(),
            (Expected::Boolean, "text") => {
                "write `true` or `false`, without quotes; `yes` and `no` are text in YAML 1.2".to_owned()
            }
            (Expected::Boolean, _) => "write `true` or `false`".to_owned(),
            (Expected::Whole, "a number") => "write a number without a fraction".to_owned(),
            (Expected::Whole | Expected::Number, _) => {
                "write the number alone, without quotes or unit".to_owned()
            }
            (Expected::List, _) => "write a list, even of one: `[\"…\"]`".to_owned(),
            (Expected::Mapping, _) => "write keys and values: `{key: value}`".to_owned(),
            (Expected::OneOf(words), _) => format!("write one of {}", list(words)),
            (Expected::Words(words), _) => format!("write {words}"),
        }
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
}

/// A value by the name of its key: `'args'`, or `item 2 of 'args'`.
fn name(pointer: &str) -> String {
    let segments: Vec<_> = segments(pointer).collect();
    match &segments[..] {
        [] => "the file".to_owned(),
        [.., parent, last] if last.bytes().all(|it| it.is_ascii_digit()) => {
            format!("item {} of '{}'", last.parse::<usize>().map_or(0, |it| it + 1), quoted(parent))
        }
        [.., parent, last] => format!("'{}'", quoted_key(parent, last)),
        [last] => format!("'{}'", quoted(last)),
    }
}

/// A place in Dominds' own spelling: `servers.a.transform[0].prefix`.
pub(crate) fn dotted(pointer: &str) -> String {
    const LISTS: [&str; 5] = ["args", "whitelist", "blacklist", "transform", "mimeTypes"];
    let mut res = String::new();
    let mut parent = String::new();
    for segment in segments(pointer) {
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

impl de::Error for Fault {
    /// Drops the message: it may quote a value.
    fn custom<T: fmt::Display>(_: T) -> Fault {
        Fault::Strange
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Fault {
        Fault::Word { expected, near: meant(variant, expected.iter().copied()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_as_its_reader_names_it() {
        assert_eq!(name("/tools/0/args"), "'args'");
        assert_eq!(name("/tools/0/args/1"), "item 2 of 'args'");
        assert_eq!(name(""), "the file");
        assert_eq!(dotted("/servers/10/transform/0/prefix"), "servers.10.transform[0].prefix");
        assert_eq!(dotted(""), "mcp.yaml root");
    }
}
