//! A body that comes in chunks.
//!
//! A line here ends as the specification says, with both of its bytes, and nothing is taken for a size that is none: who
//! reads such lines another way sees another body.

use bytes::{Buf, Bytes, BytesMut};

/// How long the line with a chunk's size may be, in bytes.
const LONGEST_LINE: usize = 1024;
/// How many bytes may be neither sizes nor the body itself: what is said beside sizes, and behind the last chunk.
const MOST_BESIDE: usize = 16 * 1024;

/// Reads a body of HTTP/1.1 that comes in chunks (RFC 9112, section 7.1).
///
/// What stands beside sizes, and behind the last chunk, is passed over; of it there may be 16 KiB, in lines of 1 KiB.
#[derive(Debug)]
pub struct ChunkedBody {
    next: Next,
    beside: usize,
}

/// What is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The line with a size.
    Size,
    /// So many bytes of a chunk.
    Data(u64),
    /// The line's end behind a chunk.
    Gap,
    /// Lines behind the last chunk, up to an empty one.
    Trailer,
    Nothing,
}

/// What was read of a [`ChunkedBody`].
#[derive(Debug, PartialEq, Eq)]
pub enum ChunkedPart {
    /// A part of the body.
    Piece(Bytes),
    /// More has to come first.
    Wanting,
    /// The body is over. What is left of the input is behind it.
    End,
}

/// It is no body in chunks: where it ends cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body does not come in chunks as it should")]
pub struct NotChunked;

impl Default for ChunkedBody {
    fn default() -> ChunkedBody {
        ChunkedBody::new()
    }
}

impl ChunkedBody {
    /// One of which nothing was read yet.
    pub fn new() -> ChunkedBody {
        ChunkedBody { next: Next::Size, beside: 0 }
    }

    /// Takes the next part out of what came in. `input` holds what followed the part before, and what has come since.
    ///
    /// # Errors
    ///
    /// [`NotChunked`] where the bytes are no chunks, or say too much besides; nothing behind it can be understood.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<ChunkedPart, NotChunked> {
        loop {
            match self.next {
                Next::Size => {
                    let Some(line) = self.line(input)? else { return Ok(ChunkedPart::Wanting) };
                    self.next = match size(&line)? {
                        0 => Next::Trailer,
                        size => Next::Data(size),
                    };
                }
                Next::Data(left) => {
                    if input.is_empty() {
                        return Ok(ChunkedPart::Wanting);
                    }
                    let piece =
                        input.split_to(usize::try_from(left).map_or(input.len(), |it| it.min(input.len())));
                    self.next = match left - piece.len() as u64 {
                        0 => Next::Gap,
                        left => Next::Data(left),
                    };
                    return Ok(ChunkedPart::Piece(piece.freeze()));
                }
                Next::Gap => match input[..] {
                    [b'\r', b'\n', ..] => {
                        input.advance(2);
                        self.next = Next::Size;
                    }
                    [] | [b'\r'] => return Ok(ChunkedPart::Wanting),
                    _ => return Err(NotChunked),
                },
                Next::Trailer => {
                    let Some(line) = self.line(input)? else { return Ok(ChunkedPart::Wanting) };
                    self.next = match memchr::memchr2(b':', b' ', &line) {
                        None if line.is_empty() => Next::Nothing,
                        Some(at @ 1..) if line[at] == b':' => Next::Trailer,
                        // What is no field may be another's request.
                        Some(_) | None => return Err(NotChunked),
                    };
                }
                Next::Nothing => return Ok(ChunkedPart::End),
            }
        }
    }

    /// The next line without its end, where it is there as a whole.
    fn line(&mut self, input: &mut BytesMut) -> Result<Option<BytesMut>, NotChunked> {
        let Some(end) = memchr::memchr(b'\n', input) else {
            return if input.len() > LONGEST_LINE { Err(NotChunked) } else { Ok(None) };
        };
        if end > LONGEST_LINE {
            return Err(NotChunked);
        }
        let mut line = input.split_to(end + 1);
        let Some(length) = end.checked_sub(1).filter(|it| memchr::memchr(b'\r', &line) == Some(*it)) else {
            return Err(NotChunked);
        };
        line.truncate(length);
        // A size and its line's end have ten bytes at most where nothing stands beside them.
        self.beside += length.saturating_sub(8);
        if self.next == Next::Trailer {
            self.beside += length.min(8) + 2;
        }
        if self.beside > MOST_BESIDE { Err(NotChunked) } else { Ok(Some(line)) }
    }
}

/// The size that a line says, in hexadecimal digits. What stands behind a semicolon means nothing here.
fn size(line: &[u8]) -> Result<u64, NotChunked> {
    let digits = line.split(|it| *it == b';').next().unwrap_or_default();
    let blank = digits.iter().rev().take_while(|it| matches!(it, b' ' | b'\t')).count();
    let digits = &digits[..digits.len() - blank];
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| is_number);
    digits.and_then(|it| u64::from_str_radix(it, 16).ok()).ok_or(NotChunked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body and what is left behind it; `-` where it is broken, `…` where it is not over.
    fn read(pieces: &[&[u8]]) -> String {
        let (mut chunks, mut input, mut body) = (ChunkedBody::new(), BytesMut::new(), Vec::new());
        for piece in pieces {
            input.extend_from_slice(piece);
            loop {
                match chunks.next(&mut input) {
                    Ok(ChunkedPart::Piece(it)) => body.extend_from_slice(&it),
                    Ok(ChunkedPart::Wanting) => break,
                    Ok(ChunkedPart::End) => break,
                    Err(NotChunked) => return "-".to_owned(),
                }
            }
        }
        let body = String::from_utf8(body).unwrap();
        match chunks.next {
            Next::Nothing => format!("{body}|{}", str::from_utf8(&input).unwrap()),
            _ => format!("{body}…"),
        }
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(read(&[text.as_bytes()]), want, "{text:?}");
        for cut in 0..text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(read(&[one, other]), want, "{text:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(&single), want, "{text:?} byte by byte");
    }

    #[test]
    fn a_body_is_the_same_wherever_its_bytes_were_cut() {
        check("2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\nGET", "abc|GET");
        check("000A \r\n0123456789\r\n0\r\nx: y\r\nz: \r\n\r\n", "0123456789|");
        check("0\r\n\r\n", "|");
        check("2\r\nab\r\n", "ab…");
    }

    #[test]
    fn what_is_no_chunk_is_broken() {
        for text in [
            "zz\r\n",
            "\r\n",
            "+1\r\na\r\n",
            "0x1\r\na\r\n",
            " 1\r\na\r\n",
            "1\na\r\n0\r\n\r\n",
            "1\r\nab\r\n0\r\n\r\n",
            "1;\r;\r\na\r\n0\r\n\r\n",
            "1ffffffffffffffff\r\n",
            "0\r\n\n",
            "3\u{c}\r\nabc",
            "0\r\nGET /x HTTP/1.1\r\nhost: y\r\n\r\n",
            "0\r\nx\r\n\r\n",
            "0\r\n: x\r\n\r\n",
        ] {
            check(text, "-");
        }
    }

    #[test]
    fn endless_ignored_line_is_detected() {
        let beside = |count: usize, line: &str| line.repeat(count);
        let long = format!("1;{}\r\na\r\n", "x".repeat(500));
        assert_eq!(
            read(&[format!("{}0\r\n\r\n", beside(30, &long)).as_bytes()]),
            format!("{}|", "a".repeat(30))
        );
        assert_eq!(read(&[format!("{}0\r\n\r\n", beside(40, &long)).as_bytes()]), "-");
        assert_eq!(read(&[format!("0\r\n{}", beside(9000, "a:\r\n")).as_bytes()]), "-");
        assert_eq!(read(&[format!("1;{}", "x".repeat(2000)).as_bytes()]), "-");
        // Small chunks alone are a body like any other.
        let small = format!("{}0\r\n\r\n", beside(20_000, "1\r\na\r\n"));
        assert_eq!(read(&[small.as_bytes()]).len(), 20_001);
    }
}
