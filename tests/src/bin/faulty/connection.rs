//! The write half of a connection: standard output or a socket.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Mutex, Notify};

/// The destination of the bytes.
pub(crate) enum Writer {
    Output(tokio::io::Stdout),
    Socket(OwnedWriteHalf),
}

/// A shared write half. The reader waits for its end with [`Connection::over`].
pub(crate) struct Connection {
    writer: Mutex<Option<Writer>>,
    over: Notify,
}

impl Connection {
    pub(crate) fn new(writer: Writer) -> Connection {
        Connection { writer: Mutex::new(Some(writer)), over: Notify::new() }
    }

    /// Writes all bytes; returns false if the connection is closed.
    pub(crate) async fn write(&self, bytes: &[u8]) -> bool {
        self.drip(bytes, bytes.len().max(1), Duration::ZERO).await
    }

    /// Writes pieces of this size with pauses, without interleaving.
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

    /// Closes the connection.
    pub(crate) async fn end(&self) {
        match self.writer.lock().await.take() {
            Some(Writer::Output(_)) => std::process::exit(0),
            Some(Writer::Socket(_)) | None => self.over.notify_one(),
        }
    }

    /// Resets the connection.
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

    /// Resolves when this side has ended the connection.
    pub(crate) async fn over(&self) {
        self.over.notified().await;
    }
}
