//! Parses the arguments of a tool call: a JSON object, a file that contains one, or `name=value` pairs.
//!
//! A JSON object is passed on unchanged. Pairs become JSON later, when the tool's schema is known (see [`pairs`]).

mod error;
pub(crate) mod pairs;
pub(crate) mod schema;

use std::path::Path;

use mcp_host_model::RawJson;
use mcp_host_registry::ToolLookup;
use mcp_host_runtime::HostSnapshot;

use crate::call_arguments::error::excerpt;
use crate::call_arguments::pairs::{Pair, pairs_to_object, parse_pair};
use crate::runtime::bounded_read::{input_name, read_file};
pub(crate) use error::ArgumentError;

/// The help of an argument error.
const HELP: &str = r#"write one JSON object in single quotes, such as '{"text": "hello"}', or name=value pairs, or @FILE, or `-` for standard input"#;

/// The maximum size of a file or standard input, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Arguments, parsed as far as possible without the tool's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallArguments {
    /// A JSON object.
    Object(RawJson),
    /// `name=value` pairs.
    Pairs(Vec<Pair>),
}

/// Parses the words after a tool's name. Blocks if they name a file or standard input.
pub(crate) fn parse(words: &[String]) -> Result<CallArguments, ArgumentError> {
    match words {
        [] => Ok(CallArguments::Object(RawJson::empty_object())),
        [word] if word == "-" => parse_file(Path::new(word)),
        [word] if word.starts_with('@') => parse_file(Path::new(&word[1..])),
        words if words.iter().all(|word| is_pair(word)) => {
            words.iter().map(|word| parse_pair(word)).collect::<Result<_, _>>().map(CallArguments::Pairs)
        }
        [word] => parse_object(word).map(CallArguments::Object),
        [_, ..] => {
            let other = words.iter().find(|word| !is_pair(word)).map(String::as_str).unwrap_or_default();
            let message = format!(
                "with several arguments, each must be name=value; this one is not: {}",
                excerpt(other)
            );
            Err(ArgumentError { message, help: HELP })
        }
    }
}

/// Whether a word has the form `name=…`, which JSON never has.
fn is_pair(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name.strip_suffix(':').unwrap_or(name));
    name.is_some_and(|it| !it.is_empty() && !it.starts_with(['{', '[', '"', '@']))
}

/// Parses a file, or standard input for `-`.
fn parse_file(path: &Path) -> Result<CallArguments, ArgumentError> {
    let text = read_file(path, MAX_BYTES).map_err(|error| {
        let message = format!("could not read the arguments from {}: {error}", input_name(path));
        ArgumentError { message, help: HELP }
    })?;
    parse_object(&text).map(CallArguments::Object)
}

/// Parses a JSON object.
fn parse_object(text: &str) -> Result<RawJson, ArgumentError> {
    match RawJson::parse(text.to_owned().into_bytes().into()) {
        Ok(json) if json.is_object() => Ok(json),
        Ok(_) => Err(ArgumentError { message: "ARGS is JSON, but not an object".to_owned(), help: HELP }),
        Err(error) => {
            let mut message = format!("ARGS is not valid JSON: {error}");
            if let Some(excerpt) = error_line(text, error.line(), error.column()) {
                message.push('\n');
                message.push_str(&excerpt);
            }
            Err(ArgumentError { message, help: HELP })
        }
    }
}

/// The line with the error and a mark below it; `None` if the line is long.
fn error_line(text: &str, line: usize, column: usize) -> Option<String> {
    const MAX_BYTES: usize = 100;
    let line = text.lines().nth(line.checked_sub(1)?)?;
    if line.len() > MAX_BYTES || line.chars().any(char::is_control) {
        return None;
    }
    // serde_json counts bytes; the mark is placed by characters.
    let before = line.get(..column.saturating_sub(1).min(line.len()))?.chars().count();
    Some(format!("  {line}\n  {}^", " ".repeat(before)))
}

impl CallArguments {
    /// The arguments as JSON. The schema of the tool `tool` determines the types of the values in pairs.
    pub(crate) fn to_json(&self, published: &HostSnapshot, tool: &str) -> Result<RawJson, ArgumentError> {
        match (self, published.catalog.find(tool)) {
            (CallArguments::Object(json), _) => Ok(json.clone()),
            (CallArguments::Pairs(pairs), ToolLookup::Found(found)) => {
                pairs_to_object(pairs, Some(&found.tool.input_schema))
            }
            (CallArguments::Pairs(pairs), ToolLookup::Ambiguous(_) | ToolLookup::Missing { nearest: _ }) => {
                pairs_to_object(pairs, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = parse_object(text).map_or_else(|it| it.message, |it| it.as_str().to_owned());
        assert_eq!(got, want);
    }

    #[test]
    fn json_must_be_one_object() {
        check("{}", "{}");
        check(" {\"a\": 1.0} \n", "{\"a\": 1.0}");
        check("[1]", "ARGS is JSON, but not an object");
        check("null", "ARGS is JSON, but not an object");
        check("{} {}", "ARGS is not valid JSON: trailing characters at line 1 column 4\n  {} {}\n     ^");
        check("", "ARGS is not valid JSON: EOF while parsing a value at line 1 column 0");
        check("{a: 1}", "ARGS is not valid JSON: key must be a string at line 1 column 2\n  {a: 1}\n   ^");
        check(
            "{\n\"é\": x}",
            "ARGS is not valid JSON: expected value at line 2 column 7\n  \"é\": x}\n       ^",
        );
        check(
            "{\"a\": ",
            "ARGS is not valid JSON: EOF while parsing a value at line 1 column 6\n  {\"a\": \n       ^",
        );
    }

    /// Checks the result of parsing `words`, which are separated by `|`.
    #[track_caller]
    fn check_words(words: &str, want: &str) {
        let words: Vec<String> = words.split('|').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let got = match parse(&words) {
            Ok(CallArguments::Object(json)) => json.as_str().to_owned(),
            Ok(CallArguments::Pairs(pairs)) => format!("{} pairs", pairs.len()),
            Err(ArgumentError { message, help: _ }) => message,
        };
        assert_eq!(got, want);
    }

    #[test]
    fn words_are_an_object_or_pairs() {
        check_words("", "{}");
        check_words(r#"{"a": "b=c"}"#, r#"{"a": "b=c"}"#);
        check_words("a=1|b:=[2]", "2 pairs");
        check_words("a=", "1 pairs");
        check_words("=a", "ARGS is not valid JSON: expected value at line 1 column 1\n  =a\n  ^");
        check_words("a=1|b", "with several arguments, each must be name=value; this one is not: b");
        check_words(
            "@/no/such/file",
            "could not read the arguments from /no/such/file: No such file or directory (os error 2)",
        );
    }

    #[test]
    fn long_line_is_not_quoted() {
        let message = parse_object(&format!("{{\"a\": \"{}\" x", "y".repeat(200))).unwrap_err().message;
        assert!(message.starts_with("ARGS is not valid JSON") && !message.contains('\n'), "{message}");
    }
}
