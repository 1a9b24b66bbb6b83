//! A line as it is typed, cut into words as a shell's user expects, but that JSON needs no quotes.
//!
//! `'…'` is taken as it is, `\` and `"…"` as a shell takes them; a word that is JSON, or becomes it behind `=` or `:=`,
//! goes on to its last bracket: `filter:={"a": [1, 2]}` is one word.

/// Why a line cannot be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    /// A quotation mark has no second one.
    Quote(char),
    /// A bracket is not closed.
    Bracket(char),
    /// It ends with `\`.
    Escape,
}

impl Open {
    /// What is missing, as a sentence.
    pub(crate) fn sentence(self) -> String {
        match self {
            Open::Quote(it) => format!("a second {it} is missing"),
            Open::Bracket(it) => format!("the bracket {it} is not closed"),
            Open::Escape => "nothing stands behind the last \\".to_owned(),
        }
    }
}

/// The words of a line. Fails where it goes on.
pub(crate) fn words(line: &str) -> Result<Vec<String>, Open> {
    let mut res = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = word(rest)?;
        res.push(word);
        rest = after.trim_start();
    }
    Ok(res)
}

/// The first word, and what stands behind it.
fn word(text: &str) -> Result<(String, &str), Open> {
    let mut res = String::new();
    let mut rest = text;
    // JSON may begin where a value does.
    let mut is_value = true;
    while let Some(first) = rest.chars().next() {
        match first {
            it if it.is_whitespace() => break,
            '{' | '[' if is_value => {
                let len = json(rest)?;
                res.push_str(&rest[..len]);
                rest = &rest[len..];
            }
            '\'' => {
                let inner = &rest[1..];
                let end = inner.find('\'').ok_or(Open::Quote('\''))?;
                res.push_str(&inner[..end]);
                rest = &inner[end + 1..];
            }
            '"' => rest = quoted(&rest[1..], &mut res)?,
            '\\' => {
                let escaped = rest[1..].chars().next().ok_or(Open::Escape)?;
                res.push(escaped);
                rest = &rest[1 + escaped.len_utf8()..];
            }
            it => {
                res.push(it);
                rest = &rest[it.len_utf8()..];
            }
        }
        is_value = res.ends_with('=');
    }
    Ok((res, rest))
}

/// What stands between double quotes goes to `to`; what stands behind them is returned.
fn quoted<'a>(text: &'a str, to: &mut String) -> Result<&'a str, Open> {
    let mut characters = text.char_indices();
    while let Some((at, it)) = characters.next() {
        match it {
            '"' => return Ok(&text[at + 1..]),
            '\\' => {
                let (_, escaped) = characters.next().ok_or(Open::Quote('"'))?;
                if !matches!(escaped, '"' | '\\' | '$' | '`') {
                    to.push('\\');
                }
                to.push(escaped);
            }
            it => to.push(it),
        }
    }
    Err(Open::Quote('"'))
}

/// How long the JSON is that begins here, by its brackets and strings alone.
fn json(text: &str) -> Result<usize, Open> {
    let mut open = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for (at, it) in text.char_indices() {
        match it {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' | '[' => open.push(it),
            '}' | ']' => {
                open.pop();
                if open.is_empty() {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
    }
    match in_string {
        true => Err(Open::Quote('"')),
        false => Err(Open::Bracket(open.last().copied().unwrap_or('{'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: &str) {
        let got = words(line).map_or_else(Open::sentence, |it| it.join("|"));
        assert_eq!(got, want);
    }

    #[test]
    fn words_are_cut_as_a_shell_cuts_them() {
        check("  echo text=hi  n=1 ", "echo|text=hi|n=1");
        check("echo text='a b' \"c \\\"d\\\" \\n\" e\\ f", "echo|text=a b|c \"d\" \\n|e f");
        check("echo text=''", "echo|text=");
        check("", "");
        check("echo 'a", "a second ' is missing");
        check("echo \"a", "a second \" is missing");
        check("echo a\\", "nothing stands behind the last \\");
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
        check("t {\"a", "a second \" is missing");
    }
}
