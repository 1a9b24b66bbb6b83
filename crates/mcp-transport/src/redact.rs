//! Takes out of a text the secrets that we know, for a server may repeat what it was given.

use mcp_model::Secret;

/// Values shorter than this are not looked for: they are no secrets, and would hide half of every message.
const SHORTEST: usize = 6;

/// The values to look for.
pub(crate) struct Redactor(Vec<Secret>);

impl Redactor {
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Redactor {
        let mut secrets: Vec<Secret> = secrets.filter(|it| it.expose().len() >= SHORTEST).cloned().collect();
        // A secret may contain another one: the longest goes first.
        secrets.sort_by_key(|it| std::cmp::Reverse(it.expose().len()));
        Redactor(secrets)
    }

    /// The text without secrets and control characters, cut to `limit` bytes.
    pub(crate) fn clean(&self, text: &str, limit: usize) -> String {
        let mut res = text.to_owned();
        for secret in &self.0 {
            if res.contains(secret.expose()) {
                res = res.replace(secret.expose(), "***");
            }
        }
        // Escape sequences would paint the reader's terminal.
        let mut clean = String::with_capacity(res.len().min(limit));
        let mut characters = res.chars().peekable();
        while let Some(character) = characters.next() {
            if clean.len() + character.len_utf8() > limit {
                clean.push('\u{2026}');
                break;
            }
            match character {
                '\u{1b}' if characters.next_if_eq(&'[').is_some() => {
                    characters.by_ref().find(|it| ('@'..='~').contains(it));
                }
                '\t' => clean.push(' '),
                it if it.is_control() => {}
                it => clean.push(it),
            }
        }
        clean
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

    #[test]
    fn hd_sc5_known_secrets_do_not_come_back() {
        check("login with hunter2 failed", "login with *** failed");
        check("hunter2-and-more, 1", "***, 1");
    }

    #[test]
    fn a_line_is_plain_and_bounded() {
        check("\u{1b}[31mred\u{1b}[0m\ta\u{7}b\r", "red ab");
        check(&"x".repeat(50), &format!("{}\u{2026}", "x".repeat(40)));
    }
}
