//! Redacts known secrets in text from a server, because a server may repeat the secrets that it received.

mod json;
#[cfg(feature = "stdio")]
mod lines;
mod names;

use std::cell::Cell;
use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;

use mcp_host_model::{Secret, is_invisible};
use parking_lot::Mutex;

pub use json::map_json_strings;
#[cfg(feature = "stdio")]
pub(crate) use lines::LineCleaner;
pub use names::argument_secrets;
#[cfg(feature = "stdio")]
pub(crate) use names::inherited_secrets;
#[cfg(any(feature = "endpoint", feature = "stdio"))]
pub(crate) use names::stdio_secrets;

/// The minimum length of a secret. Shorter values are not redacted: they are usually no secrets, and replacing them
/// would make messages unreadable.
const MIN_SECRET_BYTES: usize = 6;

/// The minimum length of a word of a value that counts as a secret alone. Shorter words are common words.
const MIN_WORD_BYTES: usize = 8;

/// Returns a secret and the parts of it that a server may repeat alone: the text after a first `=` or `:` (`--token=X`,
/// `Authorization:Bearer X`), both words of a value with two, and the user, password and query values of a URL.
pub fn secret_parts(value: &Secret) -> Vec<Secret> {
    let whole = value.expose();
    let mut res = vec![value.clone()];
    // `/bin:/usr/bin` has no name before the colon, and redacting `/usr/bin` would make messages unreadable.
    let is_name = |it: &str| it.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
    let named = ['=', ':'].into_iter().filter_map(|it| whole.split_once(it));
    let values = named.filter(|(name, _)| is_name(name)).map(|(_, values)| values.trim());
    let parts: Vec<&str> = std::iter::once(whole).chain(values).collect();
    res.extend(parts[1..].iter().map(|it| Secret::from(*it)));
    // `Bearer X` has two words; a longer text, such as a script, has common words.
    let short = parts.iter().filter(|it| it.split_whitespace().count() <= 2);
    let words = short.flat_map(|it| it.split_whitespace());
    res.extend(words.filter(|it| it.len() >= MIN_WORD_BYTES).map(Secret::from));
    if let Some((_, rest)) = whole.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user).unwrap_or_default();
        res.extend(user.splitn(2, ':').map(Secret::from));
        let query = rest.split_once('?').map(|(_, it)| it.split('#').next().unwrap_or_default());
        let values = query.into_iter().flat_map(|it| it.split('&'));
        res.extend(values.filter_map(|it| it.split_once('=')).map(|(_, value)| Secret::from(value)));
    }
    res
}

/// Maximum number of added secrets. These are tokens that replace each other, so the newest ones are kept.
#[cfg(any(feature = "http", feature = "sse"))]
const MAX_ADDED: usize = 8;

/// Returns the strings in a secret that is a JSON object or array, such as a configuration for a server, with their
/// parts. The server may repeat each of them alone. Empty for any other value.
pub fn json_secrets(value: &Secret) -> Vec<Secret> {
    if !value.expose().trim_start().starts_with(['{', '[']) {
        return Vec::new();
    }
    let mut rest: Vec<serde_json::Value> = serde_json::from_str(value.expose()).into_iter().collect();
    let mut res = Vec::new();
    while let Some(value) = rest.pop() {
        match value {
            serde_json::Value::String(text) => res.extend(secret_parts(&Secret::new(text))),
            serde_json::Value::Array(items) => rest.extend(items),
            serde_json::Value::Object(members) => rest.extend(members.into_iter().map(|(_, it)| it)),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }
    res
}

/// Redacts a set of secrets.
pub struct Redactor {
    /// The secrets of the configuration, longest first.
    configured: Vec<Secret>,
    /// The secrets that were added later, newest first.
    added: Mutex<Vec<Secret>>,
}

impl Redactor {
    /// A redactor of these secrets. Very short ones are ignored.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Redactor {
        // Messages are single lines, so a value of several lines (a PEM key) is searched line by line.
        let lines = secrets.flat_map(|it| it.expose().lines().map(str::trim));
        let mut secrets: Vec<Secret> =
            lines.filter(|it| it.len() >= MIN_SECRET_BYTES).map(Secret::from).collect();
        // A secret may contain another one: the longest comes first.
        secrets.sort_by_key(|it| std::cmp::Reverse(it.expose().len()));
        Redactor { configured: secrets, added: Mutex::default() }
    }

    /// Adds a secret.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub fn add(&self, secret: &Secret) {
        let mut added = self.added.lock();
        if secret.expose().len() < MIN_SECRET_BYTES || added.iter().any(|it| it.expose() == secret.expose()) {
            return;
        }
        added.insert(0, secret.clone());
        added.truncate(MAX_ADDED);
    }

    /// Whether there is no secret to redact.
    #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
    pub fn is_empty(&self) -> bool {
        self.secrets().is_empty()
    }

    /// All secrets, the added ones first.
    fn secrets(&self) -> Vec<Secret> {
        let added = self.added.lock();
        added.iter().chain(&self.configured).cloned().collect()
    }

    /// Redacts the text; `None` if it contains no secret.
    pub fn redact(&self, text: &str) -> Option<String> {
        redact_with(&self.secrets(), text)
    }

    /// Redacts JSON and puts it on one line; `None` if it contains no secret.
    pub fn redact_json(&self, json: &str) -> Option<String> {
        let secrets = self.secrets();
        // Fast path: without escapes, a secret in a string would also be in the text.
        if !json.contains('\\') && redact_with(&secrets, json).is_none() {
            return None;
        }
        let is_redacted = Cell::new(false);
        let res = map_json_strings(json, |it| redact_with(&secrets, it).inspect(|_| is_redacted.set(true)));
        is_redacted.get().then_some(res)
    }

    /// Returns the text on one line, redacted, without control characters, cut to `limit` bytes.
    pub fn clean(&self, text: &str, limit: usize) -> String {
        // Control characters are removed first, so that one inside a secret does not prevent its redaction.
        let visible = without_control_characters(text);
        let mut res = redact_with(&self.secrets(), &visible).unwrap_or(visible).replace('\n', " ");
        if res.len() > limit {
            let cut = (0..=limit).rev().find(|it| res.is_char_boundary(*it)).unwrap_or_default();
            res.truncate(cut);
            res.push('\u{2026}');
        }
        res
    }
}

/// Redacts these secrets in the text, also those that control characters, invisible characters or line breaks
/// interrupt. `None` if it contains none.
fn redact_with(secrets: &[Secret], text: &str) -> Option<String> {
    let found = find_secrets(secrets, text);
    let res = (!found.is_empty()).then(|| mask(text, found));
    // A secret that is interrupted is found after the removal of what interrupts it.
    let visible = without_control_characters(res.as_deref().unwrap_or(text));
    let interrupted = find_secrets(secrets, &visible);
    if interrupted.is_empty() { res } else { Some(mask(&visible, interrupted)) }
}

/// Finds the secrets in a text. A line break in the text stands for a blank, or interrupts a word.
fn find_secrets(secrets: &[Secret], text: &str) -> Vec<Range<usize>> {
    let find_all = |text: &str| {
        let found = secrets.iter().flat_map(|secret| {
            text.match_indices(secret.expose()).map(|(start, part)| start..start + part.len())
        });
        found.collect::<Vec<Range<usize>>>()
    };
    if !text.contains('\n') {
        return find_all(text);
    }
    let mut res = find_all(&text.replace('\n', " "));
    let (joined, positions) = join_lines(text);
    res.extend(find_all(&joined).into_iter().map(|it| positions[it.start]..positions[it.end - 1] + 1));
    res
}

/// Joins the lines of a text without their indentation. Returns the position in the text of each byte.
fn join_lines(text: &str) -> (String, Vec<usize>) {
    let (mut joined, mut positions, mut start) = (String::new(), Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        let at = start + (line.len() - line.trim_start().len());
        joined.push_str(content);
        positions.extend(at..at + content.len());
        start += line.len();
    }
    (joined, positions)
}

/// Replaces these ranges of a text. Ranges that overlap are replaced as one.
fn mask(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let (mut res, mut end) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        if range.start >= end {
            res.push_str(&text[end..range.start]);
            res.push_str("***");
        }
        end = end.max(range.end);
    }
    res.push_str(&text[end..]);
    res
}

/// Removes control characters, escape sequences and invisible characters, which could control the terminal of the user,
/// or interrupt a secret. Tabs become blanks, and line breaks stay.
fn without_control_characters(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape_sequence(&mut characters),
            '\t' => res.push(' '),
            '\n' => res.push('\n'),
            it if it.is_control() || is_invisible(it) => {}
            it => res.push(it),
        }
    }
    res
}

/// Skips what follows an escape character: the parameters of a control sequence, or a string up to its terminator.
fn skip_escape_sequence(characters: &mut Peekable<Chars<'_>>) {
    match characters.next_if(|it| "[]PX^_".contains(*it)) {
        Some('[') => {
            characters.by_ref().find(|it| ('@'..='~').contains(it));
        }
        Some(_) => {
            while let Some(character) = characters.next() {
                if character == '\u{7}' || (character == '\u{1b}' && characters.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let secrets = [Secret::new("hunter2-and-more"), Secret::new("hunter2"), Secret::new("1")];
        assert_eq!(Redactor::new(secrets.iter()).clean(text, 40), want);
    }

    /// Checks the redacted text of a server that received `value`.
    #[track_caller]
    fn check_parts(value: &str, text: &str, want: &str) {
        assert_eq!(Redactor::new(secret_parts(&Secret::new(value)).iter()).clean(text, 200), want);
    }

    #[test]
    fn hd_sc5_parts_of_a_secret_are_redacted() {
        check_parts("--token=hunter2-and-more", "bad token hunter2-and-more", "bad token ***");
        check_parts("Authorization:Bearer abcdefgh", "no abcdefgh", "no ***");
        check_parts("Bearer abcdefgh", "Bearer is no abcdefgh", "Bearer is no ***");
        check_parts("postgres://me:pa55word@db/x?sslkey=k3yk3y", "pa55word k3yk3y of db", "*** *** of db");
        check_parts("plain", "a plain word", "a plain word");
        check_parts("echo starting up >&2; exit 3", "starting up", "starting up");
        check_parts("/bin:/usr/bin", "nothing in /usr/bin", "nothing in /usr/bin");
    }

    #[test]
    fn hd_sc5_known_secrets_are_redacted() {
        check("login with hunter2 failed", "login with *** failed");
        check("hunter2-and-more, 1", "***, 1");
        check("hun\u{7}ter2", "***");
        // RPT-260: nothing that is not seen interrupts a secret.
        for hidden in [
            "\u{200b}",
            "\u{ad}",
            "\u{202e}",
            "\u{fe0f}",
            "\u{e0041}",
            "\u{3164}",
            "\u{1b}]0;x\u{7}",
            "\u{1b}]8;;x\u{1b}\\",
        ] {
            check(&format!("hun{hidden}ter2"), "***");
            let json = format!("{{\"a\":\"no hunter{hidden}2-and-more\"}}");
            let secrets = [Secret::new("hunter2-and-more")];
            let json = Redactor::new(secrets.iter())
                .redact_json(&json.replace('\u{1b}', "\\u001b").replace('\u{7}', "\\u0007"));
            assert!(json.is_none_or(|it| it == r#"{"a":"no ***"}"#), "{hidden:?}");
        }
        let key = Secret::new("-----BEGIN KEY-----\nMIIEabcdef\n-----END KEY-----\n");
        assert_eq!(Redactor::new(std::iter::once(&key)).clean("read MIIEabcdef", 40), "read ***");
    }

    // RPT-264
    #[test]
    fn secret_in_several_lines_is_redacted() {
        check("no hunter2-\nand-more", "no ***");
        check("no hunter2-\r\n   and-more, see", "no ***, see");
        check("hun\nter2\nand on", "*** and on");
        check("hunt\u{1b}[0m\ner2", "***");
        check_parts("correct horse battery", "a correct\nhorse battery", "a ***");
        check_json("[\"a\\nhunter2-and\\n-more\"]", Some("[\"a\\n***\"]"));
        check_json("[\"a\\nhunter2 and\\nmore\"]", None);
    }

    #[track_caller]
    fn check_json(json: &str, want: Option<&str>) {
        let secrets = [Secret::new("hunter2-and-more"), Secret::new("say \"x\"")];
        assert_eq!(Redactor::new(secrets.iter()).redact_json(json).as_deref(), want);
    }

    #[test]
    fn hd_sc5_json_without_secrets_is_unchanged() {
        check_json(r#"{ "data" : "a\nb", "n": 1.50 }"#, None);
        check_json(r#"{"data":"hunter2"}"#, None);
        check_json(r#"{ "data" : "hunter2-and-more", "n": 1.50 }"#, Some(r#"{"data":"***","n":1.50}"#));
        check_json(r#"["a\nb \u0068unter2-and-more"]"#, Some(r#"["a\nb ***"]"#));
        check_json(r#"{"he will say \"x\"":1}"#, Some(r#"{"he will ***":1}"#));
        let long = "x".repeat(5_000);
        check_json(&format!(r#"["{long} hunter2-and-more"]"#), Some(&format!(r#"["{long} ***"]"#)));
    }

    #[test]
    fn cleaned_text_has_no_control_characters_and_is_cut() {
        check("\u{1b}[31mred\u{1b}[0m\ta\u{7}b\r", "red ab");
        check(&"x".repeat(50), &format!("{}\u{2026}", "x".repeat(40)));
    }
}
