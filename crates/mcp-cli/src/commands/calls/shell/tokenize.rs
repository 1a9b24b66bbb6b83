//! Splits a line into words like a shell; JSON needs no quotes.
//!
//! `'…'` is literal; `\` and `"…"` work as in a shell. JSON at the start of a word, or after `=` or `:=`,
//! extends to its closing bracket: `filter:={"a": [1, 2]}` is one word.

/// Why a line is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncompleteLine {
    /// A quotation mark is not closed.
    Quote(char),
    /// A bracket is not closed.
    Bracket(char),
    /// The line ends with `\`.
    Escape,
}

impl IncompleteLine {
    /// The error message.
    pub(crate) fn message(self) -> String {
        match self {
            IncompleteLine::Quote(quote) => format!("the quotation mark {quote} is not closed"),
            IncompleteLine::Bracket(bracket) => format!("the bracket {bracket} is not closed"),
            IncompleteLine::Escape => "the line ends with \\".to_owned(),
        }
    }
}

/// Splits a line into words. Fails if a quotation, a bracket or an escape is not closed.
pub(crate) fn split_words(line: &str) -> Result<Vec<String>, IncompleteLine> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = first_word(rest)?;
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

/// The first word, and the text after it.
fn first_word(text: &str) -> Result<(String, &str), IncompleteLine> {
    let mut word = String::new();
    let mut rest = text;
    // JSON may start at the beginning of a word or value.
    let mut is_value = true;
    while let Some(first) = rest.chars().next() {
        match first {
            character if character.is_whitespace() => break,
            '{' | '[' if is_value => {
                let len = json_length(rest)?;
                word.push_str(&rest[..len]);
                rest = &rest[len..];
            }
            '\'' => {
                let inner = &rest[1..];
                let end = inner.find('\'').ok_or(IncompleteLine::Quote('\''))?;
                word.push_str(&inner[..end]);
                rest = &inner[end + 1..];
            }
            '"' => rest = read_quoted(&rest[1..], &mut word)?,
            '\\' => {
                let escaped = rest[1..].chars().next().ok_or(IncompleteLine::Escape)?;
                word.push(escaped);
                rest = &rest[1 + escaped.len_utf8()..];
            }
            character => {
                word.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
        is_value = word.ends_with('=');
    }
    Ok((word, rest))
}

/// Appends the text up to the closing double quote to `word`, and returns the text after it.
fn read_quoted<'a>(text: &'a str, word: &mut String) -> Result<&'a str, IncompleteLine> {
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Ok(&text[index + 1..]),
            '\\' => {
                let (_, escaped) = characters.next().ok_or(IncompleteLine::Quote('"'))?;
                if !matches!(escaped, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(escaped);
            }
            character => word.push(character),
        }
    }
    Err(IncompleteLine::Quote('"'))
}

/// The length in bytes of the JSON at the start of `text`. Only brackets and strings are read.
fn json_length(text: &str) -> Result<usize, IncompleteLine> {
    let mut open_brackets = Vec::new();
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' | '[' => open_brackets.push(character),
            '}' | ']' => {
                open_brackets.pop();
                if open_brackets.is_empty() {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
    }
    if in_string {
        return Err(IncompleteLine::Quote('"'));
    }
    Err(IncompleteLine::Bracket(open_brackets.last().copied().unwrap_or('{')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: &str) {
        let got = split_words(line).map_or_else(IncompleteLine::message, |it| it.join("|"));
        assert_eq!(got, want);
    }

    #[test]
    fn words_are_split_like_in_a_shell() {
        check("  echo text=hi  n=1 ", "echo|text=hi|n=1");
        check("echo text='a b' \"c \\\"d\\\" \\n\" e\\ f", "echo|text=a b|c \"d\" \\n|e f");
        check("echo text=''", "echo|text=");
        check("", "");
        check("echo 'a", "the quotation mark ' is not closed");
        check("echo \"a", "the quotation mark \" is not closed");
        check("echo a\\", "the line ends with \\");
    }

    #[test]
    fn json_needs_no_quotes() {
        check(r#"add {"a": 2, "b": [1, 2]}"#, r#"add|{"a": 2, "b": [1, 2]}"#);
        check(r#"t f:={"a": "} {"} g=[1, 2] h"#, r#"t|f:={"a": "} {"}|g=[1, 2]|h"#);
        check(r#"t {"a": "\" }"}"#, r#"t|{"a": "\" }"}"#);
        check("t {\"a\":\n 1}", "t|{\"a\":\n 1}");
        check("t a{b", "t|a{b");
        check("t {\"a\":", "the bracket { is not closed");
        check("t [{\"a\": 1}", "the bracket [ is not closed");
        check("t {\"a", "the quotation mark \" is not closed");
    }
}
