//! A stranger's text made harmless: a terminal obeys what it is sent, and a server is not to command it.
//!
//! Escape sequences go whole, so that nothing of them is left as letters; then control characters, and the characters
//! that turn or hide what stands beside them.

use anstream::adapter::strip_str;

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

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
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
