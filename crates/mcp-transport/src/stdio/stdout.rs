//! Reads a child's standard output: lines become frames, everything else becomes evidence.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::ChildStdout;
use tokio::time::Instant;

use super::encoding::StreamDecoder;
use super::line_buffer::{Line, LineBuffer};
use super::server::StdioServer;
use super::stdout_pipe::StdoutSource;
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
pub(super) struct StdoutReader<S = ChildStdout> {
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
        self.inbound.record_noise(bytes.len());
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
mod tests {
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use mcp_host_model::{Limits, StdioEndpoint};
    use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream, ReadBuf};

    use super::*;
    use crate::stdio::StdioDial;
    use crate::stdio::StdioOptions;
    use crate::transport::{OutboundQueue, RequestId};

    /// Counts unsolicited messages, and records when each response is delivered.
    #[derive(Default)]
    struct CountingSink {
        unsolicited: AtomicUsize,
        responses: Mutex<Vec<Instant>>,
    }

    impl CountingSink {
        fn unsolicited(&self) -> usize {
            self.unsolicited.load(Ordering::Relaxed)
        }

        fn responses(&self) -> Vec<Instant> {
            self.responses.lock().unwrap().clone()
        }
    }

    impl FrameSink for CountingSink {
        fn deliver(&self, _: StreamId, frame: Bytes) -> MessageClass {
            if frame.starts_with(b"{\"result\"") {
                self.responses.lock().unwrap().push(Instant::now());
                return MessageClass::Solicited;
            }
            self.unsolicited.fetch_add(1, Ordering::Relaxed);
            MessageClass::Unsolicited(1)
        }

        fn is_pending(&self, _: RequestId) -> bool {
            true
        }

        fn fail_stream(&self, _: RequestId, _: StreamError) {}

        fn record_noise(&self, _: usize) {
            self.unsolicited.fetch_add(1, Ordering::Relaxed);
        }

        fn end_calls(&self) {}
    }

    const RESPONSE: &[u8] = b"{\"result\":1}\n";

    impl StdoutSource for DuplexStream {}

    /// Records the requested capacities.
    struct RecordingPipe(DuplexStream, Arc<Mutex<Vec<usize>>>);

    impl AsyncRead for RecordingPipe {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, into)
        }
    }

    impl StdoutSource for RecordingPipe {
        fn set_capacity(&self, bytes: usize) {
            self.1.lock().unwrap().push(bytes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pipe_is_enlarged_while_long_messages_arrive() {
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let capacities = Arc::<Mutex<Vec<usize>>>::default();
        let StdioDial(server) = StdioDial::new(&StdioEndpoint::new("x"), &StdioOptions::default()).unwrap();
        let (inbound, flow) = (Arc::new(CountingSink::default()), OutboundQueue::new().1.flow);
        let mut reader =
            StdoutReader::new(RecordingPipe(ours, Arc::clone(&capacities)), inbound, flow, &server);
        let reading = tokio::spawn(async move { reader.run().await });
        let long = [&b"{\"a\":\""[..], &[b'x'; 1 << 20], b"\"}\n"].concat();
        let short = LIST_CHANGED.repeat(100);
        let pause = || tokio::time::sleep(IDLE_AFTER / 2);
        for (what, want) in [
            (&short, &[][..]),
            (&long, &[LARGE_PIPE_BYTES]),
            (&long, &[LARGE_PIPE_BYTES]),
            (&short, &[LARGE_PIPE_BYTES]),
        ] {
            theirs.write_all(what).await.unwrap();
            pause().await;
            assert_eq!(*capacities.lock().unwrap(), want);
        }
        tokio::time::sleep(2 * IDLE_AFTER).await;
        assert_eq!(*capacities.lock().unwrap(), [LARGE_PIPE_BYTES, DEFAULT_PIPE_BYTES]);
        theirs.write_all(&long).await.unwrap();
        pause().await;
        assert_eq!(*capacities.lock().unwrap(), [LARGE_PIPE_BYTES, DEFAULT_PIPE_BYTES, LARGE_PIPE_BYTES]);
        drop(theirs);
        assert_eq!(reading.await.unwrap(), DisconnectReason::PeerClosed);
    }

    /// A reader on a pipe of the default size into which `line` is written without end, with a response after each
    /// `lines_per_response` lines.
    fn flooded_reader(
        line: &'static [u8],
        lines_per_response: usize,
    ) -> (StdoutReader<DuplexStream>, Arc<CountingSink>) {
        let mut limits = Limits::default();
        limits.message_bytes = 1 << 20;
        let options = StdioOptions { limits, ..StdioOptions::default() };
        let StdioDial(server) = StdioDial::new(&StdioEndpoint::new("x"), &options).unwrap();
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            loop {
                for _ in 0..lines_per_response {
                    theirs.write_all(line).await?;
                }
                theirs.write_all(RESPONSE).await?;
            }
            #[expect(unreachable_code, reason = "it gives the block its type")]
            std::io::Result::Ok(())
        });
        let counts = Arc::new(CountingSink::default());
        (StdoutReader::new(ours, Arc::clone(&counts) as _, OutboundQueue::new().1.flow, &server), counts)
    }

    async fn run_for(reader: &mut StdoutReader<DuplexStream>, seconds: u64) {
        let run = tokio::time::timeout(Duration::from_secs(seconds), reader.run()).await;
        assert!(run.is_err(), "it floods without end");
    }

    const LIST_CHANGED: &[u8] = b"{\"method\":\"notifications/tools/list_changed\"}\n";

    /// Checks that no more than the burst, the rate of ten seconds and one read were delivered.
    #[track_caller]
    fn check_ten_seconds(unsolicited: usize) {
        assert!((80_000..100_000).contains(&unsolicited), "{unsolicited}");
    }

    #[tokio::test(start_paused = true)]
    async fn flood_of_notifications_is_rate_limited() {
        let (mut reader, counts) = flooded_reader(LIST_CHANGED, usize::MAX);
        run_for(&mut reader, 10).await;
        check_ten_seconds(counts.unsolicited());
    }

    #[tokio::test(start_paused = true)]
    async fn flood_of_noise_is_rate_limited() {
        let (mut reader, counts) = flooded_reader(b"some log output\n", usize::MAX);
        run_for(&mut reader, 10).await;
        check_ten_seconds(counts.unsolicited());
    }

    #[tokio::test(start_paused = true)]
    async fn flood_of_empty_lines_is_rate_limited() {
        for line in [&b"\n"[..], b"\r\n"] {
            let (mut reader, counts) = flooded_reader(line, 100_000);
            // Time advances only when all tasks wait, so the reader does pause.
            let started_at = Instant::now();
            while counts.responses().is_empty() {
                run_for(&mut reader, 1).await;
            }
            assert!((1..20).contains(&started_at.elapsed().as_secs()), "{:?}", started_at.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn endless_line_is_rate_limited_and_ends_the_connection() {
        let (mut reader, counts) = flooded_reader(&[b'x'; 4096], usize::MAX);
        let started_at = Instant::now();
        let reason = tokio::time::timeout(Duration::from_secs(60), reader.run()).await.expect("it ends");
        assert!(
            matches!(&reason, DisconnectReason::Broken(why) if why.contains("does not end: 67")),
            "{reason:?}"
        );
        assert_eq!(counts.unsolicited(), 0, "it is one line");
        // 64 MiB: a burst of 32 MiB, and one second for the rest.
        assert!((900..2000).contains(&started_at.elapsed().as_millis()), "{:?}", started_at.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn response_behind_a_flood_is_delivered() {
        let (mut reader, counts) = flooded_reader(LIST_CHANGED, 50_000);
        run_for(&mut reader, 20).await;
        let responses = counts.responses();
        assert!(responses.len() >= 3, "{responses:?}");
        // The delay is bounded by the content of the pipe.
        for pair in responses.windows(2) {
            assert!(pair[1] - pair[0] < Duration::from_millis(50_000 / 8 + 1_000), "{pair:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn flood_with_enough_responses_causes_no_pause() {
        let (mut reader, counts) = flooded_reader(LIST_CHANGED, 4);
        let started_at = Instant::now();
        // Time advances only when all tasks wait, so a pause would advance it.
        while counts.unsolicited() < 400_000 {
            assert!(reader.read_and_deliver().await.is_none());
            assert!(
                !reader.rate_limiter.has_uncharged()
                    || reader.rate_limiter.pause_until(Instant::now()).is_none()
            );
        }
        assert_eq!(started_at.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn callers_run_between_batches_of_responses() {
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let StdioDial(server) = StdioDial::new(&StdioEndpoint::new("x"), &StdioOptions::default()).unwrap();
        let counts = Arc::new(CountingSink::default());
        let (sender, queue) = OutboundQueue::new();
        let _calls = sender.permits().acquire_many(10).await.unwrap();
        let mut reader = StdoutReader::new(ours, Arc::clone(&counts) as _, Arc::clone(&queue.flow), &server);
        theirs
            .write_all(&[RESPONSE.repeat(6), LIST_CHANGED.repeat(9), RESPONSE.repeat(4)].concat())
            .await
            .unwrap();
        drop(theirs);
        let reading = tokio::spawn(async move { reader.run().await });
        let counts_of_task = Arc::clone(&counts);
        let observer = tokio::spawn(async move {
            let mut seen = Vec::new();
            while !reading.is_finished() {
                seen.push(counts_of_task.responses().len());
                yield_once().await;
            }
            (seen, reading.await.unwrap())
        });
        let (mut seen, end) = observer.await.unwrap();
        seen.dedup();
        // Unsolicited messages wake no task; the stream ends after the last two.
        assert_eq!((seen, counts.unsolicited(), end), (vec![4, 8], 9, DisconnectReason::PeerClosed));
    }

    #[tokio::test(start_paused = true)]
    async fn drain_does_not_pause() {
        let (mut reader, counts) = flooded_reader(LIST_CHANGED, 20_000);
        run_for(&mut reader, 2).await;
        assert!(reader.paused_until.is_some());
        let (before, now) = (counts.unsolicited(), Instant::now());
        tokio::select! {
            biased;
            () = reader.drain() => panic!("it floods without end"),
            () = async {
                while counts.unsolicited() < before + 100_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        assert_eq!(now.elapsed(), Duration::ZERO);
    }
}
