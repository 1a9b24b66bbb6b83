//! Redacts known secrets in text from a server, because a server may repeat the secrets that it received.

mod json;
mod names;

use std::cell::Cell;
use std::iter::Peekable;
use std::str::Chars;

use mcp_host_model::{Secret, is_invisible};
use parking_lot::Mutex;

pub use json::map_json_strings;
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
        let mut res = replace_secrets(&self.secrets(), without_control_characters(text));
        if res.len() > limit {
            let cut = (0..=limit).rev().find(|it| res.is_char_boundary(*it)).unwrap_or_default();
            res.truncate(cut);
            res.push('\u{2026}');
        }
        res
    }
}

/// Redacts these secrets in the text, also those that control characters interrupt. `None` if it contains none.
fn redact_with(secrets: &[Secret], text: &str) -> Option<String> {
    let mut res = None;
    for secret in secrets {
        let current: &str = res.as_deref().unwrap_or(text);
        if current.contains(secret.expose()) {
            res = Some(current.replace(secret.expose(), "***"));
        }
    }
    // A secret that is interrupted by invisible characters is found after their removal.
    let visible = without_control_characters(res.as_deref().unwrap_or(text));
    if secrets.iter().any(|it| visible.contains(it.expose())) {
        Some(replace_secrets(secrets, visible))
    } else {
        res
    }
}

/// Replaces these secrets where they are uninterrupted.
fn replace_secrets(secrets: &[Secret], mut text: String) -> String {
    for secret in secrets {
        if text.contains(secret.expose()) {
            text = text.replace(secret.expose(), "***");
        }
    }
    text
}

/// Removes control characters, escape sequences and invisible characters, which could control the terminal of the user,
/// or interrupt a secret. Tabs and line breaks become blanks.
fn without_control_characters(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape_sequence(&mut characters),
            '\t' | '\n' => res.push(' '),
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
