//! The way to a child: messages to lines, many in one write.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::oneshot;

use super::encoding::StreamEncoding;
use crate::{EndReason, Out, OutQueue};

/// How many messages are written at once, and how large they may be together before they are written one by one.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 64 << 10;

/// Writes messages, many at once. Ends with `None` when the process does not read any more or there is nothing left
/// to write, with a reason when it keeps its input open and does not read. Once `last` is over, what waits by then is
/// all that is written: a call that was given up a moment ago is still cancelled.
pub(super) async fn write(
    mut stdin: ChildStdin,
    mut out: OutQueue,
    mut last: oneshot::Receiver<Infallible>,
    encoding: StreamEncoding,
    stall: Duration,
) -> Option<EndReason> {
    // Both grow with what is written: there may be many servers, and most are told little at once.
    let mut batch = Vec::new();
    let mut buffer = BytesMut::new();
    loop {
        let taken = tokio::select! {
            biased;
            taken = out.next_many(&mut batch, BATCH) => taken,
            _ = &mut last => 0,
        };
        if taken == 0 {
            return None;
        }
        out.gather(&mut batch, BATCH).await;
        for item in batch.drain(..) {
            let body = match item {
                Out::Message(message) => message.body,
                Out::Abandon { id: _, notice: Some(notice) } => notice,
                Out::Abandon { id: _, notice: None } => continue,
            };
            let body = encoding.encode(body);
            if buffer.len() + body.len() > BATCH_BYTES && !buffer.is_empty() {
                match push(&mut stdin, &mut buffer, stall).await {
                    Pushed::All => {}
                    Pushed::Closed => return None,
                    Pushed::Stalled => return Some(EndReason::Stalled(stall)),
                }
            }
            append_line(&mut buffer, &body);
        }
        match push(&mut stdin, &mut buffer, stall).await {
            Pushed::All => {}
            Pushed::Closed => return None,
            Pushed::Stalled => return Some(EndReason::Stalled(stall)),
        }
    }
}

/// A caller's JSON may have line breaks between its tokens; on this wire they would cut the message in two.
fn append_line(buffer: &mut BytesMut, body: &Bytes) {
    let start = buffer.len();
    buffer.extend_from_slice(body);
    let added = &mut buffer[start..];
    if memchr::memchr2(b'\n', b'\r', added).is_some() {
        for byte in added {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    buffer.extend_from_slice(b"\n");
}

enum Pushed {
    All,
    Closed,
    Stalled,
}

async fn push(stdin: &mut ChildStdin, buffer: &mut BytesMut, stall: Duration) -> Pushed {
    while !buffer.is_empty() {
        let mut writing = pin!(stdin.write(buffer));
        // Most of the time there is room: no clock is asked for that.
        let at_once = poll_fn(|context| Poll::Ready(writing.as_mut().poll(context))).await;
        let written = match at_once {
            Poll::Ready(written) => written,
            Poll::Pending => match tokio::time::timeout(stall, writing).await {
                Ok(written) => written,
                Err(_) => return Pushed::Stalled,
            },
        };
        match written {
            Ok(0) | Err(_) => return Pushed::Closed,
            Ok(written) => buffer.advance(written),
        }
    }
    Pushed::All
}
