//! The length of lines. rustfmt leaves comments, strings and macro arguments as they are.

use crate::error::Violation;
use crate::tree::rust::RustFile;

/// The most characters of a line.
const MAX_WIDTH: usize = 120;

/// A word of this length, such as a URL, cannot be broken.
const LONG_WORD: usize = 60;

/// Folders with longer lines that are still to be broken.
const EXEMPT: [&str; 6] = [
    "crates/mcp-config/",
    "crates/mcp-gateway/",
    "crates/mcp-model/",
    "crates/mcp-recording/",
    "crates/mcp-transport/",
    "tests/",
];

/// Checks one file. Lines that cannot be broken pass: those of raw strings and of tables in comments.
pub(super) fn check(file: &RustFile) -> Vec<Violation> {
    let mut res = Vec::new();
    if EXEMPT.iter().any(|folder| file.path.starts_with(folder)) {
        return res;
    }
    let mut start = 0;
    for (index, line) in file.text.split('\n').enumerate() {
        let end = start + line.len();
        let width = line.chars().count();
        let is_raw = || file.raw_literals.iter().any(|raw| raw.start < end && raw.end > start);
        let is_table = || line.trim_start().trim_start_matches(['/', '!']).trim_start().starts_with('|');
        let has_long_word = || line.split(' ').any(|word| word.chars().count() > LONG_WORD);
        if width > MAX_WIDTH && !is_raw() && !is_table() && !has_long_word() {
            let message = format!("{width} characters, more than {MAX_WIDTH}: break the line");
            res.push(Violation::new(&file.path, index + 1, message));
        }
        start = end + 1;
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[track_caller]
    fn check_line(line: &str, expected: &[usize]) {
        let text = format!("//! Subject.\n{line}\n");
        let found = check(&Tree::of(&[("a/src/lib.rs", &text)]).rust_files[0]);
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
}
