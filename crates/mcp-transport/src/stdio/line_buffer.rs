//! Splits a byte stream into lines, each a slice of a shared buffer. Performs no I/O.
//!
//! A line over the limit is discarded; its beginning and end are returned as [`Line::TooLong`].

use bytes::{Bytes, BytesMut};
use serde::de::IgnoredAny;

use crate::rpc::oversize::{OversizedMessage, SkippedMessage};

/// Minimum read size: most servers send little, and there may be many of them.
const MIN_READ: usize = 4 << 10;

/// Maximum read size when much arrives, unless a line is longer.
const MAX_READ: usize = 64 << 10;

/// A buffer that is filled by reads and emptied line by line.
pub struct LineBuffer {
    buffer: BytesMut,
    /// Upper bound of the capacity of the allocation that the buffer is part of.
    capacity: usize,
    /// Bytes at the start of the buffer that contain no line break.
    scanned: usize,
    /// The buffer length before the last read.
    len_before_read: Option<usize>,
    /// The size to reserve for the next read, estimated from the last one.
    next_read: usize,
    /// The length of the last line that was longer than a read.
    last_long_line: usize,
    /// Maximum line length in bytes.
    limit: usize,
    /// A line over the limit that has not ended.
    skipped: Option<SkippedMessage>,
    /// Empty lines since the last call of [`LineBuffer::take_empty_lines`].
    empty_lines: usize,
}

/// A line from the buffer.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum Line {
    /// A line without its line end; never empty.
    Whole(Bytes),
    /// A line over the limit.
    TooLong(OversizedMessage),
}

impl LineBuffer {
    /// An empty buffer for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> LineBuffer {
        LineBuffer {
            buffer: BytesMut::new(),
            capacity: 0,
            scanned: 0,
            len_before_read: None,
            next_read: MIN_READ,
            last_long_line: 0,
            limit,
            skipped: None,
            empty_lines: 0,
        }
    }

    /// Maximum line length in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The buffer for the next read.
    pub fn read_buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < self.next_read / 4 {
            // Doubling copies a long line a logarithmic number of times. After one long line more are likely, so its
            // length is reserved at once, which also avoids fragmentation.
            let line_len = self.buffer.len();
            let rest = if line_len >= MAX_READ {
                self.last_long_line.saturating_sub(line_len) + MIN_READ
            } else {
                0
            };
            self.buffer.reserve(line_len.max(self.next_read).max(rest));
            self.capacity = self.buffer.capacity();
        }
        self.len_before_read = Some(self.buffer.len());
        &mut self.buffer
    }

    /// Frees an empty buffer that is larger than `kept` bytes. Called when no data is available.
    pub fn shrink(&mut self, kept: usize) {
        if self.buffer.is_empty() && self.capacity > kept {
            self.buffer = BytesMut::new();
            self.capacity = 0;
        }
    }

    /// Returns the next complete line.
    pub fn next_line(&mut self) -> Option<Line> {
        if let Some(before) = self.len_before_read.take() {
            self.next_read = (2 * self.buffer.len().saturating_sub(before)).clamp(MIN_READ, MAX_READ);
        }
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.skip_oversized();
                return None;
            };
            let line = self.buffer.split_to(self.scanned + found + 1).freeze();
            if line.len() > MAX_READ {
                self.last_long_line = line.len();
            }
            self.scanned = 0;
            if let Some(mut skipped) = self.skipped.take() {
                skipped.add(&line);
                return Some(Line::TooLong(skipped.finish()));
            }
            if line.len() > self.limit {
                return Some(Line::TooLong(SkippedMessage::start(&line).finish()));
            }
            match LineBuffer::trim(line) {
                Some(line) => return Some(Line::Whole(line)),
                None => self.empty_lines += 1,
            }
        }
    }

    /// Returns and resets the number of empty lines, which [`LineBuffer::next_line`] does not return.
    pub fn take_empty_lines(&mut self) -> usize {
        std::mem::take(&mut self.empty_lines)
    }

    /// Whether all received bytes were returned.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether the buffer has a whole message that lacks its line break.
    pub fn has_unfinished_message(&self) -> bool {
        let message = self.buffer.trim_ascii();
        let may_be_message = message.ends_with(b"}") && message.len() <= MAX_READ;
        may_be_message && serde_json::from_slice::<IgnoredAny>(message).is_ok()
    }

    /// The length so far of a line over the limit that has not ended.
    pub fn skipped_bytes(&self) -> Option<usize> {
        self.skipped.as_ref().map(SkippedMessage::len)
    }

    /// Returns the last line, without a line end, after the stream has ended.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        let line = self.buffer.split().freeze();
        self.scanned = 0;
        match self.skipped.take() {
            Some(skipped) => Some(skipped.finish().head),
            None => LineBuffer::trim(line),
        }
    }

    /// Whether the current line is longer than a read.
    pub fn has_long_line(&self) -> bool {
        self.buffer.len() >= MAX_READ || self.skipped.is_some()
    }

    /// Discards a line over the limit except for its ends.
    fn skip_oversized(&mut self) {
        match &mut self.skipped {
            Some(skipped) => skipped.add(&self.buffer),
            None if self.buffer.len() > self.limit => {
                self.skipped = Some(SkippedMessage::start(&self.buffer))
            }
            None => return,
        }
        // A new buffer, so that the large one is not kept for short lines.
        self.buffer = BytesMut::new();
        self.scanned = 0;
    }

    /// Removes the line end and a byte order mark. `None` if nothing is left.
    fn trim(line: Bytes) -> Option<Bytes> {
        let start = if line.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        let end = line.len() - line.iter().rev().take_while(|it| matches!(it, b'\n' | b'\r')).count();
        (start < end).then(|| line.slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_for_a_second_long_line_is_reserved_at_once() {
        let mut lines = LineBuffer::new(4 << 20);
        let read_unfinished_line = |lines: &mut LineBuffer| {
            lines.read_buffer().extend_from_slice(&[b'a'; MAX_READ]);
            assert_eq!(lines.next_line(), None);
            lines.read_buffer().capacity()
        };
        assert!(read_unfinished_line(&mut lines) < 1 << 20);
        lines.read_buffer().extend_from_slice(&[&[b'a'; 1 << 20][..], b"\n"].concat());
        assert!(lines.next_line().is_some());
        lines.shrink(MIN_READ);
        assert_eq!(lines.read_buffer().capacity(), MAX_READ);
        assert!(read_unfinished_line(&mut lines) > 1 << 20);
    }

    #[test]
    fn empty_buffer_is_freed() {
        let mut lines = LineBuffer::new(1 << 20);
        lines.read_buffer().extend_from_slice(&[&[b'a'; 100_000][..], b"\nb"].concat());
        assert!(matches!(lines.next_line(), Some(Line::Whole(line)) if line.len() == 100_000));
        assert_eq!(lines.next_line(), None);
        lines.shrink(MIN_READ);
        assert_eq!(&lines.buffer[..], b"b", "half a line stays");
        lines.read_buffer().extend_from_slice(b"c\n");
        assert_eq!(lines.next_line(), Some(Line::Whole(Bytes::from_static(b"bc"))));
        lines.shrink(MIN_READ);
        assert_eq!(lines.buffer.capacity(), 0);
        lines.read_buffer().extend_from_slice(b"d\n");
        let small = lines.buffer.capacity();
        assert_eq!(lines.next_line(), Some(Line::Whole(Bytes::from_static(b"d"))));
        lines.shrink(small);
        assert!(lines.buffer.capacity() > 0, "little is kept for the next");
    }
    use proptest::prelude::*;

    /// The lines of these chunks: `!` marks one over the limit, `~` an incomplete one.
    fn split(chunks: &[&[u8]], limit: usize) -> Vec<String> {
        let mut lines = LineBuffer::new(limit);
        let mut texts = Vec::new();
        for chunk in chunks {
            lines.read_buffer().extend_from_slice(chunk);
            while let Some(line) = lines.next_line() {
                texts.push(match line {
                    Line::Whole(it) => String::from_utf8_lossy(&it).into_owned(),
                    Line::TooLong(OversizedMessage { head, tail, len }) => {
                        assert!(len >= tail.len());
                        format!("!{} {len}", String::from_utf8_lossy(&head))
                    }
                });
            }
        }
        texts.extend(lines.take_rest().map(|it| format!("~{}", String::from_utf8_lossy(&it))));
        texts
    }

    #[track_caller]
    fn check(chunks: &[&str], want: &[&str]) {
        let chunks: Vec<&[u8]> = chunks.iter().map(|it| it.as_bytes()).collect();
        assert_eq!(split(&chunks, 8), want);
    }

    #[test]
    fn lines_do_not_depend_on_chunks() {
        check(&["a\nb\n"], &["a", "b"]);
        check(&["a", "b\r", "\nc"], &["ab", "~c"]);
        check(&["\n\r\n\na\n"], &["a"]);
        // RPT-033
        check(&["\u{feff}a\n\u{feff}b\n"], &["a", "b"]);
    }

    #[test]
    fn line_over_the_limit_is_skipped() {
        check(&["123456789\nb\n"], &["!123456789\n 10", "b"]);
        check(&["12345", "6789", "abcdefghijk", "l\nb\n"], &["!123456789abcdefghijkl\n 22", "b"]);
        check(&["123456789"], &["~123456789"]);
        check(&["12345678\n"], &["!12345678\n 9"]);
        check(&["1234567\n"], &["1234567"]);
    }

    proptest! {
        #[test]
        fn any_chunks_give_the_same_lines(text in "[ab\r\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut start = 0;
            for at in cuts {
                chunks.push(&bytes[start..at]);
                start = at;
            }
            chunks.push(&bytes[start..]);
            prop_assert_eq!(split(&chunks, 1000), split(&[bytes], 1000));
        }
    }
}
