//! Reads a server's standard error: logs each line and keeps the last ones as evidence.
//!
//! Nothing waits for these lines, so they are rate-limited like noise, and a server that writes more blocks on its
//! pipe. As soon as the server ends or is shut down, the rest is read without pauses, so that the last lines do not
//! depend on the rate limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::line_buffer::{Line, LineBuffer};
use super::server::StdioServer;
use super::stdout::read_into;
use super::system::StderrPipe;
use crate::redact::LineCleaner;
use crate::rpc::rate_limiter::RateLimiter;
use crate::transport::stderr_tail::StderrTail;

/// Maximum length of a line that is kept.
const MAX_TAIL_LINE_BYTES: usize = 500;

/// Longer lines are cut while they are read.
const MAX_READ_LINE_BYTES: usize = 64 << 10;

/// Reads the standard error of a child.
pub(super) struct StderrReader<S = StderrPipe> {
    stderr: S,
    lines: LineBuffer,
    tail: StderrTail,
    cleaner: LineCleaner,
    /// The command of the server, for the log.
    server: String,
    rate_limiter: RateLimiter,
    /// The number of responses on standard output that were not credited here yet.
    response_count: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> StderrReader<S> {
    pub(super) fn new(
        stderr: S,
        server: &StdioServer,
        tail: StderrTail,
        response_count: Arc<AtomicU64>,
    ) -> StderrReader<S> {
        StderrReader {
            stderr,
            lines: LineBuffer::new(MAX_READ_LINE_BYTES),
            tail,
            cleaner: LineCleaner::new(Arc::clone(&server.redactor)),
            server: server.endpoint.command.clone(),
            rate_limiter: RateLimiter::new(Instant::now()),
            response_count,
        }
    }

    /// Reads until the stream ends, with pauses when much arrives. When the sender of `rate_limit_ended` is dropped, it
    /// continues without pauses, because the last lines of a server explain why it ended.
    pub(super) async fn run(mut self, rate_limit_ended: oneshot::Receiver<()>) {
        let has_ended = tokio::select! {
            () = self.read_limited() => true,
            _ = rate_limit_ended => false,
        };
        if !has_ended {
            while self.read().await.is_some() {}
        }
        if let Some(line) = self.lines.take_rest() {
            self.push_line(&line);
        }
    }

    /// Reads until the stream ends, with pauses when much arrives; a server that floods blocks in its own write.
    /// Cancel-safe: read bytes are in `lines`.
    async fn read_limited(&mut self) {
        while let Some(count) = self.read().await {
            if self.lines.skipped_bytes().is_some() {
                self.rate_limiter.charge(0, count);
            }
            self.rate_limiter.credit(self.response_count.swap(0, Ordering::Relaxed));
            if self.rate_limiter.has_uncharged()
                && let Some(until) = self.rate_limiter.pause_until(Instant::now())
            {
                tokio::time::sleep_until(until).await;
            }
        }
    }

    /// Reads once and returns the number of bytes; `None` at the end. Cancel-safe.
    async fn read(&mut self) -> Option<usize> {
        let read = read_into(&mut self.stderr, &mut self.lines, 0).await;
        while let Some(line) = self.lines.next_line() {
            let line = match line {
                Line::Whole(line) => line,
                Line::TooLong(oversize) => oversize.head,
            };
            self.rate_limiter.charge(1, line.len());
            self.push_line(&line);
            // One read may contain many short lines.
            tokio::task::consume_budget().await;
        }
        self.rate_limiter.charge(self.lines.take_empty_lines(), 0);
        read.ok().filter(|it| *it > 0)
    }

    fn push_line(&mut self, line: &[u8]) {
        let text = self.cleaner.clean(&String::from_utf8_lossy(line), MAX_TAIL_LINE_BYTES);
        if text.trim().is_empty() {
            return;
        }
        tracing::debug!(target: "mcp_server_stderr", server = self.server, "{text}");
        self.tail.push(text);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_host_model::StdioEndpoint;
    use tokio::io::AsyncWriteExt;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::stdio::StdioDial;
    use crate::stdio::StdioOptions;

    /// A server that writes numbered lines until the number `last`, and exits a second later.
    struct Flood {
        written: Arc<AtomicU64>,
        last: Arc<AtomicU64>,
        tail: StderrTail,
        response_count: Arc<AtomicU64>,
        rate_limited: Option<oneshot::Sender<()>>,
        reading: JoinHandle<()>,
    }

    /// Starts a flood whose lines end with `filler`, and a reader.
    fn flood(filler: &'static str) -> Flood {
        let StdioDial(server) = StdioDial::new(&StdioEndpoint::new("x"), &StdioOptions::default()).unwrap();
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let (written, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(u64::MAX)));
        let (counts, until) = (Arc::clone(&written), Arc::clone(&last));
        tokio::spawn(async move {
            while counts.load(Ordering::Relaxed) < until.load(Ordering::Relaxed) {
                let number = counts.fetch_add(1, Ordering::Relaxed) + 1;
                theirs.write_all(format!("{number}{filler}").as_bytes()).await.unwrap();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        });
        let (tail, response_count) = (StderrTail::default(), Arc::new(AtomicU64::new(0)));
        let reader = StderrReader::new(ours, &server, tail.clone(), Arc::clone(&response_count));
        let (rate_limited, rate_limit_ended) = oneshot::channel();
        let reading = tokio::spawn(reader.run(rate_limit_ended));
        Flood { written, last, tail, response_count, rate_limited: Some(rate_limited), reading }
    }

    impl Flood {
        fn written(&self) -> u64 {
            self.written.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn flood_is_rate_limited_and_the_last_lines_are_kept() {
        let mut flood = flood(" the sky is falling\n");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let written = flood.written();
        assert!((80_000..100_000).contains(&written), "{written}");
        // The server ends while the reader pauses; the rest is read at once.
        let (last, now) = (written + 3, Instant::now());
        flood.last.store(last, Ordering::Relaxed);
        flood.rate_limited.take();
        flood.reading.await.unwrap();
        assert!(now.elapsed() <= Duration::from_millis(1001), "{:?}", now.elapsed());
        let want: Vec<_> = (last - 19..=last).map(|it| format!("{it} the sky is falling")).collect();
        assert_eq!(flood.tail.snapshot().lines, want);
    }

    #[tokio::test(start_paused = true)]
    async fn server_in_shutdown_is_read_without_pauses() {
        let mut flood = flood("\n");
        tokio::time::sleep(Duration::from_secs(2)).await;
        flood.rate_limited.take();
        let (before, now) = (flood.written(), Instant::now());
        while flood.written() < before + 100_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(now.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn endless_line_is_rate_limited() {
        let flood =
            flood("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        tokio::time::sleep(Duration::from_secs(3)).await;
        // 32 MiB at once and 32 MiB per second: time advances, so the reader does pause.
        assert!(flood.written() * 90 < 200 << 20, "{}", flood.written());
    }

    #[tokio::test(start_paused = true)]
    async fn responses_allow_some_log_lines() {
        let flood = flood("\n");
        let now = Instant::now();
        while flood.written() < 400_000 {
            // Each read has fewer lines than the credited responses allow.
            flood.response_count.fetch_add(1_000, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
        assert_eq!(now.elapsed(), Duration::ZERO);
    }
}
