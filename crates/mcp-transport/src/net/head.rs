//! The head of an HTTP response, read from a raw stream within bounds.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::net::http1::head_end;

/// The most bytes of a head, and of the fields in it.
const MOST_BYTES: usize = 64 << 10;
const MOST_FIELDS: usize = 128;

/// How every answer begins that is one.
const BEGINNING_OF_ALL: &[u8] = b"HTTP/1.";

/// As much as is told of a body, in bytes.
#[cfg(feature = "websocket")]
const BEGINNING: usize = 4 << 10;

/// A response without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    /// What it says of the body.
    pub(crate) body: OfBody,
    /// As it came.
    text: Bytes,
    /// Made of it when somebody asks: most answers are told by their status and their type.
    headers: OnceLock<Box<HeaderMap>>,
}

/// What a head says of the body behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OfBody {
    pub(crate) coding: Coding,
    pub(crate) length: Length,
    /// The connection ends behind it.
    pub(crate) closes: bool,
    /// Its type, with parameters; a part of the head.
    pub(crate) kind: Bytes,
}

/// How a body is coded for its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Coding {
    #[default]
    None,
    Chunked,
    /// In another way.
    Other,
}

/// How long a body is said to be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Length {
    #[default]
    Unsaid,
    Exact(u64),
    /// It is said twice, and differently.
    Two,
    /// What stands there is no number.
    Odd,
}

/// The versions of HTTP that have such a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

/// Reads one head. What came after it stays in `buffer`. Says in words why there is none.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<Head, String> {
    let mut known = 0;
    loop {
        if let Some(head) = take(buffer, known)? {
            return Ok(head);
        }
        known = buffer.len();
        match stream.read_buf(buffer).await {
            Ok(0) => return Err(ended(buffer).to_owned()),
            Ok(_) => {}
            Err(error) => return Err(super::tls::io_words(&error)),
        }
    }
}

/// What it means that nothing comes behind this.
pub(crate) fn ended(buffer: &[u8]) -> &'static str {
    match buffer {
        [] => "it closed the connection without an answer",
        _ => "its answer broke off",
    }
}

/// Takes the head that begins what came in out of it; `None` where it is not whole yet. It is known to have no end in so
/// many bytes.
pub(crate) fn take(input: &mut BytesMut, known: usize) -> Result<Option<Head>, &'static str> {
    // Some end a body with a line break that belongs to nothing.
    let blank = input.iter().take_while(|it| matches!(it, b'\r' | b'\n')).count();
    input.advance(blank);
    let known = if blank > 0 { 0 } else { known };
    // What is something else is told at once: the end of a head may never come.
    let begun = input.len().min(BEGINNING_OF_ALL.len());
    if input[..begun] != BEGINNING_OF_ALL[..begun] {
        return Err(NO_HTTP);
    }
    let end = head_end(input, known);
    if end.unwrap_or(input.len()) > MOST_BYTES {
        return Err("its answer has no end of headers");
    }
    let Some(end) = end else { return Ok(None) };
    let text = input.split_to(end).freeze();
    let (head, length) = parse(&text)?;
    if length < text.len() {
        // Lines that end with a line feed alone: what looked like the end was one of the body.
        *input = [&text[length..], &input[..]].concat()[..].into();
    }
    Ok(Some(head))
}

const NO_HTTP: &str = "its answer is no HTTP";

/// The head that a text begins with, and its length.
fn parse(text: &Bytes) -> Result<(Head, usize), &'static str> {
    let mut room = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut found = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut found, text, &mut room);
    let Ok(httparse::Status::Complete(length)) = parsed else { return Err(NO_HTTP) };
    let mut body = OfBody::default();
    for field in found.headers.iter() {
        body.learn(field, text);
    }
    let version = if found.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let Some(Ok(status)) = found.code.map(StatusCode::from_u16) else { return Err(NO_HTTP) };
    let head = Head { status, version, body, text: text.slice(..length), headers: OnceLock::new() };
    Ok((head, length))
}

/// The fields of a head that was read before.
fn fields(text: &Bytes) -> HeaderMap {
    let mut room = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut found = httparse::Response::new(&mut room);
    // It was read once.
    let _ = found.parse(text);
    let mut res = HeaderMap::with_capacity(found.headers.len());
    for field in found.headers.iter() {
        // A field that cannot be one says nothing.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value))
        {
            res.append(name, value);
        }
    }
    res
}

impl Head {
    /// One of another making.
    #[cfg(any(feature = "http", feature = "sse", test))]
    pub(crate) fn made(status: StatusCode, headers: HeaderMap) -> Head {
        let body = OfBody {
            kind: headers
                .get(CONTENT_TYPE)
                .map(|it| Bytes::copy_from_slice(it.as_bytes()))
                .unwrap_or_default(),
            ..OfBody::default()
        };
        Head { status, version: Version::Http11, body, text: Bytes::new(), headers: Box::new(headers).into() }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.headers.get_or_init(|| Box::new(fields(&self.text)))
    }

    /// Does another one follow that is the answer?
    pub(crate) fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

impl OfBody {
    /// Takes in what a field of `text` says.
    fn learn(&mut self, field: &httparse::Header<'_>, text: &Bytes) {
        let is = |name: &HeaderName| field.name.eq_ignore_ascii_case(name.as_str());
        let mut parts = field.value.split(|it| *it == b',').map(<[u8]>::trim_ascii);
        // Most names are told apart by their length alone.
        match field.name.len() {
            10 if is(&CONNECTION) => self.closes |= parts.any(|it| it.eq_ignore_ascii_case(b"close")),
            12 if is(&CONTENT_TYPE) && self.kind.is_empty() => self.kind = text.slice_ref(field.value),
            // The same may be said more than once, by more than one field or in one.
            14 if is(&CONTENT_LENGTH) => self.length = parts.fold(self.length, Length::and),
            17 if is(&TRANSFER_ENCODING) => parts.for_each(|it| self.code(it)),
            _ => {}
        }
    }

    /// Takes in one of the ways in which the body is coded.
    fn code(&mut self, coding: &[u8]) {
        // Who says it twice has copied another's head; who says that it is not coded at all is of another time. The body's end is
        // known, but whoever is between here and the server may see another one.
        let is_odd = self.coding != Coding::None || coding.eq_ignore_ascii_case(b"identity");
        self.closes |= is_odd;
        if coding.eq_ignore_ascii_case(b"chunked") && self.coding != Coding::Other {
            self.coding = Coding::Chunked;
        } else if !coding.eq_ignore_ascii_case(b"identity") {
            self.coding = Coding::Other;
        }
    }
}

impl Length {
    /// What is known when this is said, too.
    fn and(self, said: &[u8]) -> Length {
        let is_number = !said.is_empty() && said.iter().all(u8::is_ascii_digit);
        let number = str::from_utf8(said).ok().filter(|_| is_number).and_then(|it| it.parse().ok());
        match (self, number) {
            (Length::Odd, _) | (_, None) => Length::Odd,
            (Length::Unsaid, Some(number)) => Length::Exact(number),
            (Length::Exact(former), Some(number)) if former == number => self,
            (Length::Exact(_) | Length::Two, Some(_)) => Length::Two,
        }
    }
}

#[cfg(feature = "websocket")]
impl Head {
    /// Does a list header have this token, in any letters?
    pub(crate) fn has_token(&self, name: &HeaderName, token: &str) -> bool {
        let values = self.headers().get_all(name).iter().filter_map(|it| it.to_str().ok());
        values.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case(token))
    }

    /// The beginning of the body, as much as there is of it before `stream` ends or is silent. `buffer` is what
    /// [`read`] left.
    pub(crate) async fn beginning(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        mut buffer: BytesMut,
    ) -> Bytes {
        let promised = match self.body.length {
            Length::Exact(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            Length::Unsaid | Length::Two | Length::Odd => usize::MAX,
        };
        let wanted = promised.min(BEGINNING);
        while buffer.len() < wanted && matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {}
        buffer.truncate(wanted);
        match self.body.coding {
            Coding::Chunked => first_chunk(buffer.freeze()),
            Coding::None | Coding::Other => buffer.freeze(),
        }
    }
}

/// What the first chunk of a body holds: enough to tell what it says.
#[cfg(feature = "websocket")]
pub(crate) fn first_chunk(body: Bytes) -> Bytes {
    match httparse::parse_chunk_size(&body) {
        Ok(httparse::Status::Complete((start, length))) => {
            let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
            body.slice(start..end.min(body.len()))
        }
        Ok(httparse::Status::Partial) | Err(_) => Bytes::new(),
    }
}

/// A request's head as it came, for tests that are the server: as much of it as there is.
#[cfg(test)]
pub(crate) async fn heard(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut res = Vec::new();
    while !res.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => res.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&res).into_owned()
}

#[cfg(all(test, feature = "websocket"))]
mod tests {
    use super::*;

    /// What is understood of a response that comes byte by byte: its status, what follows, and its body.
    async fn told(text: &str) -> String {
        let mut stream = tokio_test_stream(text);
        let mut buffer = BytesMut::new();
        match read(&mut stream, &mut buffer).await {
            Err(words) => words,
            Ok(head) => {
                let body = head.beginning(&mut stream, buffer).await;
                format!("{} {}", head.status.as_u16(), String::from_utf8_lossy(&body))
            }
        }
    }

    fn tokio_test_stream(text: &str) -> impl AsyncRead + Unpin {
        let (mut here, there) = tokio::io::duplex(1);
        let text = text.to_owned();
        tokio::spawn(async move {
            // Whoever has read enough hangs up.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut here, text.as_bytes()).await;
        });
        there
    }

    #[track_caller]
    fn check(got: String, want: &str) {
        assert_eq!(got, want);
    }

    #[tokio::test]
    async fn a_head_and_the_beginning_of_a_body_are_read() {
        check(told("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nnope").await, "404 no");
        check(told("HTTP/1.0 403 F\r\n\r\nnot you").await, "403 not you");
        check(
            told("HTTP/1.1 500 E\r\nTransfer-Encoding: chunked\r\n\r\n4\r\noops\r\n0\r\n\r\n").await,
            "500 oops",
        );
        check(
            told("HTTP/1.1 500 E\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\noo").await,
            "500 oo",
        );
        check(told("HTTP/1.1 500 E\r\nTransfer-Encoding: chunked\r\n\r\nzz").await, "500 ");
        let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(10_000));
        assert_eq!(told(&long).await.len(), "200 ".len() + BEGINNING);
    }

    #[tokio::test]
    async fn what_is_no_head_is_told_in_words() {
        check(told("").await, "it closed the connection without an answer");
        check(told("HTTP/1.1 200 OK\r\nA: b").await, "its answer broke off");
        check(told("SSH-2.0-OpenSSH_9.9\r\n").await, "its answer is no HTTP");
        let fields = "A: b\r\n".repeat(200);
        check(told(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).await, "its answer is no HTTP");
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(70_000));
        check(told(&endless).await, "its answer has no end of headers");
    }
}
