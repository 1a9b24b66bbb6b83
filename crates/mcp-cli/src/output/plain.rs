//! A stranger's text made harmless: a terminal obeys what it is sent, and a server is not to command it.
//!
//! Each place that shows a stranger's words puts them on one line, or into a block, so that they cannot look like words of
//! ours. Whatever a place forgets, [`shown`] takes out: everything that is written passes it last.
//!
//! Escape sequences go whole, so that nothing of them is left as letters; then control characters, and the characters
//! that turn or hide what stands beside them.

use anstream::adapter::strip_str;
use mcp_config::Colour;

/// Text of several lines: line ends and tabs stay.
pub(crate) fn block(text: &str) -> String {
    let stripped = strip_str(text).to_string();
    stripped.chars().filter(|it| matches!(it, '\n' | '\t') || !is_hidden(*it)).collect()
}

/// Text on one line: every run of white space is one space.
pub(crate) fn line(text: &str) -> String {
    let block = block(&text.replace(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\n"));
    block.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What may go to a terminal of all that a command says: text, line ends, tabs, and our own colours where there are any.
pub(crate) fn shown(text: &str, colour: Colour) -> String {
    let is_plain = |it: char| matches!(it, '\n' | '\t') || !is_hidden(it);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut res = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|it| !is_plain(it)) {
        let (before, found) = rest.split_at(at);
        res.push_str(before);
        let kept = match colour {
            Colour::Always => style_length(found),
            Colour::Never => 0,
        };
        res.push_str(&found[..kept]);
        let skipped = if kept > 0 { kept } else { found.chars().next().map_or(0, char::len_utf8) };
        rest = &found[skipped..];
    }
    res.push_str(rest);
    res
}

/// How long the style is that a text begins with: `ESC [`, digits and semicolons, `m`. Nothing else is one.
fn style_length(text: &str) -> usize {
    let Some(inner) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = inner.bytes().take_while(|it| it.is_ascii_digit() || *it == b';').count();
    if inner.as_bytes().get(digits) == Some(&b'm') { digits + 3 } else { 0 }
}

/// JSON that means the same and holds nothing that a terminal obeys, or hides.
pub(crate) fn json(text: &str) -> String {
    if !text.chars().any(|it| it != '\n' && is_hidden(it)) {
        return text.to_owned();
    }
    let mut res = String::with_capacity(text.len() + 16);
    for it in text.chars() {
        if it == '\n' || !is_hidden(it) {
            res.push(it);
            continue;
        }
        // Outside of strings JSON has none of them, and within this is another way to write the same.
        for unit in it.encode_utf16(&mut [0; 2]) {
            res.push_str(&format!("\\u{unit:04x}"));
        }
    }
    res
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(block(text), want, "{text:?}");
    }

    #[test]
    fn a_terminal_is_not_commanded() {
        check("plain\n\ttext é 漢 👩\u{200d}🔬", "plain\n\ttext é 漢 👩\u{200d}🔬");
        check("a\u{1b}[31mred\u{1b}[0m", "ared");
        check("\u{1b}]0;title\u{7}x", "x");
        check("\u{1b}]8;;http://e\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("over\rwritten\u{8}\u{8}", "overwritten");
        check("\u{9b}31mx\u{7f}\0", "31mx");
        check("\u{202e}txt.exe\u{2066}", "txt.exe");
        check("hidden\u{e0041}\u{e0042}", "hidden");
        check("\u{1b}", "");
        check("a\r\nb", "a\nb");
    }

    #[test]
    fn what_a_place_forgets_is_taken_out_in_the_end() {
        let text = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: a\u{1b}[2Jb\u{7}\u{202e}\r\u{9b}5m\t\u{1b}]0;x\u{7}\n";
        let want = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: a[2Jb5m\t]0;x\n";
        assert_eq!(shown(text, Colour::Always), want);
        assert_eq!(shown(text, Colour::Never), "[1m[31merror[0m: a[2Jb5m\t]0;x\n");
        assert_eq!(shown("é 漢 👩\u{200d}🔬\n", Colour::Never), "é 漢 👩\u{200d}🔬\n");
    }

    #[test]
    fn json_means_the_same_without_what_a_terminal_obeys() {
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
    fn one_line_stays_one_line() {
        check_line(" a\n\n b\tc ", "a b c");
        check_line("a\rb\u{2028}c\u{85}d", "a b c d");
        check_line("\u{1b}[2Ja", "a");
        check_line("", "");
    }
}
