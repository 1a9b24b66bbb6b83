//! Talks to the hosts of this user that run.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::{sleep, timeout};

use crate::control::protocol::{ControlReply, ControlRequest, MAX_LINE_BYTES, to_line};
use crate::control::system::{ControlStream, connect_all};
use crate::runtime::system::is_running;

/// The maximum time for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time for a reply after which servers have started or stopped.
const SLOW_REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// How often it is checked whether a host has ended.
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The maximum size of a reply, in lines of requests.
const MAX_REPLY_BYTES: u64 = 16 * MAX_LINE_BYTES as u64;

/// A connection to a host.
pub(crate) struct ControlClient {
    /// The process id of the host.
    pub(crate) process: u32,
    stream: BufReader<ControlStream>,
}

impl ControlClient {
    /// Connects to all hosts of this user.
    pub(crate) async fn connect_all() -> io::Result<Vec<ControlClient>> {
        let streams = connect_all().await?;
        let client = |(process, stream)| ControlClient { process, stream: BufReader::new(stream) };
        Ok(streams.into_iter().map(client).collect())
    }

    /// Sends a request, and returns the reply.
    pub(crate) async fn request(&mut self, request: &ControlRequest) -> io::Result<ControlReply> {
        timeout(REPLY_TIMEOUT, self.exchange(request)).await?
    }

    /// Sends a request for which servers start or stop, and returns the reply.
    pub(crate) async fn request_slowly(&mut self, request: &ControlRequest) -> io::Result<ControlReply> {
        timeout(SLOW_REPLY_TIMEOUT, self.exchange(request)).await?
    }

    async fn exchange(&mut self, request: &ControlRequest) -> io::Result<ControlReply> {
        self.send(request).await?;
        self.next_reply().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Waits until the host has ended. Fails if that takes too long.
    pub(crate) async fn wait_until_ended(&mut self) -> io::Result<()> {
        timeout(SLOW_REPLY_TIMEOUT, async {
            // A host that ends may also reset the connection. Its servers end after that.
            while let Ok(Some(_)) = self.next_reply().await {}
            while is_running(self.process) {
                sleep(END_POLL_INTERVAL).await;
            }
        })
        .await?;
        Ok(())
    }

    /// Sends a request.
    pub(crate) async fn send(&mut self, request: &ControlRequest) -> io::Result<()> {
        self.stream.write_all(&to_line(request)).await
    }

    /// Returns the next reply; `None` at the end of the connection. Not cancel-safe.
    pub(crate) async fn next_reply(&mut self) -> io::Result<Option<ControlReply>> {
        let mut line = Vec::new();
        let length = (&mut self.stream).take(MAX_REPLY_BYTES).read_until(b'\n', &mut line).await?;
        if length == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }
}
