//! A server's standard error: handed on line by line, the last lines kept as evidence.
//!
//! Nobody waits for it, so it has a rate as all noise has, and what a server writes beyond that waits in its pipe. As soon
//! as the server ends, or is to end, it is read to its end: which lines were the last must not depend on a pause.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncRead;
use tokio::process::ChildStderr;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Place;
use super::lines::{Line, Lines};
use super::reader::fill;
use crate::redact::Redactor;
use crate::rpc::rate_limiter::Pace;

/// How many lines are kept, and how long each may be.
const LINES: usize = 20;
const LINE_BYTES: usize = 500;

/// A line longer than this is cut while it is read.
const READ_LIMIT: usize = 64 << 10;

/// The last lines, shared with whoever writes the evidence.
#[derive(Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    /// How many there have been.
    count: u64,
}

impl Tail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept().lines.iter().cloned().collect()
    }

    /// How many lines there have been by now.
    pub(super) fn count(&self) -> u64 {
        self.kept().count
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String) {
        let mut kept = self.kept();
        if kept.lines.len() == LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
        kept.count += 1;
    }
}

/// Reads what a server says on its standard error.
pub(super) struct Reader<S = ChildStderr> {
    stderr: S,
    lines: Lines,
    tail: Tail,
    redactor: Arc<Redactor>,
    server: String,
    pace: Pace,
    /// How much came on standard output that somebody waited for, and was not made use of here yet.
    awaited: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> Reader<S> {
    pub(super) fn new(stderr: S, place: &Place, tail: Tail, awaited: Arc<AtomicU64>) -> Reader<S> {
        Reader {
            stderr,
            lines: Lines::new(READ_LIMIT),
            tail,
            redactor: Arc::clone(&place.redactor),
            server: place.endpoint.command.clone(),
            pace: Pace::new(Instant::now()),
            awaited,
        }
    }

    /// Reads until the stream ends. Once nobody holds the other end of `live` any more, without pauses: the last lines
    /// of a server that ends are what explains it.
    pub(super) async fn run(mut self, live: oneshot::Receiver<()>) {
        let is_over = tokio::select! {
            () = self.paced() => true,
            _ = live => false,
        };
        if !is_over {
            while self.read().await.is_some() {}
        }
        if let Some(line) = self.lines.rest() {
            self.keep(&line);
        }
    }

    /// Reads until the stream ends, with pauses when much comes: a server that floods it waits in its own write.
    /// Cancel-safe: what was read is in `lines`.
    async fn paced(&mut self) {
        while let Some(count) = self.read().await {
            if self.lines.skipped().is_some() {
                self.pace.wasted(0, count);
            }
            self.pace.awaited(self.awaited.swap(0, Ordering::Relaxed));
            if let Some(until) = self.pace.counts().then(|| self.pace.pause(Instant::now())).flatten() {
                tokio::time::sleep_until(until).await;
            }
        }
    }

    /// Reads once: how many bytes came, or `None` at the end. Cancel-safe.
    async fn read(&mut self) -> Option<usize> {
        let read = fill(&mut self.stderr, &mut self.lines, 0).await;
        while let Some(line) = self.lines.next() {
            let line = match line {
                Line::Whole(line) => line,
                Line::TooLong(oversize) => oversize.head,
            };
            self.pace.wasted(1, line.len());
            self.keep(&line);
            // A flood of short lines is many of them in one read.
            tokio::task::consume_budget().await;
        }
        read.ok().filter(|it| *it > 0)
    }

    fn keep(&self, line: &[u8]) {
        let text = self.redactor.clean(&String::from_utf8_lossy(line), LINE_BYTES);
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

    use mcp_model::StdioEndpoint;
    use tokio::io::AsyncWriteExt;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::dial::endpoint::DialOptions;
    use crate::stdio::StdioDial;

    /// A server that writes numbered lines into a pipe of the usual size, each with this behind its number, until it is
    /// told the last number; it ends a second after that.
    struct Flood {
        written: Arc<AtomicU64>,
        last: Arc<AtomicU64>,
        tail: Tail,
        awaited: Arc<AtomicU64>,
        live: Option<oneshot::Sender<()>>,
        reading: JoinHandle<()>,
    }

    fn flood(filler: &'static str) -> Flood {
        let StdioDial(place) = StdioDial::new(&StdioEndpoint::new("x"), &DialOptions::default()).unwrap();
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
        let (tail, awaited) = (Tail::default(), Arc::new(AtomicU64::new(0)));
        let reader = Reader::new(ours, &place, tail.clone(), Arc::clone(&awaited));
        let (live, is_live) = oneshot::channel();
        let reading = tokio::spawn(reader.run(is_live));
        Flood { written, last, tail, awaited, live: Some(live), reading }
    }

    impl Flood {
        fn written(&self) -> u64 {
            self.written.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_its_rate_and_its_last_lines_are_the_last() {
        let mut flood = flood(" the sky is falling\n");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let written = flood.written();
        assert!((80_000..100_000).contains(&written), "{written}");
        // It ends while its reader pauses: the end is read at once, up to the last line.
        let (last, now) = (written + 3, Instant::now());
        flood.last.store(last, Ordering::Relaxed);
        flood.live.take();
        flood.reading.await.unwrap();
        assert!(now.elapsed() <= Duration::from_millis(1001), "{:?}", now.elapsed());
        let want: Vec<_> = (last - 19..=last).map(|it| format!("{it} the sky is falling")).collect();
        assert_eq!(flood.tail.lines(), want);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_being_closed_is_read_without_pauses() {
        let mut flood = flood("\n");
        tokio::time::sleep(Duration::from_secs(2)).await;
        flood.live.take();
        let (before, now) = (flood.written(), Instant::now());
        while flood.written() < before + 100_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(now.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_without_end_is_read_at_its_rate() {
        let flood =
            flood("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        tokio::time::sleep(Duration::from_secs(3)).await;
        // 32 MiB at once, and as many a second: that the clock moves at all shows that it is not read through.
        assert!(flood.written() * 90 < 200 << 20, "{}", flood.written());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_log_what_it_does_for_its_calls() {
        let flood = flood("\n");
        let now = Instant::now();
        while flood.written() < 400_000 {
            // Each read is of less than so many lines that as many answers stand for.
            flood.awaited.fetch_add(1_000, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
        assert_eq!(now.elapsed(), Duration::ZERO);
    }
}
