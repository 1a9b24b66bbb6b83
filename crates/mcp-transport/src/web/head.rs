//! The head of an HTTP response, read from a raw stream within bounds.

#[cfg(feature = "websocket")]
use bytes::Bytes;
use bytes::{Buf, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes of a head, and of the fields in it.
const MOST_BYTES: usize = 64 << 10;
const MOST_FIELDS: usize = 128;

/// As much as is told of a body, in bytes.
#[cfg(feature = "websocket")]
const BEGINNING: usize = 4 << 10;

/// A response without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
}

/// Reads one head. What came after it stays in `buffer`. Says in words why there is none.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<Head, String> {
    let mut looked_at = 0;
    loop {
        // Only the end of a line can end a head: one that comes byte by byte is not read anew for each.
        if memchr::memchr(b'\n', &buffer[looked_at..]).is_some()
            && let Some((head, length)) = parse(buffer)?
        {
            buffer.advance(length);
            return Ok(head);
        }
        looked_at = buffer.len();
        if buffer.len() >= MOST_BYTES {
            return Err("its answer has no end of headers".to_owned());
        }
        match stream.read_buf(buffer).await {
            Ok(0) if buffer.is_empty() => return Err("it closed the connection without an answer".to_owned()),
            Ok(0) => return Err("its answer broke off".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(super::tls::io_words(&error)),
        }
    }
}

/// The head that begins here, and its length; `None` where it is not whole yet.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err("its answer is no HTTP".to_owned()),
    };
    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for field in response.headers.iter() {
        // A field that cannot be one says nothing.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value))
        {
            headers.append(name, value);
        }
    }
    let status = response.code.expect("a whole head has a status");
    Ok(Some((Head { status, headers }, length)))
}

#[cfg(feature = "websocket")]
impl Head {
    /// The tokens of a list header, in lower case.
    pub(crate) fn has_token(&self, name: &HeaderName, token: &str) -> bool {
        let values = self.headers.get_all(name).iter().filter_map(|it| it.to_str().ok());
        values.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case(token))
    }

    /// The beginning of the body, as much as there is of it before `stream` ends or is silent. `buffer` is what
    /// [`read`] left.
    pub(crate) async fn beginning(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        mut buffer: BytesMut,
    ) -> Bytes {
        let promised = self.headers.get(http::header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
        let promised = promised.and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
        let wanted = promised.min(BEGINNING);
        while buffer.len() < wanted && matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {}
        buffer.truncate(wanted);
        match self.has_token(&http::header::TRANSFER_ENCODING, "chunked") {
            true => first_chunk(buffer.freeze()),
            false => buffer.freeze(),
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
                format!("{} {}", head.status, String::from_utf8_lossy(&body))
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
