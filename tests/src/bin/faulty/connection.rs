//! Where bytes go out: standard output or a socket, by whoever has something to say, and how it ends.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Mutex, Notify};

/// What is written to.
pub(crate) enum Writer {
    Output(tokio::io::Stdout),
    Socket(OwnedWriteHalf),
}

/// One way out. Whoever reads the other direction waits for its end, too.
pub(crate) struct Connection {
    writer: Mutex<Option<Writer>>,
    over: Notify,
}

impl Connection {
    pub(crate) fn new(writer: Writer) -> Connection {
        Connection { writer: Mutex::new(Some(writer)), over: Notify::new() }
    }

    /// Writes all of it; false when that is not possible any more.
    pub(crate) async fn write(&self, bytes: &[u8]) -> bool {
        self.drip(bytes, bytes.len().max(1), Duration::ZERO).await
    }

    /// Writes so many bytes at a time, with pauses, and lets nobody in between.
    pub(crate) async fn drip(&self, bytes: &[u8], piece: usize, pause: Duration) -> bool {
        let mut writer = self.writer.lock().await;
        for bytes in bytes.chunks(piece) {
            let written = match writer.as_mut() {
                Some(Writer::Output(it)) => {
                    let written = it.write_all(bytes).await;
                    written.and(it.flush().await)
                }
                Some(Writer::Socket(it)) => it.write_all(bytes).await,
                None => return false,
            };
            if written.is_err() {
                return false;
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        true
    }

    /// Closes it in order.
    pub(crate) async fn end(&self) {
        match self.writer.lock().await.take() {
            Some(Writer::Output(_)) => std::process::exit(0),
            Some(Writer::Socket(_)) | None => self.over.notify_one(),
        }
    }

    /// Breaks it off.
    pub(crate) async fn reset(&self) {
        match self.writer.lock().await.take() {
            Some(Writer::Output(_)) => crate::process::kill_itself(),
            Some(Writer::Socket(it)) => {
                it.as_ref().set_zero_linger().unwrap();
                self.over.notify_one();
            }
            None => {}
        }
    }

    /// Resolves when it was ended from here.
    pub(crate) async fn over(&self) {
        self.over.notified().await;
    }
}
