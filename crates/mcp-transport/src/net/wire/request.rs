//! What a request looks like on the wire.

use std::io::Write as _;

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::framing::Then;

/// A request.
#[derive(Debug, Clone, Copy)]
pub(in crate::net) struct Request<'a> {
    pub(in crate::net) method: &'a Method,
    /// `/mcp`, or the whole URL for a proxy: visible ASCII, as a URI is.
    pub(in crate::net) target: &'a str,
    /// Without a length, which is that of the body.
    pub(in crate::net) headers: &'a HeaderMap,
    pub(in crate::net) body: Option<&'a Bytes>,
}

impl Request<'_> {
    /// What becomes of the connection behind it, whatever the answer says: a configured header may end it.
    pub(super) fn then(&self) -> Then {
        let values = self.headers.get_all(CONNECTION).iter();
        let mut tokens = values.flat_map(|it| it.as_bytes().split(|it| *it == b','));
        match tokens.any(|it| it.trim_ascii().eq_ignore_ascii_case(b"close")) {
            true => Then::Ends,
            false => Then::Stays,
        }
    }

    /// Writes the head, and the body behind it where it has no more than `most` bytes; gives what is to follow.
    pub(super) fn write(&self, out: &mut Vec<u8>, most: usize) -> Bytes {
        let small = self.body.map(|it| &it[..]).filter(|it| it.len() <= most).unwrap_or_default();
        out.reserve(512 + small.len());
        out.extend_from_slice(self.method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        // The first, as servers expect it.
        if let Some(host) = self.headers.get(HOST) {
            field(out, &HOST, host);
        }
        for (name, value) in self.headers.iter().filter(|(name, _)| *name != HOST) {
            field(out, name, value);
        }
        if let Some(body) = self.body {
            // It cannot fail: there is always room.
            let _ = write!(out, "content-length: {}\r\n", body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(small);
        self.body.filter(|it| it.len() > most).cloned().unwrap_or_default()
    }
}

fn field(out: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: Method, body: Option<&'static str>, want: &str) {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        headers.append("x", HeaderValue::from_static("1"));
        headers.append("x", HeaderValue::from_static("2"));
        headers.insert(HOST, HeaderValue::from_static("example.com"));
        let body = body.map(|it| Bytes::from_static(it.as_bytes()));
        let request = Request { method: &method, target: "/mcp?a", headers: &headers, body: body.as_ref() };
        let mut out = Vec::new();
        let rest = request.write(&mut out, 4);
        let got = String::from_utf8([&out[..], b"~", &rest[..]].concat()).unwrap();
        assert_eq!(got.replace("\r\n", "|"), want);
    }

    #[test]
    fn a_request_says_whom_it_is_for_and_how_long_it_is() {
        let fields = "host: example.com|accept: text/event-stream|x: 1|x: 2|";
        check(Method::GET, None, &format!("GET /mcp?a HTTP/1.1|{fields}|~"));
        check(Method::POST, Some("{}"), &format!("POST /mcp?a HTTP/1.1|{fields}content-length: 2||{{}}~"));
        check(Method::POST, Some(""), &format!("POST /mcp?a HTTP/1.1|{fields}content-length: 0||~"));
        check(
            Method::POST,
            Some("12345"),
            &format!("POST /mcp?a HTTP/1.1|{fields}content-length: 5||~12345"),
        );
    }
}
