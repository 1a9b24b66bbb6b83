//! Lines, indentation and gaps of a text, for choosing the bounds of an edit.

use std::ops::Range;

/// A text with line-based access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout<'a> {
    text: &'a str,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(text: &'a str) -> Layout<'a> {
        Layout { text }
    }

    pub(crate) fn text(self) -> &'a str {
        self.text
    }

    /// The line end of the file: that of the first line.
    pub(crate) fn line_end(self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            Some(_) | None => "\n",
        }
    }

    /// The start of the line of `at`, after a byte order mark.
    pub(crate) fn line_start(self, at: usize) -> usize {
        let start = self.text[..at].rfind('\n').map_or(0, |it| it + 1);
        if start == 0 && self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8().min(at) } else { start }
    }

    /// The start of the next line, or the end of the text.
    pub(crate) fn next_line(self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |it| at + it + 1)
    }

    /// The text between the start of the line and `at`.
    pub(crate) fn text_before(self, at: usize) -> &'a str {
        &self.text[self.line_start(at)..at]
    }

    /// The line that starts at `start`, without its end.
    pub(crate) fn line(self, start: usize) -> &'a str {
        self.text[start..self.next_line(start)].trim_end_matches(['\n', '\r'])
    }

    /// The column of `at`, if only blanks and list dashes precede it on its line.
    pub(crate) fn column(self, at: usize) -> Option<usize> {
        let before = self.text_before(at);
        before.bytes().all(|it| it == b' ' || it == b'-').then_some(before.len())
    }

    /// The start of the last line of a value. The span of a block scalar includes blank lines after it.
    pub(crate) fn last_line_start(self, span: &Range<usize>) -> usize {
        let trimmed = self.text[span.start..span.end].trim_end_matches([' ', '\n', '\r', '\t']);
        self.line_start(span.start + trimmed.len())
    }

    /// Returns whether the line that starts at `start` is blank.
    pub(crate) fn is_blank(self, start: usize) -> bool {
        start < self.text.len() && self.line(start).trim().is_empty()
    }

    /// The indentation of the line that starts at `start`, if it has only a comment.
    pub(crate) fn comment_indent(self, start: usize) -> Option<usize> {
        let line = self.line(start);
        let content = line.trim_start_matches(' ');
        content.starts_with('#').then(|| line.len() - content.len())
    }

    /// The start of the line before the one that starts at `start`.
    pub(crate) fn previous_line(self, start: usize) -> Option<usize> {
        let end = self.text[..start].strip_suffix('\n')?.len();
        Some(self.line_start(end))
    }

    /// The first byte at or after `at` that is neither blank nor part of a YAML or JSON comment.
    pub(crate) fn skip_blanks_and_comments(self, mut at: usize) -> usize {
        loop {
            let rest = &self.text[at..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{feff}']);
            at += rest.len() - trimmed.len();
            let skipped = if trimmed.starts_with('#') || trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if let Some(inner) = trimmed.strip_prefix("/*") {
                inner.find("*/").map_or(trimmed.len(), |it| it + 4)
            } else {
                return at;
            };
            at += skipped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_with_any_line_end() {
        let layout = Layout::new("\u{feff}a: b\r\n  - c\n\nd");
        assert_eq!(layout.line_end(), "\r\n");
        assert_eq!((layout.line_start(3), layout.line_start(6), layout.next_line(5)), (3, 3, 9));
        assert_eq!((layout.line(3), layout.text_before(13), layout.column(13)), ("a: b", "  - ", Some(4)));
        assert_eq!((layout.column(6), layout.is_blank(15), layout.is_blank(16)), (None, true, false));
        assert_eq!(layout.previous_line(9), Some(3));
        assert_eq!(layout.previous_line(3), None);
        assert_eq!(layout.last_line_start(&(3..15)), 9);
    }

    #[track_caller]
    fn check(text: &str, want: usize) {
        assert_eq!(Layout::new(text).skip_blanks_and_comments(0), want, "{text:?}");
    }

    #[test]
    fn blanks_and_comments_are_skipped() {
        check(" \t\n,", 3);
        check("# a\n  # b\n,", 10);
        check("// a\n/* b\n */ ,", 14);
        check("/* never", 8);
        check("", 0);
    }
}
