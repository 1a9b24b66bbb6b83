//! Converts byte offsets to lines and columns.
//!
//! A request is often a single line, so character counts are cached per block of bytes. Nothing is computed before the
//! first position is requested.

use std::cell::OnceCell;
use std::ops::Range;

/// Finds the line and column of a byte offset.
pub(crate) struct LineIndex<'a> {
    text: &'a str,
    table: OnceCell<LineTable>,
}

/// The starts of the lines, and the number of characters before each block of bytes.
struct LineTable {
    starts: Vec<usize>,
    /// The number of characters before each block; `None` if the text is ASCII.
    blocks: Option<Vec<usize>>,
}

/// The size of a block. Small, because each position scans half a block on average.
const BLOCK_BYTES: usize = 64;

impl LineTable {
    fn new(text: &str) -> LineTable {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        if text.is_ascii() {
            return LineTable { starts, blocks: None };
        }
        let mut blocks = vec![0];
        for block in text.as_bytes().chunks(BLOCK_BYTES) {
            let start = (blocks.len() - 1) * BLOCK_BYTES;
            let before = blocks.last().copied().unwrap_or_default();
            blocks.push(before + count_chars(text, start..start + block.len()));
        }
        LineTable { starts, blocks: Some(blocks) }
    }

    /// The number of characters before a byte offset.
    fn chars_before(&self, text: &str, offset: usize) -> usize {
        let Some(blocks) = &self.blocks else { return offset };
        let block = offset / BLOCK_BYTES;
        blocks[block] + count_chars(text, block * BLOCK_BYTES..offset)
    }
}

impl<'a> LineIndex<'a> {
    /// Indexes `text` lazily.
    pub(crate) fn new(text: &'a str) -> LineIndex<'a> {
        LineIndex { text, table: OnceCell::new() }
    }

    /// Line and column of a byte offset, from 1. The column counts characters without a byte order mark.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let table = self.table.get_or_init(|| LineTable::new(self.text));
        let offset = floor_char_boundary(self.text, offset);
        let line = table.starts.partition_point(|it| *it <= offset);
        let start = table.starts[line - 1];
        (line, table.chars_before(self.text, offset) - table.chars_before(self.text, start) + 1)
    }

    /// The nearest span inside the text, ordered and on character boundaries.
    pub(crate) fn clamp(&self, span: Range<usize>) -> Range<usize> {
        let start = floor_char_boundary(self.text, span.start);
        start..floor_char_boundary(self.text, span.end).max(start)
    }
}

/// The last character boundary at or before `offset`. The standard library has it from 1.91 on.
pub(crate) fn floor_char_boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|offset| text.is_char_boundary(*offset)).unwrap_or_default()
}

/// The number of characters that start in a byte range, without byte order marks.
fn count_chars(text: &str, range: Range<usize>) -> usize {
    let bytes = text.as_bytes();
    let begins = |at: &usize| bytes[*at] & 0xc0 != 0x80 && !bytes[*at..].starts_with(b"\xef\xbb\xbf");
    range.filter(begins).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, offset: usize, want: (usize, usize)) {
        assert_eq!(LineIndex::new(text).position(offset), want, "{text:?} at {offset}");
    }

    #[test]
    fn lines_and_columns_begin_with_one_and_columns_are_characters() {
        check("", 0, (1, 1));
        check("ab\ncd", 0, (1, 1));
        check("ab\ncd", 2, (1, 3));
        check("ab\ncd", 3, (2, 1));
        check("é=x", 3, (1, 3));
        check("é=x", 1, (1, 1));
        check("a\r\nb", 3, (2, 1));
        check("\u{feff}a", 3, (1, 1));
        check("a", 99, (1, 2));
        let long = "é".repeat(2000);
        check(&long, 2 * 1500, (1, 1501));
        check(&format!("\u{feff}{long}\n{long}"), 3 + 4000 + 1 + 2 * 1999, (2, 2000));
        check(&"x".repeat(BLOCK_BYTES), BLOCK_BYTES, (1, BLOCK_BYTES + 1));
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "a reversed span is what is tested")]
    fn spans_are_clamped() {
        let lines = LineIndex::new("é=x");
        assert_eq!(lines.clamp(1..99), 0..4);
        assert_eq!(lines.clamp(3..1), 3..3);
    }
}
