//! The rate limit of streams, on a virtual clock: all streams share it, and later messages are not lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_model::{Limits, UrlEndpoint};

use super::events::{StreamEnd, StreamReader};
use super::*;
use crate::net::tests::flood::{self, Answers, FLOODS};
use crate::transport::StreamId;

fn wire() -> (HttpConnection, Arc<Answers>) {
    let endpoint = UrlEndpoint::new("http://localhost:1/mcp".parse().unwrap());
    let limits = Limits { message_bytes: 1 << 20, ..Limits::default() };
    let options = DialOptions { limits, ..DialOptions::default() };
    let place = Arc::new(HttpEndpoint::new(&endpoint, &options).unwrap());
    let client = Client::new(Arc::clone(&place)).unwrap();
    let (target, plain) = client.post_target();
    let answers = Arc::new(Answers::default());
    let wire = HttpConnection {
        place,
        client,
        target,
        inbox: Arc::clone(&answers) as _,
        sessions: HttpSessions::new(plain, None),
        terminate_on_close: true,
        lanes: Mutex::default(),
        rate_limiter: Mutex::new(RateLimiter::new(Instant::now())),
        driver: mpsc::unbounded_channel().0,
    };
    (wire, answers)
}

/// Reads a stream that repeats `text` without end, for ten seconds. Returns the number of repetitions.
async fn ten_seconds(wire: &HttpConnection, lane: StreamId, text: &str) -> usize {
    let (mut response, sent) = flood::response(text);
    let mut hearing = StreamReader::new(lane);
    let heard = tokio::time::timeout(Duration::from_secs(10), hearing.read_stream(wire, &mut response)).await;
    assert!(heard.is_err(), "it has no end: {heard:?}");
    sent.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn flood_is_rate_limited() {
    for (text, worth) in FLOODS {
        let sent = ten_seconds(&wire().0, StreamId::Notifications(Epoch(1)), text).await;
        assert!((78_000..100_000).contains(&(sent * worth)), "{text:?}: {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_streams_of_a_server_share_one_rate() {
    let (wire, _) = wire();
    let request = |id| ten_seconds(&wire, StreamId::Request(id, Epoch(1)), FLOODS[1].0);
    let (one, other, third) = tokio::join!(
        request(1),
        request(2),
        ten_seconds(&wire, StreamId::Notifications(Epoch(1)), FLOODS[0].0)
    );
    let idle = one * FLOODS[1].1 + other * FLOODS[1].1 + third * FLOODS[0].1;
    assert!((78_000..110_000).contains(&idle), "{one} {other} {third}");
}

#[tokio::test(start_paused = true)]
async fn endless_comment_is_rate_limited_and_ends_its_stream() {
    let text = format!(": {}", "x".repeat(4094));
    for lane in [StreamId::Notifications(Epoch(1)), StreamId::Request(1, Epoch(1))] {
        let (mut response, sent) = flood::response(&text);
        let (wire, _) = wire();
        let begun = Instant::now();
        let end = StreamReader::new(lane).read_stream(&wire, &mut response).await;
        assert!(
            matches!(end, StreamEnd::Endless(_)) && end.message(&wire).contains("does not end (67"),
            "{end:?}"
        );
        // 64 MiB: a burst of 32, and a second for the rest.
        assert!((900..2000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
        let bytes = sent.load(Ordering::Relaxed) * text.len();
        assert!((64 << 20..72 << 20).contains(&bytes), "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn response_is_not_delayed_by_later_messages_or_another_stream() {
    let (wire, answers) = wire();
    let flood = ten_seconds(&wire, StreamId::Notifications(Epoch(1)), FLOODS[1].0);
    let call = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let begun = Instant::now();
        let text = format!("data: {{\"id\":1,\"result\":{{}}}}\n\n{}", FLOODS[1].0.repeat(100));
        let (mut response, _) = flood::response(&text);
        StreamReader::new(StreamId::Request(1, Epoch(1))).read_stream(&wire, &mut response).await;
        // The response is delivered at once. The stream does not end after it, so it is closed after its timeout.
        assert_eq!(answers.times()[0], begun);
        assert!(begun.elapsed() <= Duration::from_millis(251), "{:?}", begun.elapsed());
    };
    tokio::join!(flood, call);
}
