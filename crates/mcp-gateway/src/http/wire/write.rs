//! What a response looks like on the wire: its head, and the chunks of a body that comes piece by piece.

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::response::Response;

/// What a head says of the body behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// It has so many bytes.
    Exact(usize),
    /// It comes in chunks.
    Chunked,
    /// It ends with the connection.
    Open,
    /// There is none, by the status.
    None,
}

/// What becomes of a connection behind a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// It may have another request.
    Stays,
    /// The same, and the client has to be told.
    StaysSo,
    Ends,
}

/// Writes the head.
pub(super) fn head(out: &mut Vec<u8>, res: &Response, length: Length, then: Then, date: &[u8]) {
    out.reserve(256);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(res.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(res.status.canonical_reason().unwrap_or_default().as_bytes());
    if let Some(kind) = res.kind {
        out.extend_from_slice(b"\r\ncontent-type: ");
        out.extend_from_slice(kind.as_bytes());
    }
    for (name, value) in &res.fields {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }
    match length {
        Length::Exact(bytes) => {
            out.extend_from_slice(b"\r\ncontent-length: ");
            let _ = write!(out, "{bytes}");
        }
        Length::Chunked => out.extend_from_slice(b"\r\ntransfer-encoding: chunked"),
        Length::Open | Length::None => {}
    }
    match then {
        Then::Stays => {}
        Then::StaysSo => out.extend_from_slice(b"\r\nconnection: keep-alive"),
        Then::Ends => out.extend_from_slice(b"\r\nconnection: close"),
    }
    out.extend_from_slice(b"\r\ndate: ");
    out.extend_from_slice(date);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Writes a piece of a body that comes in chunks. An empty one would be the last.
pub(super) fn chunk(out: &mut Vec<u8>, piece: &[u8]) {
    if piece.is_empty() {
        return;
    }
    // Its end shall not double the room that a large one has.
    out.reserve(piece.len() + 20);
    out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    out.extend_from_slice(piece);
    out.extend_from_slice(b"\r\n");
}

/// The last chunk.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The date as responses say it, made once a second.
#[derive(Debug, Default)]
pub(super) struct Date {
    second: u64,
    text: String,
}

impl Date {
    /// The date of `now`.
    pub(super) fn at(&mut self, now: SystemTime) -> &[u8] {
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        if self.text.is_empty() || self.second != second {
            self.second = second;
            self.text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
        }
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode, header};

    use super::super::response::Body;
    use super::*;

    #[track_caller]
    fn check(status: u16, length: Length, then: Then, want: &str) {
        let res = Response::new(StatusCode::from_u16(status).unwrap(), Body::empty());
        let mut out = Vec::new();
        head(&mut out, &res.of("text/plain").with(header::AGE, HeaderValue::from(7)), length, then, b"D");
        assert_eq!(str::from_utf8(&out).unwrap().replace("\r\n", "|"), want);
    }

    #[test]
    fn a_head_says_where_its_body_ends() {
        let text = "content-type: text/plain|age: 7";
        check(
            200,
            Length::Exact(7),
            Then::Stays,
            &format!("HTTP/1.1 200 OK|{text}|content-length: 7|date: D||"),
        );
        check(
            404,
            Length::Chunked,
            Then::Ends,
            &format!("HTTP/1.1 404 Not Found|{text}|transfer-encoding: chunked|connection: close|date: D||"),
        );
        check(
            204,
            Length::None,
            Then::StaysSo,
            &format!("HTTP/1.1 204 No Content|{text}|connection: keep-alive|date: D||"),
        );
        check(299, Length::Open, Then::Ends, &format!("HTTP/1.1 299 |{text}|connection: close|date: D||"));
    }

    #[test]
    fn a_date_is_made_anew_when_a_second_has_passed() {
        let mut date = Date::default();
        let begin = UNIX_EPOCH + Duration::from_millis(1_700_000_000_400);
        assert_eq!(date.at(begin), b"Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(date.at(begin + Duration::from_millis(599)), b"Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(date.at(begin + Duration::from_millis(600)), b"Tue, 14 Nov 2023 22:13:21 GMT");
    }

    #[test]
    fn an_empty_piece_is_not_the_last_chunk() {
        let mut out = Vec::new();
        chunk(&mut out, b"");
        chunk(&mut out, b"0123456789abcdef");
        assert_eq!(&out[..], b"10\r\n0123456789abcdef\r\n");
    }
}
