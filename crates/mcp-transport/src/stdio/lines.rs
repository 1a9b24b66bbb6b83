//! Cuts a byte stream into lines, each a slice of a shared buffer. Sans-I/O: the reader puts bytes in and takes lines
//! out.
//!
//! A line longer than the limit is not kept: its beginning and its end come out as [`Line::TooLong`] when it is over.

use bytes::{Bytes, BytesMut};

use crate::rpc::oversize::{Oversize, Skipped};

/// How much room is made for the next reads: at least this much, for most servers say little most of the time, and there
/// may be many of them.
const LEAST: usize = 4 << 10;

/// And at most this much where much comes at once, unless a line is longer.
const MOST: usize = 64 << 10;

/// Collects bytes.
pub(crate) struct Lines {
    buffer: BytesMut,
    /// How many bytes the memory has that the buffer is the rest of, at most.
    whole: usize,
    /// Bytes at the buffer's beginning that are known to hold no line break.
    scanned: usize,
    /// How many bytes there were when room was made for more.
    before: Option<usize>,
    /// How much room the last read makes likely to be needed.
    likely: usize,
    /// How long the last line was that was longer than what is read at once.
    long: usize,
    limit: usize,
    /// A line that is over the limit and still goes on.
    skipping: Option<Skipped>,
    begun: bool,
}

/// What came out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end; never empty.
    Whole(Bytes),
    /// A line that is over the limit.
    TooLong(Oversize),
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Lines {
        Lines {
            buffer: BytesMut::new(),
            whole: 0,
            scanned: 0,
            before: None,
            likely: LEAST,
            long: 0,
            limit,
            skipping: None,
            begun: false,
        }
    }

    /// The most bytes that a line may have.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Where the next bytes go.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < self.likely / 4 {
            // Twice what is there, so that a long line is copied a logarithmic number of times; or as much as the last long
            // line had, for where one was there are more, and to grow step by step leaves memory in pieces.
            let begun = self.buffer.len();
            let more = if begun >= MOST { self.long.saturating_sub(begun) + LEAST } else { 0 };
            self.buffer.reserve(begun.max(self.likely).max(more));
            self.whole = self.buffer.capacity();
        }
        self.before = Some(self.buffer.len());
        &mut self.buffer
    }

    /// Nothing is there to be read at this moment: lets go of memory that nothing is in, where it is more than `kept` bytes.
    pub(crate) fn idle(&mut self, kept: usize) {
        if self.buffer.is_empty() && self.whole > kept {
            self.buffer = BytesMut::new();
            self.whole = 0;
        }
    }

    /// The next line, if one is complete.
    pub(crate) fn next(&mut self) -> Option<Line> {
        if let Some(before) = self.before.take() {
            self.likely = (2 * self.buffer.len().saturating_sub(before)).clamp(LEAST, MOST);
        }
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.shorten();
                return None;
            };
            let line = self.buffer.split_to(self.scanned + found + 1).freeze();
            if line.len() > MOST {
                self.long = line.len();
            }
            self.scanned = 0;
            if let Some(mut skipped) = self.skipping.take() {
                skipped.add(&line);
                return Some(Line::TooLong(skipped.finish()));
            }
            if line.len() > self.limit {
                return Some(Line::TooLong(Skipped::begin(&line).finish()));
            }
            if let Some(line) = self.trim(line) {
                return Some(Line::Whole(line));
            }
        }
    }

    /// Is all given out that came?
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// How long the line is by now that what came last belongs to, where it is too long and goes on.
    pub(crate) fn skipped(&self) -> Option<usize> {
        self.skipping.as_ref().map(Skipped::len)
    }

    /// What is left when the stream has ended: a last line without an end.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let line = self.buffer.split().freeze();
        self.scanned = 0;
        match self.skipping.take() {
            Some(skipped) => Some(skipped.finish().head),
            None => self.trim(line),
        }
    }

    /// Is a line coming that is longer than what is read at once?
    pub(crate) fn is_long(&self) -> bool {
        self.buffer.len() >= MOST || self.skipping.is_some()
    }

    /// Lets go of a line that has become too long, but for its ends.
    fn shorten(&mut self) {
        match &mut self.skipping {
            Some(skipped) => skipped.add(&self.buffer),
            None if self.buffer.len() > self.limit => self.skipping = Some(Skipped::begin(&self.buffer)),
            None => return,
        }
        // A new buffer: the large one is not kept for the short lines to come.
        self.buffer = BytesMut::new();
        self.scanned = 0;
    }

    /// Without the end of line, and without the byte order mark that some servers begin with.
    fn trim(&mut self, line: Bytes) -> Option<Bytes> {
        let mut start = 0;
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xEF\xBB\xBF") {
            start = 3;
        }
        let end = line.len() - line.iter().rev().take_while(|it| matches!(it, b'\n' | b'\r')).count();
        (start < end).then(|| line.slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_a_second_long_line_is_made_at_once() {
        let mut lines = Lines::new(4 << 20);
        let half = |lines: &mut Lines| {
            lines.room().extend_from_slice(&[b'a'; MOST]);
            assert_eq!(lines.next(), None);
            lines.room().capacity()
        };
        assert!(half(&mut lines) < 1 << 20);
        lines.room().extend_from_slice(&[&[b'a'; 1 << 20][..], b"\n"].concat());
        assert!(lines.next().is_some());
        lines.idle(LEAST);
        assert_eq!(lines.room().capacity(), MOST);
        assert!(half(&mut lines) > 1 << 20);
    }

    #[test]
    fn memory_that_nothing_is_in_is_let_go_of() {
        let mut lines = Lines::new(1 << 20);
        lines.room().extend_from_slice(&[&[b'a'; 100_000][..], b"\nb"].concat());
        assert!(matches!(lines.next(), Some(Line::Whole(line)) if line.len() == 100_000));
        assert_eq!(lines.next(), None);
        lines.idle(LEAST);
        assert_eq!(&lines.buffer[..], b"b", "half a line stays");
        lines.room().extend_from_slice(b"c\n");
        assert_eq!(lines.next(), Some(Line::Whole(Bytes::from_static(b"bc"))));
        lines.idle(LEAST);
        assert_eq!(lines.buffer.capacity(), 0);
        lines.room().extend_from_slice(b"d\n");
        let small = lines.buffer.capacity();
        assert_eq!(lines.next(), Some(Line::Whole(Bytes::from_static(b"d"))));
        lines.idle(small);
        assert!(lines.buffer.capacity() > 0, "little is kept for the next");
    }
    use proptest::prelude::*;

    fn cut(chunks: &[&[u8]], limit: usize) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut res = Vec::new();
        for chunk in chunks {
            lines.room().extend_from_slice(chunk);
            while let Some(line) = lines.next() {
                res.push(match line {
                    Line::Whole(it) => String::from_utf8_lossy(&it).into_owned(),
                    Line::TooLong(Oversize { head, tail, len }) => {
                        assert!(len >= tail.len());
                        format!("!{} {len}", String::from_utf8_lossy(&head))
                    }
                });
            }
        }
        res.extend(lines.rest().map(|it| format!("~{}", String::from_utf8_lossy(&it))));
        res
    }

    #[track_caller]
    fn check(chunks: &[&str], want: &[&str]) {
        let chunks: Vec<&[u8]> = chunks.iter().map(|it| it.as_bytes()).collect();
        assert_eq!(cut(&chunks, 8), want);
    }

    #[test]
    fn lines_come_out_whole_whatever_the_chunks() {
        check(&["a\nb\n"], &["a", "b"]);
        check(&["a", "b\r", "\nc"], &["ab", "~c"]);
        check(&["\n\r\n\na\n"], &["a"]);
        check(&["\u{feff}a\n\u{feff}b\n"], &["a", "\u{feff}b"]);
    }

    #[test]
    fn a_line_over_the_limit_is_given_up_and_the_next_one_stands() {
        check(&["123456789\nb\n"], &["!123456789\n 10", "b"]);
        check(&["12345", "6789", "abcdefghijk", "l\nb\n"], &["!123456789abcdefghijkl\n 22", "b"]);
        check(&["123456789"], &["~123456789"]);
        check(&["12345678\n"], &["!12345678\n 9"]);
        check(&["1234567\n"], &["1234567"]);
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(text in "[ab\r\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..6)) {
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
            prop_assert_eq!(cut(&chunks, 1000), cut(&[bytes], 1000));
        }
    }
}
