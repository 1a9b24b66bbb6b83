//! The head of a request: where it ends, what it says, and how its body is framed.
//!
//! Of two framings nobody could say which one somebody between here and the client went by; such a head is refused, and
//! with it whatever comes behind it on its connection.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::{Method, StatusCode, Uri};

use super::fields::Fields;
use super::name::Name;
use super::write::Then;

/// How many fields a head may have.
const MOST_FIELDS: usize = 100;

/// The head of a request.
#[derive(Debug)]
pub(in crate::http) struct Head {
    pub(in crate::http) method: Method,
    pub(in crate::http) target: Uri,
    pub(in crate::http) fields: Fields,
    pub(super) version: Version,
    pub(super) framing: Framing,
    /// May another request follow on the connection?
    pub(super) then: Then,
    /// The client sends its body when it hears that it shall.
    pub(super) expects: bool,
}

/// The versions of HTTP that are spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http10,
    Http11,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes.
    Exact(u64),
    /// It comes in chunks, and the last one says that it is.
    Chunked,
}

/// A head that is not taken: nothing behind it on its connection can be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Refused {
    /// It is none.
    Malformed,
    /// It is too long, or has too many fields.
    TooLarge,
    /// Of another version of HTTP.
    Version,
    /// Its body is coded in a way that is not known here.
    Coding,
}

impl Refused {
    pub(in crate::http) fn status(self) -> StatusCode {
        match self {
            Refused::Malformed => StatusCode::BAD_REQUEST,
            Refused::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Refused::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Refused::Coding => StatusCode::NOT_IMPLEMENTED,
        }
    }
}

/// How many bytes of empty lines stand before a head: some clients end a body with a line break that belongs to nothing.
pub(super) fn blank(text: &[u8]) -> usize {
    let mut rest = text;
    while let [b'\r', b'\n', more @ ..] | [b'\n', more @ ..] = rest {
        rest = more;
    }
    text.len() - rest.len()
}

/// Reads a whole head. Its lines end with both of their bytes: some take the second one alone for a part of a value.
pub(super) fn read(text: &Bytes) -> Result<Head, Refused> {
    let mut room = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut found = httparse::Request::new(&mut []);
    match found.parse_with_uninit_headers(text, &mut room) {
        Ok(httparse::Status::Complete(length)) if length == text.len() => {}
        Ok(_) => return Err(Refused::Malformed),
        Err(httparse::Error::TooManyHeaders) => return Err(Refused::TooLarge),
        Err(httparse::Error::Version) => return Err(Refused::Version),
        Err(_) => return Err(Refused::Malformed),
    }
    let (Some(method), Some(target), Some(version)) = (found.method, found.path, found.version) else {
        return Err(Refused::Malformed);
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| Refused::Malformed)?;
    let target = Uri::from_maybe_shared(text.slice_ref(target.as_bytes())).map_err(|_| Refused::Malformed)?;
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let fields = Fields::found(text, found.headers);
    if !fields.begin_behind_whole_lines() || !text.ends_with(b"\r\n\r\n") {
        return Err(Refused::Malformed);
    }
    let framing = framing(&fields, version)?;
    let then = match version {
        _ if has_token(&fields, "close") => Then::Ends,
        Version::Http11 => Then::Stays,
        Version::Http10 if has_token(&fields, "keep-alive") => Then::StaysSo,
        Version::Http10 => Then::Ends,
    };
    let waits = fields.get(Name::Expect).is_some_and(|it| it.eq_ignore_ascii_case(b"100-continue"));
    let expects = waits && version == Version::Http11;
    Ok(Head { method, target, fields, version, framing, then, expects })
}

fn framing(fields: &Fields, version: Version) -> Result<Framing, Refused> {
    let mut codings = fields.all(Name::TransferEncoding);
    let mut lengths = fields.all(Name::ContentLength);
    match (codings.next(), lengths.next()) {
        (None, None) => Ok(Framing::Exact(0)),
        (None, Some(length)) => {
            let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let length = str::from_utf8(length).ok().filter(|_| is_number).and_then(|it| it.parse().ok());
            length.filter(|_| lengths.next().is_none()).map(Framing::Exact).ok_or(Refused::Malformed)
        }
        (Some(_), Some(_)) => Err(Refused::Malformed),
        (Some(_), None) if version == Version::Http10 => Err(Refused::Malformed),
        (Some(coding), None) => match coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none() {
            true => Ok(Framing::Chunked),
            false => Err(Refused::Coding),
        },
    }
}

/// Does `Connection` say this?
fn has_token(fields: &Fields, token: &str) -> bool {
    let mut tokens = fields.all(Name::Connection).flat_map(|it| it.split(|it| *it == b','));
    tokens.any(|it| it.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use mcp_transport::head_end;

    use super::*;

    #[track_caller]
    fn check(lines: &str, want: &str) {
        let text = Bytes::from(format!("{}\r\n\r\n", lines.replace(" | ", "\r\n")));
        assert_eq!(head_end(&text, 0), Some(text.len()), "{lines}");
        let got = match read(&text) {
            Ok(Head { method, target, framing, then, expects, .. }) => {
                let keeps = if then == Then::Ends { "ends" } else { "keeps" };
                let expects = if expects { " expects" } else { "" };
                format!("{method} {target} {framing:?} {keeps}{expects}")
            }
            Err(refused) => format!("{}", refused.status().as_u16()),
        };
        assert_eq!(got, want, "{lines}");
    }

    #[test]
    fn a_head_says_where_its_body_ends_and_whether_more_may_follow() {
        check("GET /mcp?a=b HTTP/1.1 | Host: x", "GET /mcp?a=b Exact(0) keeps");
        check("POST http://x/mcp HTTP/1.1 | Content-Length: 12", "POST http://x/mcp Exact(12) keeps");
        check("POST / HTTP/1.1 | transfer-encoding: Chunked", "POST / Chunked keeps");
        check("GET / HTTP/1.1 | connection: te, Close", "GET / Exact(0) ends");
        check("GET / HTTP/1.0", "GET / Exact(0) ends");
        check("GET / HTTP/1.0 | connection: keep-alive", "GET / Exact(0) keeps");
        check("GET / HTTP/1.0 | connection: keep-alive | connection: close", "GET / Exact(0) ends");
        check("PUT / HTTP/1.1 | expect: 100-Continue | content-length: 1", "PUT / Exact(1) keeps expects");
        check("PUT / HTTP/1.0 | expect: 100-continue | content-length: 1", "PUT / Exact(1) ends");
        check("OPTIONS * HTTP/1.1", "OPTIONS * Exact(0) keeps");
    }

    #[test]
    fn what_could_be_understood_in_two_ways_is_refused() {
        for fields in [
            "content-length: 1 | content-length: 1",
            "content-length: 1, 1",
            "content-length: +1",
            "content-length: ",
            "content-length: 1 | transfer-encoding: chunked",
            "content-length: 99999999999999999999",
            "content-length : 1",
            "x: a | \tb",
            "x\u{1}: a",
            "x: a\u{1}",
            "x: a\u{7f}",
            "x: a\ncontent-length: 5",
        ] {
            check(&format!("POST / HTTP/1.1 | {fields}"), "400");
        }
        check("POST / HTTP/1.0 | transfer-encoding: chunked", "400");
        check("POST / HTTP/1.1 | transfer-encoding: gzip, chunked", "501");
        check("POST / HTTP/1.1 | transfer-encoding: chunked | transfer-encoding: chunked", "501");
        check("GET / HTTP/2.0", "505");
        check("GET  / HTTP/1.1", "400");
        check("GET /\u{1} HTTP/1.1", "400");
        check("nonsense", "400");
        check(&format!("GET / HTTP/1.1{}", " | x: y".repeat(MOST_FIELDS + 1)), "431");
        check(&format!("GET / HTTP/1.1{}", " | x: y".repeat(MOST_FIELDS)), "GET / Exact(0) keeps");
    }

    #[test]
    fn empty_lines_before_a_head_are_none_of_it() {
        assert_eq!((blank(b"\r\n\nG"), blank(b"\r\rG"), blank(b"\n\r")), (3, 0, 1));
    }
}
