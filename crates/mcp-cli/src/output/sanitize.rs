//! Removes escape sequences, control characters and invisible characters from untrusted text.
//!
//! A server must not be able to control the terminal or to imitate our messages. Callers pass untrusted text through
//! [`line`] or [`block`]. As a second defence, all output passes through [`for_terminal`].
//!
//! Escape sequences are removed first, as a whole; then control characters, and Unicode characters that hide or reorder
//! text.

use anstream::adapter::strip_str;
use mcp_host_config::Colour;
use mcp_host_model::{is_invisible, is_joiner};

/// Sanitizes text of several lines; keeps line feeds and tabs.
pub(crate) fn block(text: &str) -> String {
    let stripped = strip_str(text).to_string();
    stripped.chars().filter(|it| matches!(it, '\n' | '\t') || !is_unsafe(*it)).collect()
}

/// Sanitizes text and joins it to one line; each run of white space becomes one space.
pub(crate) fn line(text: &str) -> String {
    let block = block(&text.replace(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\n"));
    block.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sanitizes one line of text and hides nothing: what [`line`] would remove becomes an escape such as `\u{1b}`.
pub(crate) fn visible(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unsafe(character) {
            res.extend(character.escape_default());
        } else {
            res.push(character);
        }
    }
    res
}

/// Sanitizes the complete output of a command; keeps line feeds, tabs and, if `colour` allows them, colour sequences.
pub(crate) fn for_terminal(text: &str, colour: Colour) -> String {
    let is_plain = |it: char| matches!(it, '\n' | '\t') || !is_unsafe(it);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut res = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|it| !is_plain(it)) {
        let (before, found) = rest.split_at(at);
        res.push_str(before);
        let style_length = match colour {
            Colour::Always => leading_style_length(found),
            Colour::Never => 0,
        };
        res.push_str(&found[..style_length]);
        let skipped =
            if style_length > 0 { style_length } else { found.chars().next().map_or(0, char::len_utf8) };
        rest = &found[skipped..];
    }
    res.push_str(rest);
    res
}

/// The length of the colour sequence at the start of `text`: `ESC [`, digits and semicolons, `m`. 0 if there is none.
fn leading_style_length(text: &str) -> usize {
    let Some(inner) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = inner.bytes().take_while(|it| it.is_ascii_digit() || *it == b';').count();
    if inner.as_bytes().get(digits) == Some(&b'm') { digits + 3 } else { 0 }
}

/// Replaces unsafe characters in JSON by `\u` escapes; the JSON value stays the same.
pub(crate) fn json(text: &str) -> String {
    if !text.chars().any(|it| it != '\n' && is_unsafe(it)) {
        return text.to_owned();
    }
    let mut res = String::with_capacity(text.len() + 16);
    for it in text.chars() {
        if it == '\n' || !is_unsafe(it) {
            res.push(it);
            continue;
        }
        // JSON has such characters only within strings, where the escape means the same.
        for unit in it.encode_utf16(&mut [0; 2]) {
            res.push_str(&format!("\\u{unit:04x}"));
        }
    }
    res
}

fn is_unsafe(character: char) -> bool {
    character.is_control() || (is_invisible(character) && !is_joiner(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(block(text), want, "{text:?}");
    }

    #[test]
    fn escape_sequences_and_control_characters_are_removed() {
        check("plain\n\ttext é 漢 👩\u{200d}🔬", "plain\n\ttext é 漢 👩\u{200d}🔬");
        check("a\u{1b}[31mred\u{1b}[0m", "ared");
        check("\u{1b}]0;title\u{7}x", "x");
        check("\u{1b}]8;;http://e\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("over\rwritten\u{8}\u{8}", "overwritten");
        check("\u{9b}31mx\u{7f}\0", "31mx");
        check("\u{202e}txt.exe\u{2066}", "txt.exe");
        // RPT-260
        check("pay\u{ad}\u{3164}\u{115f}load\u{fe0f}\u{e0101}\u{2800}", "payload");
        check("hidden\u{e0041}\u{e0042}", "hidden");
        check("\u{1b}", "");
        check("a\r\nb", "a\nb");
    }

    #[test]
    fn final_pass_keeps_only_colour_sequences() {
        let text = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: a\u{1b}[2Jb\u{7}\u{202e}\r\u{9b}5m\t\u{1b}]0;x\u{7}\n";
        let want = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: a[2Jb5m\t]0;x\n";
        assert_eq!(for_terminal(text, Colour::Always), want);
        assert_eq!(for_terminal(text, Colour::Never), "[1m[31merror[0m: a[2Jb5m\t]0;x\n");
        assert_eq!(for_terminal("é 漢 👩\u{200d}🔬\n", Colour::Never), "é 漢 👩\u{200d}🔬\n");
    }

    #[test]
    fn json_escapes_keep_the_value() {
        let text = "{\"a\":\"\u{9b}2J\u{7f}\u{202e}\u{e0041}é\"}\n";
        let got = json(text);
        assert_eq!(got, "{\"a\":\"\\u009b2J\\u007f\\u202e\\udb40\\udc41é\"}\n");
        let value = |it: &str| serde_json::from_str::<serde_json::Value>(it).unwrap();
        assert_eq!(value(&got), value(text));
    }

    #[track_caller]
    fn check_line(text: &str, want: &str) {
        assert_eq!(line(text), want, "{text:?}");
    }

    #[test]
    fn line_joins_white_space() {
        check_line(" a\n\n b\tc ", "a b c");
        check_line("a\rb\u{2028}c\u{85}d", "a b c d");
        check_line("\u{1b}[2Ja", "a");
        check_line("", "");
    }
}
