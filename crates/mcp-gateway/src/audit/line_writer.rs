//! Writes lines on its own thread, so that a slow disk or a full pipe blocks no request.
//!
//! The queue is bounded by lines and bytes. A line that does not fit is dropped and counted. Before the next written
//! line, a line reports how many were dropped.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Maximum number of lines in the queue.
const MAX_LINES: usize = 8192;
/// Maximum number of bytes in the queue.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Lines are combined into one write up to this size in bytes.
const BATCH_BYTES: usize = 64 * 1024;

/// The target of a [`LineWriter`].
pub trait LineTarget: Send + 'static {
    /// Opens the target: at the start, and again at each [`LineWriter::reopen`].
    fn open(&mut self) -> io::Result<Box<dyn Write + Send>>;

    /// Returns the line, with its line feed, that reports this number of dropped lines.
    fn drop_notice(&self, lines: u64) -> String;

    /// Reports that the target cannot be opened or written. Called on the writer's thread, for the first error only,
    /// until a write succeeds.
    fn on_error(&self, error: &io::Error);
}

/// A bounded queue of lines with the thread that writes them. Dropping the last clone ends the thread after it has
/// written the queue.
#[derive(Clone)]
pub struct LineWriter {
    sender: SyncSender<WriterMessage>,
    state: Arc<WriterState>,
}

/// A message to the writer thread.
enum WriterMessage {
    Line(Vec<u8>),
    /// Wakes the thread up, so that it opens the target again.
    Reopen,
    /// Requests a reply once everything before it is written.
    Flush(SyncSender<()>),
}

/// The state that the writer shares with its thread.
#[derive(Default)]
struct WriterState {
    /// The total size of the lines in the queue.
    queued_bytes: AtomicUsize,
    /// The number of dropped lines since the start.
    dropped: AtomicU64,
    /// Whether the target must be opened again before the next write.
    must_reopen: AtomicBool,
}

impl LineWriter {
    /// Opens the target and starts the thread. Fails if the target cannot be opened.
    pub fn start(mut target: impl LineTarget) -> io::Result<LineWriter> {
        let output = target.open()?;
        let (sender, messages) = sync_channel(MAX_LINES);
        let state = Arc::<WriterState>::default();
        let writer = WriterThread {
            target,
            output,
            state: Arc::clone(&state),
            batch: Vec::new(),
            batch_lines: 0,
            reported_drops: 0,
            has_failed: false,
        };
        thread::Builder::new().name("line-writer".to_owned()).spawn(move || writer.run(&messages))?;
        Ok(LineWriter { sender, state })
    }

    /// Queues a line, which ends with a line feed. Never blocks.
    pub fn write(&self, line: Vec<u8>) {
        let bytes = line.len();
        let fits = self.state.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_BYTES;
        if !fits || self.sender.try_send(WriterMessage::Line(line)).is_err() {
            self.state.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Opens the target again before the next write, as log rotation needs. If that fails, the old one stays in use.
    pub fn reopen(&self) {
        self.state.must_reopen.store(true, Ordering::Release);
        // In a full queue, the next line has the same effect.
        let _ = self.sender.try_send(WriterMessage::Reopen);
    }

    /// The number of lines that were dropped since the start.
    pub fn dropped_lines(&self) -> u64 {
        self.state.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, for a limited time. Blocks the thread.
    pub fn flush(&self, limit: Duration) {
        let (done, flushed) = sync_channel(1);
        let mut message = WriterMessage::Flush(done);
        let pause = Duration::from_millis(10);
        for _ in 0..=limit.as_millis() / pause.as_millis() {
            match self.sender.try_send(message) {
                Ok(()) => {
                    let _ = flushed.recv_timeout(limit);
                    return;
                }
                Err(TrySendError::Full(unsent)) => message = unsent,
                Err(TrySendError::Disconnected(_)) => return,
            }
            thread::sleep(pause);
        }
    }
}

impl fmt::Debug for LineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter").field("dropped", &self.dropped_lines()).finish_non_exhaustive()
    }
}

/// The state of the writer thread.
struct WriterThread<T> {
    target: T,
    output: Box<dyn Write + Send>,
    state: Arc<WriterState>,
    /// The lines of the next write.
    batch: Vec<u8>,
    /// The number of these lines.
    batch_lines: u64,
    /// How many of the dropped lines were reported.
    reported_drops: u64,
    /// Whether the last write failed, so that further errors are not reported.
    has_failed: bool,
}

impl<T: LineTarget> WriterThread<T> {
    /// Writes the queued lines until all senders are dropped.
    fn run(mut self, messages: &Receiver<WriterMessage>) {
        while let Ok(first) = messages.recv() {
            let mut flushed = Vec::new();
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    WriterMessage::Line(line) => {
                        self.state.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
                        self.batch.extend_from_slice(&line);
                        self.batch_lines += 1;
                    }
                    WriterMessage::Reopen => {}
                    WriterMessage::Flush(done) => flushed.push(done),
                }
                next = if self.batch.len() < BATCH_BYTES { messages.try_recv().ok() } else { None };
            }
            self.write_batch();
            for done in flushed {
                let _ = done.try_send(());
            }
        }
    }

    /// Writes the batch, after a notice about dropped lines. Lines that cannot be written count as dropped.
    fn write_batch(&mut self) {
        if self.state.must_reopen.swap(false, Ordering::AcqRel) {
            match self.target.open() {
                Ok(output) => self.output = output,
                Err(error) => self.report_error(&error),
            }
        }
        if self.batch.is_empty() {
            return;
        }
        let dropped = self.state.dropped.load(Ordering::Relaxed);
        let missing = dropped - self.reported_drops;
        let mut text = Vec::new();
        if missing > 0 {
            text = self.target.drop_notice(missing).into_bytes();
        }
        text.append(&mut self.batch);
        let lines = std::mem::take(&mut self.batch_lines);
        match self.output.write_all(&text).and_then(|()| self.output.flush()) {
            Ok(()) => {
                self.reported_drops = dropped;
                self.has_failed = false;
            }
            Err(error) => {
                self.state.dropped.fetch_add(lines, Ordering::Relaxed);
                self.report_error(&error);
            }
        }
    }

    /// Reports an error to the target, unless the last write failed, too.
    fn report_error(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.target.on_error(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use parking_lot::Mutex;

    use super::*;

    /// A target that starts a new text whenever it is opened. Writes wait for `turns`, if there are any.
    struct TestTarget {
        opened: Arc<Mutex<Vec<Vec<u8>>>>,
        turns: Option<Receiver<()>>,
    }

    struct TestOutput {
        opened: Arc<Mutex<Vec<Vec<u8>>>>,
        at: usize,
        turns: Option<Receiver<()>>,
    }

    impl LineTarget for TestTarget {
        fn open(&mut self) -> io::Result<Box<dyn Write + Send>> {
            let mut opened = self.opened.lock();
            opened.push(Vec::new());
            let (opened, at) = (Arc::clone(&self.opened), opened.len() - 1);
            Ok(Box::new(TestOutput { opened, at, turns: self.turns.take() }))
        }

        fn drop_notice(&self, lines: u64) -> String {
            format!("dropped {lines}\n")
        }

        fn on_error(&self, error: &io::Error) {
            panic!("{error}");
        }
    }

    impl Write for TestOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(turns) = &self.turns {
                let _ = turns.recv();
            }
            self.opened.lock()[self.at].extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn reopened_target_gets_the_later_lines() {
        let opened = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let target = TestTarget { opened: Arc::clone(&opened), turns: None };
        let writer = LineWriter::start(target).unwrap();
        writer.write(b"a\n".to_vec());
        writer.flush(LIMIT);
        writer.reopen();
        writer.write(b"b\n".to_vec());
        writer.flush(LIMIT);
        assert_eq!(*opened.lock(), [b"a\n".to_vec(), b"b\n".to_vec()]);
        assert_eq!(writer.dropped_lines(), 0);
    }

    #[test]
    fn lines_that_do_not_fit_are_dropped_and_counted() {
        let opened = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let (turn, turns) = channel();
        let target = TestTarget { opened: Arc::clone(&opened), turns: Some(turns) };
        let writer = LineWriter::start(target).unwrap();
        // While the output blocks, only the queue and one batch are kept.
        let line = [vec![b'x'; 16 * 1024 - 1], vec![b'\n']].concat();
        for _ in 0..1024 {
            writer.write(line.clone());
        }
        let dropped = writer.dropped_lines();
        assert!(dropped >= 1024 - (MAX_BYTES + 2 * BATCH_BYTES) as u64 / line.len() as u64, "{dropped}");
        drop(turn);
        writer.flush(LIMIT);
        writer.write(b"last\n".to_vec());
        writer.flush(LIMIT);
        let text = String::from_utf8(opened.lock()[0].clone()).unwrap();
        let reported = text.lines().filter_map(|line| line.strip_prefix("dropped ")?.parse::<u64>().ok());
        assert_eq!(reported.sum::<u64>(), dropped);
        assert!(text.ends_with("last\n"));
        let kept = text.bytes().filter(|byte| *byte == b'x').count();
        assert_eq!(kept as u64, (1024 - dropped) * (line.len() as u64 - 1));
    }
}
