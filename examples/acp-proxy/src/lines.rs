//! A reader of lines with their ends, with a bounded amount of memory.

use std::io::{self, BufRead, Read, Write};

/// A line, or a part of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A complete line with its end; the last line may have none.
    Whole(&'a [u8]),
    /// The start of a line beyond the limit. The rest must still be read.
    Part(&'a [u8]),
}

/// Reads lines from a stream.
pub(crate) struct Lines<R> {
    from: R,
    limit: usize,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(from: R, limit: usize) -> Lines<R> {
        Lines { from, limit, line: Vec::new() }
    }

    /// Returns the next line; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        // The memory of a large message is not kept.
        self.line.shrink_to(1 << 20);
        self.from.by_ref().take(self.limit as u64).read_until(b'\n', &mut self.line)?;
        let line = &self.line[..];
        Ok(match line.last() {
            None => None,
            Some(b'\n') => Some(Line::Whole(line)),
            Some(_) if line.len() < self.limit => Some(Line::Whole(line)),
            Some(_) => Some(Line::Part(line)),
        })
    }

    /// Copies the rest of a line.
    pub(crate) fn copy_rest(&mut self, to: &mut impl Write) -> io::Result<()> {
        loop {
            let buffer = self.from.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let taken = end.unwrap_or(buffer.len());
            to.write_all(&buffer[..taken])?;
            self.from.consume(taken);
            if end.is_some() || taken == 0 {
                return Ok(());
            }
        }
    }

    /// Skips the rest of a line.
    pub(crate) fn skip(&mut self) -> io::Result<()> {
        self.copy_rest(&mut io::sink())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, want: &[&str]) {
        let mut lines = Lines::new(input.as_bytes(), 5);
        let mut got = Vec::new();
        loop {
            let (mut text, is_part) = match lines.next().unwrap() {
                None => break,
                Some(Line::Whole(line)) => (line.to_vec(), false),
                Some(Line::Part(line)) => (line.to_vec(), true),
            };
            if is_part {
                text.push(b'|');
                lines.copy_rest(&mut text).unwrap();
            }
            got.push(String::from_utf8(text).unwrap());
        }
        assert_eq!(got, want, "{input:?}");
    }

    #[test]
    fn lines_are_whole_up_to_the_limit() {
        check("", &[]);
        check("a\n\nb", &["a\n", "\n", "b"]);
        check("1234\n1234", &["1234\n", "1234"]);
        check("12345\n1\n", &["12345|\n", "1\n"]);
        check("12345", &["12345|"]);
        check("123456789\r\n1\n", &["12345|6789\r\n", "1\n"]);
    }
}
