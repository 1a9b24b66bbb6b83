//! HTTP/1.1 as the gateway speaks it: one connection, on it one request after the other, each with its response.
//!
//! What is read (`head`, [`ChunkedBody`]) and written (`write`) is decided by functions of bytes; here they meet a stream. No
//! request is read before the one before it was answered, but for what came along with it: a buffer of it and no more. A
//! body is read when somebody wants it, and in the task that answers: nothing has to be handed over, and nobody woken.

mod body;
mod fields;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod head;
mod name;
mod response;
mod write;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{Method, StatusCode};
use mcp_transport::{ChunkedBody, ChunkedPart, NotChunked, head_end};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::io::poll_read_buf;

use self::head::{Framing, Version};
use self::response::Events;
use self::write::{Date, Length, Then};
use crate::limits::byte_budget::SMALL;

pub(super) use self::body::NotWhole;
pub(super) use self::fields::{Fields, NotPlain};
pub(super) use self::head::{Head, Refused};
pub(super) use self::name::Name;
pub(super) use self::response::{Body, Response};

/// How large the head of a request may be, in bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// How much is read at once where nobody knows how much there is, and how much of what comes after a request is taken in
/// while it is answered, in bytes.
const PART: usize = 8 * 1024;
/// How much of events that are there at once is written at once, in bytes; and up to which length a body is copied, to be
/// written with its head.
const GATHERED: usize = 16 * 1024;
/// How long a client that still sends has to hear why he is not listened to.
const LINGER: Duration = Duration::from_secs(1);

/// A connection.
pub(super) struct Wire<S> {
    stream: S,
    /// What came in and was not taken yet.
    input: BytesMut,
    /// What is to be written.
    out: Vec<u8>,
    /// How much of it was.
    written: usize,
    date: Date,
    left: Left,
    then: Then,
    version: Version,
    /// The request wants no body in its response.
    is_head: bool,
    expects: bool,
}

/// How much of the request's body was not read.
#[derive(Debug)]
enum Left {
    Exact(u64),
    Chunks(ChunkedBody),
    /// Nobody knows: what comes is no request.
    Unknown,
}

/// What is left of a body that nobody wanted.
enum Rest {
    Nothing,
    Left,
}

/// Why there is no other request.
#[derive(Debug)]
pub(super) enum NoHead {
    /// The client has gone, between two requests.
    Gone,
    Refused(Refused),
    Io(io::Error),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S) -> Wire<S> {
        Wire {
            stream,
            input: BytesMut::new(),
            out: Vec::new(),
            written: 0,
            date: Date::default(),
            left: Left::Exact(0),
            then: Then::Stays,
            version: Version::Http11,
            is_head: false,
            expects: false,
        }
    }

    /// The head of the next request. Cancel-safe.
    pub(super) async fn head(&mut self) -> Result<Head, NoHead> {
        let (mut skipped, mut known) = (0, 0);
        if self.input.is_empty() && self.input.capacity() > 0 {
            // Nobody has a part of it any more, most often: the same memory again is nearer than other memory.
            self.input.reserve(PART);
        }
        loop {
            if known == 0 {
                let blank = head::blank(&self.input);
                self.input.advance(blank);
                skipped += blank;
                // What is no text at all, most often TLS, is told at once: the end of a head may never come.
                let is_text = |it: &u8| it.is_ascii_graphic() || self.input[..] == *b"\r";
                if !self.input.first().is_none_or(is_text) {
                    return Err(self.refuse(Refused::Malformed));
                }
            }
            let end = if self.input.is_empty() { None } else { head_end(&self.input, known) };
            // Half an empty line is still one.
            known = if self.input[..] == *b"\r" { 0 } else { self.input.len() };
            if end.unwrap_or(known) + skipped > HEAD_BYTES {
                return Err(self.refuse(Refused::TooLarge));
            }
            if let Some(end) = end {
                let text = self.take(end);
                return head::read(&text).map(|it| self.begin(it)).map_err(|it| self.refuse(it));
            }
            match poll_fn(|cx| self.poll_fill(cx, PART)).await {
                Ok(0) if known == 0 => return Err(NoHead::Gone),
                Ok(0) => return Err(NoHead::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => return Err(NoHead::Io(error)),
            }
        }
    }

    /// Takes so many bytes of what came in. What came behind many does not keep their memory.
    fn take(&mut self, bytes: usize) -> Bytes {
        let taken = self.input.split_to(bytes).freeze();
        if bytes >= SMALL {
            self.input = BytesMut::from(&self.input[..]);
        }
        taken
    }

    fn begin(&mut self, head: Head) -> Head {
        self.left = match head.framing {
            Framing::Exact(bytes) => Left::Exact(bytes),
            Framing::Chunked => Left::Chunks(ChunkedBody::new()),
        };
        self.then = head.then;
        self.version = head.version;
        self.is_head = head.method == Method::HEAD;
        self.expects = head.expects;
        head
    }

    fn refuse(&mut self, refused: Refused) -> NoHead {
        (self.left, self.then, self.is_head) = (Left::Unknown, Then::Ends, false);
        NoHead::Refused(refused)
    }

    /// Reads `most` bytes at most; none when there is nothing more to come.
    fn poll_fill(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        // A little room that is left is used up before more is made.
        if self.input.capacity() - self.input.len() < most.min(PART / 8) {
            self.input.reserve(most.max(PART));
        }
        poll_read_buf(Pin::new(&mut self.stream), cx, &mut (&mut self.input).limit(most))
    }

    /// What `work` brings; `None` when the client goes away before, or says that he sends nothing more. Cancel-safe where the
    /// work is.
    pub(super) async fn while_there<T>(&mut self, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(it) => Poll::Ready(Some(it)),
            Poll::Pending => self.poll_gone(cx).map(|()| None),
        })
        .await
    }

    /// Is ready when the client has gone. Of one who has sent more than is taken in nobody knows.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.input.len() < PART {
            let more = PART - self.input.len();
            if let Ok(0) | Err(_) = ready!(self.poll_fill(cx, more)) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Lets no other request follow the one that is answered now.
    pub(super) fn finish(&mut self) {
        self.then = Then::Ends;
    }

    /// Sends a response: gives whether another request may follow. Not cancel-safe: a response that was begun must be sent.
    pub(super) async fn respond(&mut self, res: Response) -> io::Result<bool> {
        if let Rest::Left = self.pass_over() {
            self.then = Then::Ends;
        }
        let date = self.date.at(SystemTime::now());
        let length = match &res.body {
            Body::Whole(_) if res.status == StatusCode::NO_CONTENT => Length::None,
            Body::Whole(bytes) => Length::Exact(bytes.len()),
            Body::Events(_) if self.version == Version::Http11 => Length::Chunked,
            Body::Events(_) => {
                self.then = Then::Ends;
                Length::Open
            }
        };
        write::head(&mut self.out, &res, length, self.then, date);
        match res.body {
            _ if self.is_head => self.write(Bytes::new()).await?,
            Body::Whole(body) if body.len() <= GATHERED => {
                self.out.extend_from_slice(&body);
                self.write(Bytes::new()).await?;
            }
            Body::Whole(body) => self.write(body).await?,
            Body::Events(events) => self.events(events, length).await?,
        }
        Ok(self.then != Then::Ends)
    }

    /// Passes over what nobody wanted of the request's body, where it is small and there already.
    fn pass_over(&mut self) -> Rest {
        match &mut self.left {
            Left::Exact(0) => Rest::Nothing,
            // He has not begun to send it, and does not when he hears the response.
            Left::Exact(_) | Left::Chunks(_) if self.expects => Rest::Left,
            Left::Exact(bytes) if *bytes > self.input.len() as u64 => Rest::Left,
            Left::Exact(bytes) => {
                self.input.advance(*bytes as usize);
                Rest::Nothing
            }
            Left::Chunks(chunks) => loop {
                match chunks.next(&mut self.input) {
                    Ok(ChunkedPart::Piece(_)) => {}
                    Ok(ChunkedPart::End) => break Rest::Nothing,
                    Ok(ChunkedPart::Wanting) | Err(NotChunked) => break Rest::Left,
                }
            },
            Left::Unknown => {
                // What nobody counts any more is not kept.
                self.input = BytesMut::new();
                Rest::Left
            }
        }
    }

    /// Writes the head that waits, and events as they come; those that come together together.
    async fn events(&mut self, mut events: Events, length: Length) -> io::Result<()> {
        let mut is_over = false;
        while !is_over {
            let next = poll_fn(|cx| {
                while self.out.len() < GATHERED {
                    match events.as_mut().poll_next(cx) {
                        Poll::Ready(Some(event)) if length == Length::Chunked => {
                            write::chunk(&mut self.out, &event)
                        }
                        Poll::Ready(Some(event)) => self.out.extend_from_slice(&event),
                        Poll::Ready(None) => return Poll::Ready(Ok(true)),
                        Poll::Pending if self.out.is_empty() => {
                            return self.poll_gone(cx).map(|()| Err(io::ErrorKind::ConnectionReset.into()));
                        }
                        Poll::Pending => break,
                    }
                }
                Poll::Ready(Ok::<_, io::Error>(false))
            });
            is_over = next.await?;
            if is_over && length == Length::Chunked {
                self.out.extend_from_slice(write::LAST_CHUNK);
            }
            self.write(Bytes::new()).await?;
        }
        Ok(())
    }

    /// Writes what waits, and `more` behind it.
    async fn write(&mut self, more: Bytes) -> io::Result<()> {
        let is_large = self.out.len() > 2 * GATHERED;
        if more.is_empty() {
            // What a body was asked for with may be given up in the middle.
            while let rest @ [_, ..] = &self.out[self.written..] {
                match self.stream.write(rest).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    bytes => self.written += bytes,
                }
            }
        } else {
            self.stream.write_all_buf(&mut self.out[self.written..].chain(more)).await?;
        }
        self.out.clear();
        self.written = 0;
        // A large event is rare: what is kept for the next one is small.
        if is_large {
            self.out = Vec::new();
        }
        self.stream.flush().await
    }

    /// Ends the connection. A client that still sends hears the last response first: to close while something is unread
    /// takes back what was sent.
    pub(super) async fn end(mut self) {
        let closed = self.stream.shutdown().await;
        if closed.is_err() || self.then != Then::Ends {
            return;
        }
        let last = async {
            while let Ok(1..) = poll_fn(|cx| self.poll_fill(cx, PART)).await {
                self.input.clear();
            }
        };
        let _ = timeout(LINGER, last).await;
    }
}

#[cfg(test)]
mod tests;
