//! The length of lines. rustfmt leaves comments, strings and macro arguments as they are.

use crate::error::Violation;
use crate::tree::Source;
use crate::tree::rust::RustFile;

/// The most characters of a line.
const MAX_WIDTH: usize = 120;

/// A word of this length, such as a URL, cannot be broken.
const LONG_WORD: usize = 60;

/// Pages in which a paragraph is one line: the explanations of diagnostics, as a program prints them.
const ONE_LINE_PARAGRAPHS: [&str; 2] = ["docs/diagnostics/", "crates/mcp-config/src/diagnostic/"];

/// Checks a Rust file. Lines that cannot be broken pass: those of raw strings and of tables in comments.
pub(super) fn check_rust(file: &RustFile) -> Vec<Violation> {
    let mut start = 0;
    let lines = file.text.split('\n').enumerate().filter(|(_, line)| {
        let end = start + line.len();
        let is_raw = file.raw_literals.iter().any(|raw| raw.start < end && raw.end > start);
        start = end + 1;
        !is_raw
    });
    lines.filter_map(|(index, line)| check_line(&file.path, index, line)).collect()
}

/// Checks a Markdown file. Tables and code blocks pass.
pub(super) fn check_markdown(source: &Source) -> Vec<Violation> {
    if ONE_LINE_PARAGRAPHS.iter().any(|it| source.path.starts_with(it)) {
        return Vec::new();
    }
    let mut is_code = false;
    let lines = source.text.lines().enumerate().filter(|(_, line)| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code
    });
    lines.filter_map(|(index, line)| check_line(&source.path, index, line)).collect()
}

/// The violation of one line. A row of a table passes, and a line with a word that cannot be broken.
fn check_line(path: &str, index: usize, line: &str) -> Option<Violation> {
    let width = line.chars().count();
    let is_table = || line.trim_start().trim_start_matches(['/', '!']).trim_start().starts_with('|');
    let has_long_word = || line.split(' ').any(|word| word.chars().count() > LONG_WORD);
    (width > MAX_WIDTH && !is_table() && !has_long_word()).then(|| {
        let message = format!("{width} characters, more than {MAX_WIDTH}: break the line");
        Violation::new(path, index + 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[track_caller]
    fn check_line(line: &str, expected: &[usize]) {
        let text = format!("//! Subject.\n{line}\n");
        let found = check_rust(&Tree::of(&[("a/src/lib.rs", &text)]).rust_files[0]);
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), expected, "{line}");
    }

    #[test]
    fn a_long_line_is_found() {
        check_line(&format!("// {}", "é ".repeat(58)), &[]);
        check_line(&format!("// {}", "é ".repeat(60)), &[2]);
        check_line(&format!("const A: &str = \"{}\";", "a ".repeat(60)), &[2]);
    }

    #[test]
    fn a_line_that_cannot_be_broken_passes() {
        check_line(&format!("// https://example.com/{}", "a".repeat(110)), &[]);
        check_line(&format!("// | {} |", "a ".repeat(60)), &[]);
        check_line(&format!("const A: &str = r#\"\n{}\"#;", "a ".repeat(70)), &[]);
        check_line(&format!("const A: &[u8] = br\"{}\";", "a ".repeat(70)), &[]);
    }

    #[test]
    fn a_paragraph_of_a_page_is_broken() {
        let check = |path: &str, text: &str| check_markdown(&Tree::of(&[(path, text)]).sources[0]).len();
        let long = "a ".repeat(70);
        assert_eq!(check("a.md", &format!("```\n{long}\n```\n| {long} |\n{long}\n")), 1);
        assert_eq!(check("docs/diagnostics/a.md", &long), 0);
    }
}
