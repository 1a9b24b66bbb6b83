//! Bytes into lines and columns, and any span into one that fits the text.
//!
//! A request is often one line, so a column must not cost the length of its line: characters are counted once, block by
//! block. And a file with nothing to complain of costs nothing: nothing is counted before the first position.

use std::cell::OnceCell;
use std::ops::Range;

/// Where the lines of a text begin.
pub(crate) struct LineIndex<'a> {
    text: &'a str,
    table: OnceCell<LineTable>,
}

struct LineTable {
    starts: Vec<usize>,
    /// How many characters begin before each block; `None` where each byte is one.
    blocks: Option<Vec<usize>>,
}

/// The bytes of a block: few, for each position of a long line walks through half of one.
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

    /// How many characters begin before a byte.
    fn chars_before(&self, text: &str, offset: usize) -> usize {
        let Some(blocks) = &self.blocks else { return offset };
        let block = offset / BLOCK_BYTES;
        blocks[block] + count_chars(text, block * BLOCK_BYTES..offset)
    }
}

impl<'a> LineIndex<'a> {
    /// The lines of `text`.
    pub(crate) fn new(text: &'a str) -> LineIndex<'a> {
        LineIndex { text, table: OnceCell::new() }
    }

    /// Line and column of a byte, both from 1; the column counts characters, a byte order mark is none.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let counted = self.table.get_or_init(|| LineTable::new(self.text));
        let offset = self.text.floor_char_boundary(offset);
        let line = counted.starts.partition_point(|it| *it <= offset);
        let start = counted.starts[line - 1];
        (line, counted.chars_before(self.text, offset) - counted.chars_before(self.text, start) + 1)
    }

    /// The nearest span that lies inside the text, in order, on character borders.
    pub(crate) fn clamp(&self, span: Range<usize>) -> Range<usize> {
        let start = self.text.floor_char_boundary(span.start);
        start..self.text.floor_char_boundary(span.end).max(start)
    }
}

/// How many characters begin in a range of bytes; a byte order mark is none.
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
    fn a_span_is_made_to_fit() {
        let lines = LineIndex::new("é=x");
        assert_eq!(lines.clamp(1..99), 0..4);
        assert_eq!(lines.clamp(3..1), 3..3);
    }
}
