//! What must hold of any bytes on a connection, for the fuzz target `gateway_wire`: they are the same requests however
//! they are cut, and no request's end is a matter of opinion.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Body, Name, NoHead, Response, Wire};
use crate::budget::Budget;

/// How long a body may be, in bytes.
const MOST: usize = 1000;

/// The bytes of a connection.
pub(crate) fn wire(bytes: &[u8]) {
    let whole = requests(bytes, bytes.len().max(1));
    for length in [1, 7, 64] {
        assert_eq!(requests(bytes, length), whole, "in pieces of {length}");
    }
}

/// What is asked, in pieces of so many bytes.
fn requests(bytes: &[u8], length: usize) -> Vec<String> {
    let mut reading = pin!(async {
        let mut wire = Wire::new(Pieces { rest: bytes, length });
        let budget = Budget::new(usize::MAX);
        let mut res = Vec::new();
        loop {
            let head = match wire.head().await {
                Ok(head) => head,
                Err(NoHead::Refused(refused)) => {
                    res.push(format!("{refused:?}"));
                    break res;
                }
                Err(NoHead::Gone | NoHead::Io(_)) => break res,
            };
            let lengths: Vec<&[u8]> = head.fields.all(Name::ContentLength).collect();
            assert!(lengths.is_empty() || head.fields.get(Name::TransferEncoding).is_none());
            let body = wire.body(MOST, &budget).await;
            if let Ok(body) = &body {
                let announced = lengths.first().and_then(|it| str::from_utf8(it).ok()?.parse().ok());
                assert!(body.len() <= MOST && announced.is_none_or(|it: usize| it == body.len()));
            }
            res.push(format!("{} {} {body:?}", head.method, head.target));
            let follows = wire.respond(Response::new(StatusCode::OK, Body::Whole(Bytes::new()))).await;
            // Where a request had no end, nothing follows.
            assert!(body.is_ok() || matches!(follows, Ok(false)));
            if !matches!(follows, Ok(true)) {
                break res;
            }
        }
    });
    match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(res) => res,
        Poll::Pending => panic!("bytes that are there are not waited for"),
    }
}

/// A stream that has everything, and gives so much of it at once.
struct Pieces<'a> {
    rest: &'a [u8],
    length: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.length.min(self.rest.len()).min(buf.remaining());
        let (piece, rest) = self.rest.split_at(length);
        buf.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
