//! Writes messages to a child, many in one write.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

use super::system::StdinPipe;
use super::write_buffer::{WriteBatch, WriteBuffer};
use crate::error::disconnect::DisconnectReason;

/// Writes messages in batches. Returns `None` when the process closed its input or there is nothing left to write, and
/// a reason when the process reads nothing for `stall_timeout`. When the sender of `stop` is dropped, only messages
/// that are queued by then are written, so that recent cancel notices are still sent.
pub(super) async fn write_messages(
    mut stdin: StdinPipe,
    mut write_buffer: WriteBuffer,
    mut stop: oneshot::Receiver<Infallible>,
    stall_timeout: Duration,
) -> Option<DisconnectReason> {
    let mut batch = WriteBatch::default();
    loop {
        let messages = tokio::select! {
            biased;
            messages = write_buffer.wait() => messages?,
            _ = &mut stop => return None,
        };
        write_buffer.wait_for_senders(messages).await;
        write_buffer.take(&mut batch);
        for chunk in batch.chunks() {
            match write_chunk(&mut stdin, chunk, stall_timeout).await {
                WriteOutcome::All => {}
                WriteOutcome::Closed => return None,
                WriteOutcome::Stalled => return Some(DisconnectReason::Stalled(stall_timeout)),
            }
        }
        write_buffer.release(&mut batch);
    }
}

/// How a write ended.
enum WriteOutcome {
    /// All bytes were written.
    All,
    /// The server has closed its input.
    Closed,
    /// The server did not read for too long.
    Stalled,
}

/// Writes all bytes. Stops if the server reads none for `stall_timeout`.
async fn write_chunk(stdin: &mut StdinPipe, mut bytes: &[u8], stall_timeout: Duration) -> WriteOutcome {
    while !bytes.is_empty() {
        let mut writing = pin!(stdin.write(bytes));
        // Usually the pipe has room; no timer is needed then.
        let first_poll = poll_fn(|context| Poll::Ready(writing.as_mut().poll(context))).await;
        let written = match first_poll {
            Poll::Ready(written) => written,
            Poll::Pending => match tokio::time::timeout(stall_timeout, writing).await {
                Ok(written) => written,
                Err(_) => return WriteOutcome::Stalled,
            },
        };
        match written {
            Ok(0) | Err(_) => return WriteOutcome::Closed,
            Ok(written) => bytes = &bytes[written..],
        }
    }
    WriteOutcome::All
}
