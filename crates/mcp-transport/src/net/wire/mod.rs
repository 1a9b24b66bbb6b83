//! HTTP/1.1 as a client speaks it: one connection, on it one exchange after the other.
//!
//! Whoever waits for an answer moves its connection on: no task stands between a request and its socket, and what is read
//! is handed to nobody. An answer is read while its request is still written, for a server may refuse what it has not
//! heard to the end. What is written ([`request`]) and where a body ends ([`framing`]) are functions of values.

mod framing;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod request;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::coop::unconstrained;

use self::framing::{Framing, Then};
use super::head::{self, Head};
use super::tls;
use crate::net::http1::{ChunkedPart, NotChunked};

pub(super) use self::request::Request;

/// How much room is made for what comes, in bytes: at first, and at most for a peer that fills it again and again.
const PART: usize = 8 << 10;
const LARGEST_PART: usize = 64 << 10;

/// Up to which length a body is copied, to be written with its head, in bytes.
const GATHERED: usize = 16 << 10;

/// As much as is set aside for a body because the peer says that it will be so long, in bytes.
pub(crate) const MOST_BELIEVED: usize = 4 << 20;

/// How many answers that are none yet (`102 Processing`) may come before the one that is: some say that they still work.
const MOST_INTERIM: usize = 1000;

/// A connection.
pub(super) struct Wire<S> {
    stream: S,
    /// What came in and was not taken yet.
    input: BytesMut,
    /// How much room is made for more.
    part: usize,
    /// More room was made than for what is little.
    had_much: bool,
    /// The head of the request, with its body where that is small, and how much of it was written.
    head: Vec<u8>,
    written: usize,
    /// What is written behind it.
    body: Bytes,
    sending: Sending,
    left: Framing,
    /// What the request says, and its answer.
    then: Then,
}

/// How a request's way to the server stands.
#[derive(Debug)]
enum Sending {
    /// There was none yet.
    Never,
    Underway,
    /// The server takes no more of it.
    Failed,
    Done,
}

/// A request that brought no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The connection was over when it had rested: nothing of the request was sent.
    Unsent,
    /// It broke off.
    Broken(Broken),
}

/// Why there is no more to come.
#[derive(Debug)]
pub(crate) enum Broken {
    Io(io::Error),
    /// What came is no answer, or not all of one.
    Answer(&'static str),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S) -> Wire<S> {
        Wire {
            stream,
            input: BytesMut::new(),
            part: PART,
            had_much: false,
            head: Vec::new(),
            written: 0,
            body: Bytes::new(),
            sending: Sending::Never,
            left: Framing::Exact(0),
            then: Then::Stays,
        }
    }

    /// Sends a request; resolves when the head of the answer is there. Not cancel-safe: a connection on which this was given
    /// up is of no use.
    pub(super) async fn send(&mut self, request: &Request<'_>) -> Result<Head, NoAnswer> {
        let (mut is_begun, mut known) = (false, 0);
        for _ in 0..=MOST_INTERIM {
            let head = poll_fn(|cx| {
                if !is_begun {
                    is_begun = true;
                    ready!(self.poll_begin(cx, request))?;
                }
                self.poll_head(cx, &mut known).map_err(NoAnswer::Broken)
            });
            let head = head.await?;
            if !head.is_interim() {
                let framed = framing::of(&head).map_err(|it| NoAnswer::Broken(Broken::Answer(it)));
                let (left, then) = framed?;
                (self.left, self.then) = (left, self.then.and(then));
                return Ok(head);
            }
            known = 0;
        }
        Err(NoAnswer::Broken(Broken::Answer("it goes on without an answer")))
    }

    /// Begins to write. Is pending where what comes is awaited already.
    fn poll_begin(&mut self, cx: &mut Context<'_>, request: &Request<'_>) -> Poll<Result<(), NoAnswer>> {
        debug_assert!(
            matches!(self.sending, Sending::Never | Sending::Done),
            "one that was given up is not used"
        );
        let has_rested = !matches!(self.sending, Sending::Never);
        // Nothing comes on a connection that rests but its end, or what nobody asked for. What is looked at for that is not
        // put off because this task has done much.
        if has_rested && pin!(unconstrained(poll_fn(|cx| self.poll_fill(cx)))).poll(cx).is_ready() {
            return Poll::Ready(Err(NoAnswer::Unsent));
        }
        if self.input.capacity() > 0 {
            // Nobody has a part of it any more, most often: the same memory again is nearer than other memory.
            self.input.reserve(PART);
        }
        self.head.clear();
        self.written = 0;
        self.body = request.write(&mut self.head, GATHERED);
        self.sending = Sending::Underway;
        // What has no head yet has no end.
        (self.left, self.then) = (Framing::Open, request.then());
        self.write(cx);
        match self.sending {
            Sending::Underway | Sending::Done if has_rested => Poll::Pending,
            Sending::Never | Sending::Underway | Sending::Done | Sending::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_head(&mut self, cx: &mut Context<'_>, known: &mut usize) -> Poll<Result<Head, Broken>> {
        self.write(cx);
        loop {
            if self.input.len() > *known
                && let Some(head) = head::take(&mut self.input, *known).map_err(Broken::Answer)?
            {
                return Poll::Ready(Ok(head));
            }
            *known = self.input.len();
            match ready!(self.poll_fill(cx)) {
                Ok(0) => return Poll::Ready(Err(self.ended(head::ended(&self.input)))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(Broken::Io(error))),
            }
        }
    }

    /// The next part of the answer's body: of one whose length is known as much as `wanted` at least, where there is as much
    /// and it is no more than [`MOST_BELIEVED`]; `None` at its end.
    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<Result<Option<Bytes>, Broken>> {
        self.write(cx);
        loop {
            match &mut self.left {
                Framing::Exact(0) => return Poll::Ready(Ok(None)),
                Framing::Exact(left) => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX);
                    let wanted = wanted.clamp(1, most.min(MOST_BELIEVED));
                    if self.input.len() >= wanted {
                        let piece = self.input.split_to(self.input.len().min(most)).freeze();
                        *left -= piece.len() as u64;
                        return Poll::Ready(Ok(Some(piece)));
                    }
                    if wanted > PART {
                        self.had_much = true;
                        // Or the last of it would have more room made.
                        self.input.reserve(wanted - self.input.len() + PART / 8);
                    }
                }
                Framing::Chunks(chunks) => match chunks.next(&mut self.input) {
                    Ok(ChunkedPart::Piece(piece)) => return Poll::Ready(Ok(Some(piece))),
                    Ok(ChunkedPart::End) => {
                        self.left = Framing::Exact(0);
                        continue;
                    }
                    Ok(ChunkedPart::Wanting) => {}
                    Err(NotChunked) => {
                        return Poll::Ready(Err(Broken::Answer("it does not come in chunks as it should")));
                    }
                },
                Framing::Open if self.input.is_empty() => {}
                Framing::Open => return Poll::Ready(Ok(Some(self.input.split().freeze()))),
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) if matches!(self.left, Framing::Open) => self.left = Framing::Exact(0),
                Ok(0) => return Poll::Ready(Err(self.ended("the connection ended before it did"))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(Broken::Io(error))),
            }
        }
    }

    /// How many bytes of the answer's body are still to come, where that is known.
    #[cfg(any(feature = "http", test, fuzzing))]
    pub(super) fn left(&self) -> Option<u64> {
        match self.left {
            Framing::Exact(left) => Some(left),
            Framing::Chunks(_) | Framing::Open => None,
        }
    }

    /// Is the answer read to its end?
    pub(super) fn is_read(&self) -> bool {
        matches!(self.left, Framing::Exact(0))
    }

    /// Makes it ready to rest; false where no other request may follow.
    pub(super) fn rests(&mut self) -> bool {
        if self.had_much {
            // Not kept for what may be little.
            (self.input, self.part, self.had_much) = (BytesMut::from(&self.input[..]), PART, false);
        }
        let is_sent = matches!(self.sending, Sending::Done);
        is_sent && self.is_read() && self.then == Then::Stays && self.input.is_empty()
    }

    /// Closes it in an orderly way, as far as that is possible at once.
    pub(super) fn close(mut self) {
        // Whether the server hears it changes nothing for us.
        let _ = Pin::new(&mut self.stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }

    /// Why there is no more after the stream has ended.
    fn ended(&self, words: &'static str) -> Broken {
        Broken::Answer(match self.sending {
            Sending::Failed if self.input.is_empty() => {
                "it closed the connection before it had read the request"
            }
            Sending::Never | Sending::Underway | Sending::Failed | Sending::Done => words,
        })
    }

    /// Writes as much of the request as the stream takes. A server that takes no more may have answered all the same.
    fn write(&mut self, cx: &mut Context<'_>) {
        if matches!(self.sending, Sending::Underway)
            && let Poll::Ready(written) = self.poll_write(cx)
        {
            self.body = Bytes::new();
            self.sending = match written {
                Ok(()) => Sending::Done,
                Err(error) => {
                    tracing::debug!("a request could not be written: {error}");
                    Sending::Failed
                }
            };
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(&mut self.stream);
        loop {
            let head = &self.head[self.written..];
            let bytes = match (head, &self.body[..]) {
                ([], []) => break,
                (head, []) => ready!(stream.as_mut().poll_write(cx, head))?,
                ([], body) => ready!(stream.as_mut().poll_write(cx, body))?,
                (head, body) => {
                    let parts = [io::IoSlice::new(head), io::IoSlice::new(body)];
                    ready!(stream.as_mut().poll_write_vectored(cx, &parts))?
                }
            };
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_head = bytes.min(head.len());
            self.written += of_head;
            self.body.advance(bytes - of_head);
        }
        stream.poll_flush(cx)
    }

    /// Reads what there is; none when there is nothing more to come.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // A little room that is left is used up before more is made.
        if self.input.capacity() - self.input.len() < PART / 8 {
            self.input.reserve(self.part);
        }
        let room = self.input.capacity() - self.input.len();
        let read = ready!(pin!(self.stream.read_buf(&mut self.input)).poll(cx));
        if let Ok(bytes) = &read
            && *bytes == room
            && room >= self.part
        {
            self.part = (self.part * 2).min(LARGEST_PART);
            self.had_much = true;
        }
        Poll::Ready(read)
    }
}

impl Broken {
    /// Why, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Broken::Io(error) => tls::io_words(error),
            Broken::Answer(words) => (*words).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
