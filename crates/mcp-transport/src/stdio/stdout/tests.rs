//! Tests of the rate limit, the batches and the pipe capacity of a reader.

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
    let mut reader = StdoutReader::new(RecordingPipe(ours, Arc::clone(&capacities)), inbound, flow, &server);
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
            !reader.rate_limiter.has_uncharged() || reader.rate_limiter.pause_until(Instant::now()).is_none()
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
