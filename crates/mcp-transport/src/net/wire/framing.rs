//! Where the body of an answer ends, and whether another request may follow it on its connection (RFC 9112, sections 6
//! and 9).

use http::StatusCode;

use crate::net::head::{Coding, Head, Length, OfBody, Version};
use crate::net::http1::ChunkedBody;

/// Where a body ends.
#[derive(Debug)]
pub(super) enum Framing {
    /// After so many bytes.
    Exact(u64),
    /// It comes in chunks, and the last one says that it is.
    Chunks(ChunkedBody),
    /// With the connection.
    Open,
}

/// What becomes of a connection behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Stays,
    Ends,
}

impl Then {
    /// What becomes of it when this is said, too.
    pub(super) fn and(self, other: Then) -> Then {
        if self == Then::Stays { other } else { self }
    }
}

/// What a head says of both, or why it cannot be understood.
pub(super) fn of(head: &Head) -> Result<(Framing, Then), &'static str> {
    let OfBody { coding, length, closes, kind: _ } = &head.body;
    let then = match head.version {
        Version::Http11 if !closes => Then::Stays,
        // A server of HTTP/1.0 might keep it open; to open another costs less than to lose a request.
        Version::Http11 | Version::Http10 => Then::Ends,
    };
    match (head.status, *coding, *length) {
        (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED, ..) => Ok((Framing::Exact(0), then)),
        // It speaks another protocol from here on, for which nobody asked.
        (StatusCode::SWITCHING_PROTOCOLS, ..) => Ok((Framing::Exact(0), Then::Ends)),
        (_, Coding::Other, _) => Err("its answer is coded in a way that was not asked for"),
        (_, Coding::Chunked, Length::Unsaid) => Ok((Framing::Chunks(ChunkedBody::new()), then)),
        // Somebody between here and the server may see another end.
        (_, Coding::Chunked, _) => Ok((Framing::Chunks(ChunkedBody::new()), Then::Ends)),
        (_, Coding::None, Length::Exact(bytes)) => Ok((Framing::Exact(bytes), then)),
        (_, Coding::None, Length::Unsaid) => Ok((Framing::Open, Then::Ends)),
        (_, Coding::None, Length::Odd) => Err("its answer says no length that is one"),
        (_, Coding::None, Length::Two) => Err("its answer says two lengths"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::net::head;

    #[track_caller]
    fn check(lines: &str, want: &str) {
        let mut text = BytesMut::from(format!("HTTP/{}\r\n\r\n", lines.replace(" | ", "\r\n")).as_bytes());
        let head = head::take(&mut text, 0).unwrap().unwrap();
        let got = match of(&head) {
            Ok((Framing::Exact(bytes), then)) => format!("{bytes} {then:?}"),
            Ok((Framing::Chunks(_), then)) => format!("chunks {then:?}"),
            Ok((Framing::Open, then)) => format!("open {then:?}"),
            Err(words) => words.to_owned(),
        };
        assert_eq!(got, want, "{lines}");
    }

    #[test]
    fn a_head_says_where_its_body_ends_and_whether_more_may_follow() {
        check("1.1 200 OK | Content-Length: 12", "12 Stays");
        check("1.1 200 OK | Content-Length: 12 | content-length: 12", "12 Stays");
        check("1.1 200 OK | Content-Length: 12, 12", "12 Stays");
        check("1.1 200 OK | Transfer-Encoding: Chunked", "chunks Stays");
        check("1.1 200 OK | transfer-encoding: chunked | content-length: 4", "chunks Ends");
        check("1.1 200 OK", "open Ends");
        check("1.1 200 OK | transfer-encoding: chunked | transfer-encoding: chunked", "chunks Ends");
        check("1.1 200 OK | transfer-encoding: chunked, Chunked", "chunks Ends");
        check("1.1 200 OK | transfer-encoding: identity", "open Ends");
        check("1.1 200 OK | transfer-encoding: identity | content-length: 3", "3 Ends");
        check("1.1 204 No Content", "0 Stays");
        check("1.1 304 Not Modified | content-length: 9", "0 Stays");
        check("1.1 101 Switching Protocols", "0 Ends");
        check("1.1 202 Accepted | connection: keep-alive, Close | content-length: 0", "0 Ends");
        check("1.0 200 OK | content-length: 1", "1 Ends");
        check("1.0 200 OK | content-length: 1 | connection: keep-alive", "1 Ends");
    }

    #[test]
    fn a_body_whose_end_is_a_matter_of_opinion_is_no_answer() {
        let coded = "its answer is coded in a way that was not asked for";
        check("1.1 200 OK | transfer-encoding: gzip, chunked", coded);
        check("1.1 200 OK | transfer-encoding: chunked | transfer-encoding: br", coded);
        check("1.1 200 OK | content-length: 1 | content-length: 2", "its answer says two lengths");
        check("1.1 200 OK | content-length: 1, 2", "its answer says two lengths");
        for length in ["", "+1", "-1", "0x1", "1 2", "99999999999999999999", "1,"] {
            check(&format!("1.1 200 OK | content-length: {length}"), "its answer says no length that is one");
        }
    }
}
