//! The way from a child: lines to frames, and everything else to evidence.

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

use super::Place;
use super::batching::Turns;
use super::encoding::StreamDecoder;
use super::lines::{Line, Lines};
use super::source::Source;
use crate::error::end::DisconnectReason;
use crate::redact::Redactor;
use crate::rpc::oversize::{Oversize, is_endless};
use crate::rpc::rate_limiter::Pace;
use crate::transport::yield_once;
use crate::transport::{FrameSink, MessageClass, StreamError, StreamId};

/// How much is read at once where it has to be decoded first.
const RAW_BYTES: usize = 64 << 10;

/// How much memory is held for what is to come once nothing has come for so long. Until then all of it is: who has sent
/// much sends more, and memory that goes and comes has to be cleared by the system each time.
const KEPT: usize = 4 << 10;
const REST: Duration = Duration::from_secs(1);

/// What the pipe holds while long messages come, and otherwise. All pipes of a user share what the system has for them.
const WIDE: usize = 512 << 10;
const USUAL: usize = 64 << 10;

/// Reads messages and hands them to the engine.
pub(super) struct Reader<S = ChildStdout> {
    stdout: S,
    inbox: Arc<dyn FrameSink>,
    lines: Lines,
    decoder: Option<(StreamDecoder, BytesMut)>,
    redactor: Arc<Redactor>,
    pace: Pace,
    turns: Turns,
    /// How many bytes the last read brought, while some of its messages are still to be handed over.
    came: Option<usize>,
    /// Nothing is read until then.
    paused: Option<Instant>,
    /// The pipe holds more than usual.
    is_wide: bool,
    /// How many frames came that somebody waited for: a server may log what it does for them.
    pub(super) awaited: Arc<AtomicU64>,
    /// Bytes that were no protocol, and the first of them as text.
    pub(super) noise: u64,
    pub(super) sample: Option<String>,
}

impl<S: Source> Reader<S> {
    pub(super) fn new(stdout: S, inbox: Arc<dyn FrameSink>, turns: Turns, place: &Place) -> Reader<S> {
        Reader {
            stdout,
            inbox,
            lines: Lines::new(place.message_bytes),
            decoder: place.encoding.decoder().map(|it| (it, BytesMut::with_capacity(RAW_BYTES))),
            redactor: Arc::clone(&place.redactor),
            pace: Pace::new(Instant::now()),
            turns,
            came: None,
            paused: None,
            is_wide: false,
            awaited: Arc::default(),
            noise: 0,
            sample: None,
        }
    }

    /// Reads until the stream ends, with pauses when much comes that nobody waits for. Cancel-safe: what was read is in
    /// `lines`.
    pub(super) async fn run(&mut self) -> DisconnectReason {
        loop {
            if let Some(until) = self.paused {
                tokio::time::sleep_until(until).await;
                self.paused = None;
            }
            if let Some(reason) = self.read().await {
                return reason;
            }
            if self.pace.counts() {
                self.paused = self.pace.pause(Instant::now());
            }
        }
    }

    /// Reads on while the process ends: answers that still come are delivered. Without pauses, for the end has a
    /// deadline, and the last words may stand behind much else.
    pub(super) async fn drain(&mut self) {
        while self.read().await.is_none() {}
    }

    /// Hands over what is there, or reads once. Cancel-safe.
    async fn read(&mut self) -> Option<DisconnectReason> {
        let count = match self.came {
            Some(count) => count,
            None => match self.more().await {
                Ok(0) => {
                    // Half a line is no message.
                    if let Some(rest) = self.lines.rest() {
                        self.noise(&rest);
                    }
                    return Some(DisconnectReason::PeerClosed);
                }
                Ok(count) => count,
                Err(error) => {
                    return Some(DisconnectReason::Broken(format!("reading from it failed: {error}")));
                }
            },
        };
        self.came = Some(count);
        if !self.hand_over() {
            yield_once().await;
            return None;
        }
        self.came = None;
        if !self.is_wide && self.decoder.is_none() && self.lines.is_long() {
            self.is_wide = true;
            self.stdout.hold(WIDE);
        }
        if let Some(len) = self.lines.skipped() {
            self.pace.wasted(0, count);
            if is_endless(len, self.lines.limit()) {
                return Some(DisconnectReason::Broken(format!(
                    "it sends a message that does not end: {len} bytes without a line break"
                )));
            }
        }
        None
    }

    /// Hands over messages until enough have their answers. True when that was all.
    fn hand_over(&mut self) -> bool {
        let mut left = self.turns.answers();
        while left > 0 || self.lines.is_empty() {
            let Some(line) = self.lines.next() else { return true };
            left -= usize::from(self.take(line) == MessageClass::Solicited);
        }
        false
    }

    /// Reads once: how many bytes came, 0 at the end. Cancel-safe.
    async fn more(&mut self) -> io::Result<usize> {
        match &mut self.decoder {
            None => self.wait().await,
            Some((decoder, raw)) => {
                raw.clear();
                let read = self.stdout.read_buf(raw).await;
                decoder.decode(raw, self.lines.room());
                read
            }
        }
    }

    /// Reads once into `lines`: how many bytes came, 0 at the end. When nothing comes for a while not much memory is held
    /// for it, for there may be many servers. Cancel-safe.
    async fn wait(&mut self) -> io::Result<usize> {
        let room = self.lines.room();
        // A little is got and given back for less than a timer costs.
        if room.capacity() > 4 * KEPT || self.is_wide {
            match tokio::time::timeout(REST, self.stdout.read_buf(room)).await {
                Ok(read) => return read,
                Err(_) => self.lines.idle(KEPT),
            }
            if self.is_wide {
                self.is_wide = false;
                self.stdout.hold(USUAL);
            }
        }
        fill(&mut self.stdout, &mut self.lines, KEPT).await
    }

    fn take(&mut self, line: Line) -> MessageClass {
        match line {
            Line::Whole(line) => match line.iter().find(|it| !it.is_ascii_whitespace()) {
                Some(b'{' | b'[') => {
                    let bytes = line.len();
                    let worth = self.inbox.deliver(StreamId::Shared, line);
                    if worth == MessageClass::Solicited {
                        self.awaited.fetch_add(1, Ordering::Relaxed);
                    }
                    self.pace.took(worth, bytes);
                    return worth;
                }
                _ => self.noise(&line),
            },
            Line::TooLong(oversize) => {
                let Oversize { head, tail: _, len } = &oversize;
                self.noise(head);
                self.noise += (len - head.len()) as u64;
                self.inbox.noise(len - head.len());
                // The call that it answered need not wait for its deadline.
                if let Some(id) = oversize.answers() {
                    self.inbox.stream_failed(id, StreamError::TooLarge(self.lines.limit()));
                }
            }
        }
        MessageClass::Unsolicited(1)
    }

    fn noise(&mut self, bytes: &[u8]) {
        self.noise += bytes.len() as u64;
        self.pace.wasted(1, bytes.len());
        self.inbox.noise(bytes.len());
        self.sample.get_or_insert_with(|| self.redactor.clean(&String::from_utf8_lossy(bytes), 120));
    }
}

/// Reads once into `lines`: how many bytes came, 0 at the end. While nothing comes not much more than `kept` bytes of
/// memory are held for it, for there may be many servers. Cancel-safe.
pub(super) async fn fill(
    stream: &mut (impl AsyncRead + Unpin),
    lines: &mut Lines,
    kept: usize,
) -> io::Result<usize> {
    poll_fn(|context| {
        let polled = {
            let reading = pin!(stream.read_buf(lines.room()));
            reading.poll(context)
        };
        if polled.is_pending() {
            lines.idle(kept);
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use mcp_model::{Limits, StdioEndpoint};
    use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream, ReadBuf};

    use super::*;
    use crate::dial::endpoint::DialOptions;
    use crate::stdio::StdioDial;
    use crate::transport::{OutboundQueue, RequestId};

    /// Waits for answers alone, and notes how much else there was before each.
    #[derive(Default)]
    struct Counts(Mutex<(usize, Vec<(usize, Instant)>)>);

    impl Counts {
        fn idle(&self) -> usize {
            self.0.lock().unwrap().0
        }
    }

    impl FrameSink for Counts {
        fn deliver(&self, _: StreamId, frame: Bytes) -> MessageClass {
            let (idle, answers) = &mut *self.0.lock().unwrap();
            if frame.starts_with(b"{\"result\"") {
                answers.push((*idle, Instant::now()));
                return MessageClass::Solicited;
            }
            *idle += 1;
            MessageClass::Unsolicited(1)
        }

        fn stream_failed(&self, _: RequestId, _: StreamError) {}

        fn noise(&self, _: usize) {
            self.0.lock().unwrap().0 += 1;
        }
    }

    const ANSWER: &[u8] = b"{\"result\":1}\n";

    impl Source for DuplexStream {}

    /// Notes what it is to hold.
    struct Noted(DuplexStream, Arc<Mutex<Vec<usize>>>);

    impl AsyncRead for Noted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, into)
        }
    }

    impl Source for Noted {
        fn hold(&self, bytes: usize) {
            self.1.lock().unwrap().push(bytes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pipe_is_wide_while_long_messages_come() {
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let held = Arc::<Mutex<Vec<usize>>>::default();
        let StdioDial(place) = StdioDial::new(&StdioEndpoint::new("x"), &DialOptions::default()).unwrap();
        let (inbox, turns) = (Arc::new(Counts::default()), Turns::of(&OutboundQueue::new().1));
        let mut reader = Reader::new(Noted(ours, Arc::clone(&held)), inbox, turns, &place);
        let reading = tokio::spawn(async move { reader.run().await });
        let long = [&b"{\"a\":\""[..], &[b'x'; 1 << 20], b"\"}\n"].concat();
        let short = CHANGED.repeat(100);
        let pause = || tokio::time::sleep(REST / 2);
        for (what, want) in [(&short, &[][..]), (&long, &[WIDE]), (&long, &[WIDE]), (&short, &[WIDE])] {
            theirs.write_all(what).await.unwrap();
            pause().await;
            assert_eq!(*held.lock().unwrap(), want);
        }
        tokio::time::sleep(2 * REST).await;
        assert_eq!(*held.lock().unwrap(), [WIDE, USUAL]);
        theirs.write_all(&long).await.unwrap();
        pause().await;
        assert_eq!(*held.lock().unwrap(), [WIDE, USUAL, WIDE]);
        drop(theirs);
        assert_eq!(reading.await.unwrap(), DisconnectReason::PeerClosed);
    }

    /// A reader of a pipe of the usual size, into which this is written without end; an answer after every `each` of it.
    fn flooded(line: &'static [u8], each: usize) -> (Reader<DuplexStream>, Arc<Counts>) {
        let limits = Limits { message_bytes: 1 << 20, ..Limits::default() };
        let options = DialOptions { limits, ..DialOptions::default() };
        let StdioDial(place) = StdioDial::new(&StdioEndpoint::new("x"), &options).unwrap();
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            loop {
                for _ in 0..each {
                    theirs.write_all(line).await?;
                }
                theirs.write_all(ANSWER).await?;
            }
            #[expect(unreachable_code, reason = "it gives the block its type")]
            std::io::Result::Ok(())
        });
        let counts = Arc::new(Counts::default());
        (Reader::new(ours, Arc::clone(&counts) as _, Turns::of(&OutboundQueue::new().1), &place), counts)
    }

    async fn seconds(reader: &mut Reader<DuplexStream>, seconds: u64) {
        let run = tokio::time::timeout(Duration::from_secs(seconds), reader.run()).await;
        assert!(run.is_err(), "it floods without end");
    }

    const CHANGED: &[u8] = b"{\"method\":\"notifications/tools/list_changed\"}\n";

    /// In ten seconds no more than the burst and the rate, and what one read may bring.
    #[track_caller]
    fn check_ten_seconds(idle: usize) {
        assert!((80_000..100_000).contains(&idle), "{idle}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_announcements_is_read_at_its_rate() {
        let (mut reader, counts) = flooded(CHANGED, usize::MAX);
        seconds(&mut reader, 10).await;
        check_ten_seconds(counts.idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_noise_is_read_at_its_rate() {
        let (mut reader, counts) = flooded(b"the sky is falling\n", usize::MAX);
        seconds(&mut reader, 10).await;
        check_ten_seconds(counts.idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_without_end_is_read_at_its_rate_and_ends_the_connection() {
        let (mut reader, counts) = flooded(&[b'x'; 4096], usize::MAX);
        let begun = Instant::now();
        let reason = tokio::time::timeout(Duration::from_secs(60), reader.run()).await.expect("it ends");
        assert!(
            matches!(&reason, DisconnectReason::Broken(why) if why.contains("does not end: 67")),
            "{reason:?}"
        );
        assert_eq!(counts.idle(), 0, "it is one line");
        // 64 MiB: a burst of 32, and a second for the rest.
        assert!((900..2000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stands_behind_a_flood_comes_soon() {
        let (mut reader, counts) = flooded(CHANGED, 50_000);
        seconds(&mut reader, 20).await;
        let answers = counts.0.lock().unwrap().1.clone();
        assert!(answers.len() >= 3, "{answers:?}");
        // Whoever wrote it waits no longer than what the pipe holds takes.
        for both in answers.windows(2) {
            assert!(both[1].1 - both[0].1 < Duration::from_millis(50_000 / 8 + 1_000), "{both:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_and_what_comes_with_them_never_pause() {
        let (mut reader, counts) = flooded(CHANGED, 4);
        let begun = Instant::now();
        // The clock stands still as long as somebody works: a pause would move it.
        while counts.idle() < 400_000 {
            assert!(reader.read().await.is_none());
            assert!(!reader.pace.counts() || reader.pace.pause(Instant::now()).is_none());
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn who_has_an_answer_has_a_turn_before_all_others_have_theirs() {
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let StdioDial(place) = StdioDial::new(&StdioEndpoint::new("x"), &DialOptions::default()).unwrap();
        let counts = Arc::new(Counts::default());
        let (sender, queue) = OutboundQueue::new();
        let _calls = sender.permits().acquire_many(10).await.unwrap();
        let mut reader = Reader::new(ours, Arc::clone(&counts) as _, Turns::of(&queue), &place);
        theirs.write_all(&[ANSWER.repeat(6), CHANGED.repeat(9), ANSWER.repeat(4)].concat()).await.unwrap();
        drop(theirs);
        let reading = tokio::spawn(async move { reader.run().await });
        let other = Arc::clone(&counts);
        let looking = tokio::spawn(async move {
            let mut seen = Vec::new();
            while !reading.is_finished() {
                seen.push(other.0.lock().unwrap().1.len());
                yield_once().await;
            }
            (seen, reading.await.unwrap())
        });
        let (mut seen, end) = looking.await.unwrap();
        seen.dedup();
        // What nobody waits for wakes nobody; and behind the last two is the end.
        assert_eq!((seen, counts.idle(), end), (vec![4, 8], 9, DisconnectReason::PeerClosed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_ends_with_the_connection() {
        let (mut reader, counts) = flooded(CHANGED, 20_000);
        seconds(&mut reader, 2).await;
        assert!(reader.paused.is_some());
        let (before, now) = (counts.idle(), Instant::now());
        tokio::select! {
            biased;
            () = reader.drain() => panic!("it floods without end"),
            () = async {
                while counts.idle() < before + 100_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        assert_eq!(now.elapsed(), Duration::ZERO);
    }
}
