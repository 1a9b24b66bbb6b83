//! The arguments of a call as they are typed, or piped in: one JSON object, a file that holds one, or `name=value`.
//!
//! A JSON object is checked for being one and carried on as it is. What the tool wants of it is its schema's business,
//! not ours; the words of `name=value` become JSON only when the schema is there (see [`pairs`](super::pairs)).

use std::fs::File;
use std::io::{self, Read};

use mcp_model::RawJson;

use crate::commands::pairs::{Pair, pair};

/// What to do about arguments that are none.
const HELP: &str = r#"write one JSON object in single quotes, such as '{"text": "hello"}', or name=value, or @FILE, or `-` for standard input"#;

/// The most bytes that a file, or standard input, may hold.
const MOST: u64 = 64 << 20;

/// Arguments, as far as they can be read without the tool's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A JSON object.
    Object(RawJson),
    /// Words, each with a name.
    Pairs(Vec<Pair>),
}

/// Why a text is no set of arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// What is wrong, and where; of several lines.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: &'static str,
}

/// Reads the words that follow a tool's name. Blocks, where they name a file or standard input.
pub(crate) fn read(words: &[String]) -> Result<Typed, Unusable> {
    match words {
        [] => Ok(Typed::Object(RawJson::empty_object())),
        [word] if word == "-" => parse(&whole(io::stdin().lock(), "standard input")?).map(Typed::Object),
        [word] if word.starts_with('@') => {
            let path = &word[1..];
            let opened = File::open(path).map_err(|it| unreadable(path, &it))?;
            parse(&whole(opened, path)?).map(Typed::Object)
        }
        words if words.iter().all(|it| is_named(it)) => {
            words.iter().map(|it| pair(it)).collect::<Result<_, _>>().map(Typed::Pairs)
        }
        [word] => parse(word).map(Typed::Object),
        [_, ..] => {
            let other = words.iter().find(|it| !is_named(it)).map(String::as_str).unwrap_or_default();
            let message =
                format!("of several words each must be name=value; this one is not: {}", cut(other));
            Err(Unusable { message, help: HELP })
        }
    }
}

/// Does a word begin with a name and `=`? What begins as JSON does not.
fn is_named(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name.strip_suffix(':').unwrap_or(name));
    name.is_some_and(|it| !it.is_empty() && !it.starts_with(['{', '[', '"', '@']))
}

/// The beginning of a word, without what commands a terminal.
fn cut(word: &str) -> String {
    const LONGEST: usize = 60;
    let mut res: String = word.chars().filter(|it| !it.is_control()).take(LONGEST).collect();
    if word.chars().nth(LONGEST).is_some() {
        res.push('…');
    }
    res
}

fn whole(from: impl Read, name: &str) -> Result<String, Unusable> {
    let mut res = String::new();
    let read = from.take(MOST + 1).read_to_string(&mut res).map_err(|it| unreadable(name, &it))?;
    if read as u64 > MOST {
        let message = format!("{name} holds more than {} MiB", MOST >> 20);
        return Err(Unusable { message, help: HELP });
    }
    Ok(res)
}

fn unreadable(name: &str, error: &io::Error) -> Unusable {
    Unusable { message: format!("could not read the arguments from {name}: {error}"), help: HELP }
}

/// Reads one JSON object.
pub(super) fn parse(text: &str) -> Result<RawJson, Unusable> {
    match RawJson::parse(text.to_owned().into_bytes().into()) {
        Ok(json) if json.is_object() => Ok(json),
        Ok(_) => Err(Unusable { message: "ARGS-JSON is JSON, but no object".to_owned(), help: HELP }),
        Err(error) => {
            let mut message = format!("ARGS-JSON is no JSON: {error}");
            if let Some(excerpt) = excerpt(text, error.line(), error.column()) {
                message.push('\n');
                message.push_str(&excerpt);
            }
            Err(Unusable { message, help: HELP })
        }
    }
}

/// The line with the mistake and a mark below it, where the line is short enough to be looked at.
fn excerpt(text: &str, line: usize, column: usize) -> Option<String> {
    const LONGEST: usize = 100;
    let line = text.lines().nth(line.checked_sub(1)?)?;
    if line.len() > LONGEST || line.chars().any(char::is_control) {
        return None;
    }
    // serde_json counts bytes, and a mark stands below a character.
    let before = line.get(..column.saturating_sub(1).min(line.len()))?.chars().count();
    Some(format!("  {line}\n  {}^", " ".repeat(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = parse(text).map_or_else(|it| it.message, |it| it.as_str().to_owned());
        assert_eq!(got, want);
    }

    #[test]
    fn arguments_are_one_json_object() {
        check("{}", "{}");
        check(" {\"a\": 1.0} \n", "{\"a\": 1.0}");
        check("[1]", "ARGS-JSON is JSON, but no object");
        check("null", "ARGS-JSON is JSON, but no object");
        check("{} {}", "ARGS-JSON is no JSON: trailing characters at line 1 column 4\n  {} {}\n     ^");
        check("", "ARGS-JSON is no JSON: EOF while parsing a value at line 1 column 0");
        check("{a: 1}", "ARGS-JSON is no JSON: key must be a string at line 1 column 2\n  {a: 1}\n   ^");
        check(
            "{\n\"é\": x}",
            "ARGS-JSON is no JSON: expected value at line 2 column 7\n  \"é\": x}\n       ^",
        );
        check(
            "{\"a\": ",
            "ARGS-JSON is no JSON: EOF while parsing a value at line 1 column 6\n  {\"a\": \n       ^",
        );
    }

    /// The words are separated by `|`.
    #[track_caller]
    fn check_words(words: &str, want: &str) {
        let words: Vec<String> = words.split('|').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let got = match read(&words) {
            Ok(Typed::Object(json)) => json.as_str().to_owned(),
            Ok(Typed::Pairs(pairs)) => format!("{} pairs", pairs.len()),
            Err(Unusable { message, help: _ }) => message,
        };
        assert_eq!(got, want);
    }

    #[test]
    fn words_are_an_object_or_names_with_values() {
        check_words("", "{}");
        check_words(r#"{"a": "b=c"}"#, r#"{"a": "b=c"}"#);
        check_words("a=1|b:=[2]", "2 pairs");
        check_words("a=", "1 pairs");
        check_words("=a", "ARGS-JSON is no JSON: expected value at line 1 column 1\n  =a\n  ^");
        check_words("a=1|b", "of several words each must be name=value; this one is not: b");
        check_words(
            "@/no/such/file",
            "could not read the arguments from /no/such/file: No such file or directory (os error 2)",
        );
    }

    #[test]
    fn a_long_line_is_not_repeated() {
        let message = parse(&format!("{{\"a\": \"{}\" x", "y".repeat(200))).unwrap_err().message;
        assert!(message.starts_with("ARGS-JSON is no JSON") && !message.contains('\n'), "{message}");
    }
}
