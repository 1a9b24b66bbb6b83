//! Reads a child's standard output: lines become frames, everything else becomes evidence.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::encoding::StreamDecoder;
use super::line_buffer::{Line, LineBuffer};
use super::server::StdioServer;
use super::stdout_pipe::StdoutSource;
use super::system::StdoutPipe;
use crate::error::disconnect::DisconnectReason;
use crate::redact::Redactor;
use crate::rpc::oversize::{OversizedMessage, is_endless};
use crate::rpc::rate_limiter::RateLimiter;
use crate::transport::{FlowState, FrameSink, MessageClass, StreamError, StreamId, yield_once};

/// Read size when the output must be decoded first.
const DECODE_BYTES: usize = 64 << 10;

/// Buffer size that is kept while nothing arrives.
const IDLE_BYTES: usize = 4 << 10;

/// Idle time after which the buffer is shrunk. It is not shrunk earlier: a server that sent much will send more, and
/// the system has to clear fresh memory each time.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Pipe capacity while long messages arrive. All pipes of a user share one limit.
const LARGE_PIPE_BYTES: usize = 512 << 10;

/// Pipe capacity otherwise.
const DEFAULT_PIPE_BYTES: usize = 64 << 10;

/// Reads messages and passes them to the engine.
pub(super) struct StdoutReader<S = StdoutPipe> {
    stdout: S,
    inbound: Arc<dyn FrameSink>,
    lines: LineBuffer,
    /// The decoder for output that is not UTF-8, and the buffer for what is read.
    decoder: Option<(StreamDecoder, BytesMut)>,
    redactor: Arc<Redactor>,
    rate_limiter: RateLimiter,
    /// Limits the responses that are delivered before other tasks run. A caller may send its next request as soon as it
    /// has its response, and the server should work on it while the other responses are delivered.
    flow: Arc<FlowState>,
    /// The size of the last read while some of its messages are not delivered yet.
    unprocessed: Option<usize>,
    /// Reading is paused until this time.
    paused_until: Option<Instant>,
    /// Whether the pipe capacity is enlarged.
    is_large_pipe: bool,
    /// The number of responses, which allow a server some log lines on standard error.
    pub(super) response_count: Arc<AtomicU64>,
    /// Whether the last read ended with a message without its line break.
    has_unfinished_message: bool,
    /// Number of bytes that were not protocol.
    pub(super) noise_bytes: u64,
    /// The first line that was not protocol.
    pub(super) noise_sample: Option<String>,
}

impl<S: StdoutSource> StdoutReader<S> {
    pub(super) fn new(
        stdout: S,
        inbound: Arc<dyn FrameSink>,
        flow: Arc<FlowState>,
        server: &StdioServer,
    ) -> StdoutReader<S> {
        StdoutReader {
            stdout,
            inbound,
            lines: LineBuffer::new(server.options.limits.message_bytes),
            decoder: server.encoding.decoder().map(|it| (it, BytesMut::with_capacity(DECODE_BYTES))),
            redactor: Arc::clone(&server.redactor),
            rate_limiter: RateLimiter::new(Instant::now()),
            flow,
            unprocessed: None,
            paused_until: None,
            is_large_pipe: false,
            response_count: Arc::default(),
            has_unfinished_message: false,
            noise_bytes: 0,
            noise_sample: None,
        }
    }

    /// Reads until the stream ends, with pauses when many unsolicited messages arrive. Cancel-safe: read bytes are in
    /// `lines`.
    pub(super) async fn run(&mut self) -> DisconnectReason {
        loop {
            if let Some(until) = self.paused_until {
                tokio::time::sleep_until(until).await;
                self.paused_until = None;
            }
            if let Some(reason) = self.read_and_deliver().await {
                return reason;
            }
            if self.rate_limiter.has_uncharged() {
                self.paused_until = self.rate_limiter.pause_until(Instant::now());
            }
        }
    }

    /// Reads on while the process shuts down and delivers late responses. Without pauses: the shutdown has a deadline,
    /// and the last messages may be behind a flood.
    pub(super) async fn drain(&mut self) {
        while self.read_and_deliver().await.is_none() {}
    }

    /// Reads once, unless messages of the last read are left, and delivers a batch. Returns why the connection ends,
    /// if it does. Cancel-safe.
    async fn read_and_deliver(&mut self) -> Option<DisconnectReason> {
        let count = match self.unprocessed {
            Some(count) => count,
            None => match self.read_more().await {
                Ok(0) => {
                    // An incomplete line is not a message.
                    if let Some(rest) = self.lines.take_rest() {
                        self.record_noise(&rest);
                    }
                    return Some(DisconnectReason::PeerClosed);
                }
                Ok(count) => count,
                Err(error) => {
                    return Some(DisconnectReason::Broken(format!("reading from it failed: {error}")));
                }
            },
        };
        self.unprocessed = Some(count);
        if !self.deliver_batch() {
            yield_once().await;
            return None;
        }
        self.unprocessed = None;
        self.rate_limiter.charge(self.lines.take_empty_lines(), 0);
        let is_unfinished = self.lines.has_unfinished_message();
        if is_unfinished != self.has_unfinished_message {
            self.has_unfinished_message = is_unfinished;
            self.inbound.set_unfinished_message(is_unfinished);
        }
        if !self.is_large_pipe && self.decoder.is_none() && self.lines.has_long_line() {
            self.is_large_pipe = true;
            self.stdout.set_capacity(LARGE_PIPE_BYTES);
        }
        if let Some(len) = self.lines.skipped_bytes() {
            self.rate_limiter.charge(0, count);
            if is_endless(len, self.lines.limit()) {
                return Some(DisconnectReason::Broken(format!(
                    "it sends a message that does not end: {len} bytes without a line break"
                )));
            }
        }
        None
    }

    /// Delivers messages until the batch is full. Returns true when all were delivered.
    fn deliver_batch(&mut self) -> bool {
        let mut responses_left = self.flow.batch_size();
        while responses_left > 0 || self.lines.is_empty() {
            let Some(line) = self.lines.next_line() else { return true };
            responses_left -= usize::from(self.deliver(line) == MessageClass::Solicited);
        }
        false
    }

    /// Reads once and returns the number of bytes, 0 at the end. Cancel-safe.
    async fn read_more(&mut self) -> io::Result<usize> {
        match &mut self.decoder {
            None => self.read_lines().await,
            Some((decoder, raw)) => {
                raw.clear();
                let read = self.stdout.read_buf(raw).await;
                decoder.decode(raw, self.lines.read_buffer());
                read
            }
        }
    }

    /// Reads once into `lines` and returns the number of bytes, 0 at the end. Frees memory when nothing arrives for a
    /// while, because there may be many servers. Cancel-safe.
    async fn read_lines(&mut self) -> io::Result<usize> {
        let buffer = self.lines.read_buffer();
        // Small buffers are not worth a timer.
        if buffer.capacity() > 4 * IDLE_BYTES || self.is_large_pipe {
            match tokio::time::timeout(IDLE_AFTER, self.stdout.read_buf(buffer)).await {
                Ok(read) => return read,
                Err(_) => self.lines.shrink(IDLE_BYTES),
            }
            if self.is_large_pipe {
                self.is_large_pipe = false;
                self.stdout.set_capacity(DEFAULT_PIPE_BYTES);
            }
        }
        read_into(&mut self.stdout, &mut self.lines, IDLE_BYTES).await
    }

    /// Passes a message to the engine, and records any other line as noise.
    fn deliver(&mut self, line: Line) -> MessageClass {
        match line {
            Line::Whole(line) => match line.iter().find(|it| !it.is_ascii_whitespace()) {
                Some(b'{' | b'[') => {
                    let bytes = line.len();
                    let class = self.inbound.deliver(StreamId::Shared, line);
                    if class == MessageClass::Solicited {
                        self.response_count.fetch_add(1, Ordering::Relaxed);
                    }
                    self.rate_limiter.record(class, bytes);
                    return class;
                }
                _ => self.record_noise(&line),
            },
            Line::TooLong(oversize) => {
                let OversizedMessage { head, tail: _, len } = &oversize;
                self.record_noise(head);
                self.noise_bytes += (len - head.len()) as u64;
                self.inbound.record_noise(len - head.len());
                // The call ends now instead of at its deadline.
                if let Some(id) = oversize.response_id() {
                    self.inbound.fail_stream(id, StreamError::TooLarge(self.lines.limit()));
                }
            }
        }
        MessageClass::Unsolicited(1)
    }

    /// Records bytes that are no message.
    fn record_noise(&mut self, bytes: &[u8]) {
        self.noise_bytes += bytes.len() as u64;
        self.rate_limiter.charge(1, bytes.len());
        self.inbound.record_noise_text(bytes);
        self.noise_sample.get_or_insert_with(|| self.redactor.clean(&String::from_utf8_lossy(bytes), 120));
    }
}

/// Reads once into `lines` and returns the number of bytes, 0 at the end. While waiting, at most about `kept` bytes of
/// buffer are kept, because there may be many servers. Cancel-safe.
pub(super) async fn read_into(
    stream: &mut (impl AsyncRead + Unpin),
    lines: &mut LineBuffer,
    kept: usize,
) -> io::Result<usize> {
    poll_fn(|context| {
        let polled = {
            let reading = pin!(stream.read_buf(lines.read_buffer()));
            reading.poll(context)
        };
        if polled.is_pending() {
            lines.shrink(kept);
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests;
