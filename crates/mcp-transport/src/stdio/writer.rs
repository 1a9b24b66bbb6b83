//! The way to a child: lines, many in one write.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::oneshot;

use super::write_buffer::{Batch, Outbox};
use crate::error::end::DisconnectReason;

/// Writes messages, many at once. Ends with `None` when the process does not read any more or there is nothing left
/// to write, with a reason when it keeps its input open and does not read. Once `last` is over, what waits by then is
/// all that is written: a call that was given up a moment ago is still cancelled.
pub(super) async fn write(
    mut stdin: ChildStdin,
    mut outbox: Outbox,
    mut last: oneshot::Receiver<Infallible>,
    stall: Duration,
) -> Option<DisconnectReason> {
    let mut batch = Batch::default();
    loop {
        let messages = tokio::select! {
            biased;
            messages = outbox.wait() => messages?,
            _ = &mut last => return None,
        };
        outbox.gather(messages).await;
        outbox.take(&mut batch);
        for part in batch.parts() {
            match push(&mut stdin, part, stall).await {
                Pushed::All => {}
                Pushed::Closed => return None,
                Pushed::Stalled => return Some(DisconnectReason::Stalled(stall)),
            }
        }
        outbox.written(&mut batch);
    }
}

enum Pushed {
    All,
    Closed,
    Stalled,
}

async fn push(stdin: &mut ChildStdin, mut bytes: &[u8], stall: Duration) -> Pushed {
    while !bytes.is_empty() {
        let mut writing = pin!(stdin.write(bytes));
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
            Ok(written) => bytes = &bytes[written..],
        }
    }
    Pushed::All
}
