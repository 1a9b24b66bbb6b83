//! The arguments of a call as they are typed, or piped in.
//!
//! They are checked for being one JSON object and carried on as they are. What the tool wants of them is its schema's
//! business, not ours.

use std::io::{self, Read};

use mcp_model::RawJson;

/// What to do about arguments that are none.
const HELP: &str =
    r#"write one JSON object in single quotes, such as '{"text": "hello"}', or `-` for standard input"#;

/// Why a text is no set of arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// What is wrong, and where; of several lines.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: &'static str,
}

/// Everything on standard input. Blocks.
pub(crate) fn from_standard_input() -> Result<String, Unusable> {
    let mut res = String::new();
    match io::stdin().lock().read_to_string(&mut res) {
        Ok(_) => Ok(res),
        Err(error) => {
            let message = format!("could not read ARGS-JSON from standard input: {error}");
            Err(Unusable { message, help: HELP })
        }
    }
}

/// Reads the arguments of a call.
pub(crate) fn parse(text: &str) -> Result<RawJson, Unusable> {
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

    #[test]
    fn a_long_line_is_not_repeated() {
        let message = parse(&format!("{{\"a\": \"{}\" x", "y".repeat(200))).unwrap_err().message;
        assert!(message.starts_with("ARGS-JSON is no JSON") && !message.contains('\n'), "{message}");
    }
}
