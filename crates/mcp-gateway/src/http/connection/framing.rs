//! Detects HTTP/1.1 requests whose end two parsers could see at different places, which allows request smuggling.
//!
//! hyper decides such a case by itself and reports nothing, but a proxy in front of the gateway may decide otherwise
//! (RFC 9112, section 11.2). The scanner follows the framing beside hyper: it reads the lines of heads and chunks, and
//! skips everything else. What hyper refuses itself is not checked here: folded lines, spaces before a colon, other
//! codings than `chunked`, and lengths that are no number.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::InspectReader;

use crate::http::connection::active_requests::ActiveRequests;

/// Maximum length of a line that is compared, in bytes: a name, and a number of 20 digits.
const MAX_LINE_BYTES: usize = 64;

/// The position in the stream of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before a request.
    Start,
    /// In the header lines.
    Headers,
    /// In a body, of which these bytes are left.
    Body(u64),
    /// In the line with the size of a chunk.
    ChunkSize,
    /// In a chunk, of which these bytes are left.
    Chunk(u64),
    /// In the line break after a chunk.
    ChunkEnd,
    /// In the trailer lines after the last chunk.
    Trailers,
    /// After bytes that hyper refuses: nothing more is scanned.
    Unknown,
}

/// Follows the framing of the requests of a connection.
struct FramingScanner {
    position: Position,
    /// The start of a line whose end has not arrived.
    line: Vec<u8>,
    /// The last byte of the incomplete line; 0 if it is empty.
    last_byte: u8,
    /// The number of `Content-Length` headers of the request.
    length_headers: usize,
    /// The value of the last of them, in bytes.
    content_length: u64,
    /// The number of `Transfer-Encoding` headers of the request.
    coding_headers: usize,
}

/// A request whose end is ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AmbiguousFraming;

impl FramingScanner {
    fn new() -> FramingScanner {
        FramingScanner {
            position: Position::Start,
            line: Vec::new(),
            last_byte: 0,
            length_headers: 0,
            content_length: 0,
            coding_headers: 0,
        }
    }

    /// Follows the next bytes. After an error nothing more is followed.
    fn scan(&mut self, mut bytes: &[u8]) -> Result<(), AmbiguousFraming> {
        while !bytes.is_empty() {
            match self.position {
                Position::Unknown => return Ok(()),
                Position::Body(left) | Position::Chunk(left) => {
                    let skipped = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    bytes = &bytes[skipped..];
                    let left = left - skipped as u64;
                    self.position = match self.position {
                        Position::Chunk(_) if left == 0 => Position::ChunkEnd,
                        Position::Chunk(_) => Position::Chunk(left),
                        _ if left == 0 => Position::Start,
                        _ => Position::Body(left),
                    };
                }
                Position::Start
                | Position::Headers
                | Position::ChunkSize
                | Position::ChunkEnd
                | Position::Trailers => {
                    let Some(end) = memchr::memchr(b'\n', bytes) else {
                        self.store(bytes);
                        return Ok(());
                    };
                    let (part, rest) = bytes.split_at(end);
                    bytes = &rest[1..];
                    if part.last().copied().unwrap_or(self.last_byte) != b'\r' {
                        // Only some parsers accept a line feed alone as the end of a line.
                        return self.refuse();
                    }
                    if self.line.is_empty() {
                        self.read_line(&part[..part.len().saturating_sub(1)])?;
                    } else {
                        self.store(part);
                        let line = std::mem::take(&mut self.line);
                        self.read_line(line.strip_suffix(b"\r").unwrap_or(&line))?;
                    }
                    self.last_byte = 0;
                }
            }
        }
        Ok(())
    }

    /// Stores a part of an incomplete line.
    fn store(&mut self, part: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
        self.last_byte = part.last().copied().unwrap_or(self.last_byte);
    }

    /// Ends the scan with an error.
    fn refuse(&mut self) -> Result<(), AmbiguousFraming> {
        self.position = Position::Unknown;
        Err(AmbiguousFraming)
    }

    /// Reads a line without its line break. A line longer than [`MAX_LINE_BYTES`] may be cut.
    fn read_line(&mut self, line: &[u8]) -> Result<(), AmbiguousFraming> {
        match self.position {
            // Empty lines before a request are ignored.
            Position::Start if line.is_empty() => {}
            Position::Start => {
                (self.length_headers, self.content_length, self.coding_headers) = (0, 0, 0);
                self.position = Position::Headers;
            }
            Position::Headers if line.is_empty() => {
                if self.length_headers + self.coding_headers > 1 {
                    return self.refuse();
                }
                self.position = match (self.coding_headers, self.content_length) {
                    (1, _) => Position::ChunkSize,
                    (_, 0) => Position::Start,
                    (_, length) => Position::Body(length),
                };
            }
            Position::Headers => self.read_header(line),
            Position::ChunkSize => {
                self.position = match read_number(line, 16) {
                    Some(0) => Position::Trailers,
                    Some(size) => Position::Chunk(size),
                    None => Position::Unknown,
                };
            }
            Position::ChunkEnd if line.is_empty() => self.position = Position::ChunkSize,
            Position::Trailers if line.is_empty() => self.position = Position::Start,
            Position::Trailers => {}
            Position::ChunkEnd | Position::Body(_) | Position::Chunk(_) | Position::Unknown => {
                self.position = Position::Unknown;
            }
        }
        Ok(())
    }

    /// Reads a header line.
    fn read_header(&mut self, line: &[u8]) {
        // Most names begin with another letter.
        let Some(b'c' | b'C' | b't' | b'T') = line.first() else { return };
        let Some(colon) = memchr::memchr(b':', line) else { return };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length_headers += 1;
            self.content_length = read_number(value.trim_ascii(), 10).unwrap_or_default();
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.coding_headers += 1;
        }
    }
}

/// The number at the start of a text.
fn read_number(text: &[u8], radix: u32) -> Option<u64> {
    let end = text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(text.len());
    u64::from_str_radix(std::str::from_utf8(&text[..end]).ok()?, radix).ok()
}

/// A stream whose requests are scanned while they are read. An ambiguous one is reported to the connection's
/// `requests`.
pub(crate) fn scan_requests<S: AsyncRead + AsyncWrite>(
    stream: S,
    requests: ActiveRequests,
) -> impl AsyncRead + AsyncWrite {
    let mut scanner = FramingScanner::new();
    InspectReader::new(stream, move |bytes| {
        if let Err(AmbiguousFraming) = scanner.scan(bytes) {
            requests.set_framing_ambiguous();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects the number of bytes that are followed before the framing is ambiguous; `None` if it is not. The bytes
    /// arrive at once, and one by one.
    #[track_caller]
    fn check(text: &str, want: Option<&str>) {
        let text = text.replace('|', "\r\n");
        let mut scanner = FramingScanner::new();
        assert_eq!(scanner.scan(text.as_bytes()).is_err(), want.is_some(), "{text}");
        let mut scanner = FramingScanner::new();
        let end = text.as_bytes().chunks(1).position(|byte| scanner.scan(byte).is_err());
        let want = want.map(|want| want.replace('|', "\r\n"));
        assert_eq!(end.map(|end| &text[..=end]), want.as_deref());
    }

    // RPT-262
    #[test]
    fn unambiguous_requests_are_followed() {
        check("POST / HTTP/1.1|Content-Length: 3||a\nbGET / HTTP/1.1|Host: a||", None);
        check("||GET / HTTP/1.1|Host: a||GET / HTTP/1.1||", None);
        let long = "x".repeat(200);
        check(&format!("GET /{long} HTTP/1.1|X: {long}||GET / HTTP/1.1||"), None);
        check("POST / HTTP/1.1|Transfer-Encoding: chunked||5;x=y|a\nb\nc|0|X: y||GET / HTTP/1.1||", None);
        // hyper refuses these.
        check("POST / HTTP/1.1|Transfer-Encoding: chunked||z|\n\n", None);
        check("POST / HTTP/1.1|Transfer-Encoding: chunked||1|ab|\n", None);
    }

    // RPT-262
    #[test]
    fn ambiguous_requests_are_found_at_the_end_of_their_heads() {
        for both in [
            "POST / HTTP/1.1|Content-Length: 3|Transfer-Encoding: chunked||",
            "POST / HTTP/1.1|transfer-encoding: chunked|CONTENT-LENGTH:3||",
            "POST / HTTP/1.1|Content-Length: 3|Content-Length: 3||",
            "POST / HTTP/1.1|Transfer-Encoding: chunked|Transfer-Encoding: chunked||",
        ] {
            check(&format!("{both}abc"), Some(both));
            // Also as the second request.
            check(&format!("GET / HTTP/1.1||{both}"), Some(&format!("GET / HTTP/1.1||{both}")));
            let body = "POST / HTTP/1.1|Content-Length: 2||\n\n";
            check(&format!("{body}{both}"), Some(&format!("{body}{both}")));
        }
    }

    // RPT-262
    #[test]
    fn line_feed_alone_is_ambiguous() {
        check("GET / HTTP/1.1\nHost: a||", Some("GET / HTTP/1.1\n"));
        check("GET / HTTP/1.1|Host: a\n|", Some("GET / HTTP/1.1|Host: a\n"));
        check("GET / HTTP/1.1|Host: a|\n", Some("GET / HTTP/1.1|Host: a|\n"));
        check("\nGET / HTTP/1.1||", Some("\n"));
        let head = "POST / HTTP/1.1|Transfer-Encoding: chunked||";
        check(&format!("{head}1\na|0||"), Some(&format!("{head}1\n")));
        check(&format!("{head}1|a\n0||"), Some(&format!("{head}1|a\n")));
        check(&format!("{head}0\n|"), Some(&format!("{head}0\n")));
        check(&format!("{head}0|\n"), Some(&format!("{head}0|\n")));
    }
}
