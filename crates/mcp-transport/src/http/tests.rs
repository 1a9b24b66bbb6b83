//! The rate limit of streams, on a virtual clock: all streams share it, and later messages are not lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_host_model::{Limits, UrlEndpoint};

use super::events::{StreamEnd, StreamReader};
use super::sessions::HttpSessions;
use super::*;
use crate::net::tests::flood::{self, FLOODS, ResponseRecorder};
use crate::transport::{MessageHead, OutboundMessage, StreamId};

async fn connection() -> (HttpConnection, Arc<ResponseRecorder>) {
    let endpoint = UrlEndpoint::new("http://localhost:1/mcp".parse().unwrap());
    let mut limits = Limits::default();
    limits.message_bytes = 1 << 20;
    let options = UrlOptions { limits, ..UrlOptions::default() };
    let endpoint = Arc::new(HttpEndpoint::new(&endpoint, &options).unwrap());
    let client = Client::new(Arc::clone(&endpoint)).await.unwrap();
    let (target, headers) = client.target_and_headers();
    let recorder = Arc::new(ResponseRecorder::default());
    let connection = HttpConnection {
        endpoint,
        client,
        target,
        inbound: Arc::clone(&recorder) as _,
        sessions: HttpSessions::new(headers, None),
        terminate_on_close: true,
        send_queue: Mutex::default(),
        rate_limiter: Mutex::new(RateLimiter::new(Instant::now())),
        driver: mpsc::unbounded_channel().0,
    };
    (connection, recorder)
}

/// Reads a stream that repeats `text` without end, for ten seconds. Returns the number of repetitions.
async fn read_for_ten_seconds(connection: &HttpConnection, stream_id: StreamId, text: &str) -> usize {
    let (mut response, sent) = flood::response(text);
    let mut reader = StreamReader::new(stream_id);
    let outcome =
        tokio::time::timeout(Duration::from_secs(10), reader.read_stream(connection, &mut response)).await;
    assert!(outcome.is_err(), "it has no end: {outcome:?}");
    sent.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn flood_is_rate_limited() {
    for (text, weight) in FLOODS {
        let sent = read_for_ten_seconds(&connection().await.0, StreamId::Notifications(Epoch(1)), text).await;
        assert!((78_000..100_000).contains(&(sent * weight)), "{text:?}: {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_streams_of_a_server_share_one_rate() {
    let (connection, _) = connection().await;
    let request = |id| read_for_ten_seconds(&connection, StreamId::Request(id, Epoch(1)), FLOODS[1].0);
    let (one, other, third) = tokio::join!(
        request(1),
        request(2),
        read_for_ten_seconds(&connection, StreamId::Notifications(Epoch(1)), FLOODS[0].0)
    );
    let idle = one * FLOODS[1].1 + other * FLOODS[1].1 + third * FLOODS[0].1;
    assert!((78_000..110_000).contains(&idle), "{one} {other} {third}");
}

#[tokio::test(start_paused = true)]
async fn endless_comment_is_rate_limited_and_ends_its_stream() {
    let text = format!(": {}", "x".repeat(4094));
    for stream_id in [StreamId::Notifications(Epoch(1)), StreamId::Request(1, Epoch(1))] {
        let (mut response, sent) = flood::response(&text);
        let (connection, _) = connection().await;
        let started = Instant::now();
        let end = StreamReader::new(stream_id).read_stream(&connection, &mut response).await;
        assert!(
            matches!(end, StreamEnd::Endless(_)) && end.message(&connection).contains("does not end (67"),
            "{end:?}"
        );
        // 64 MiB: a burst of 32, and a second for the rest.
        assert!((900..2000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
        let bytes = sent.load(Ordering::Relaxed) * text.len();
        assert!((64 << 20..72 << 20).contains(&bytes), "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn flood_without_a_message_ends_its_stream() {
    for (text, _) in &FLOODS[1..] {
        let (mut response, _) = flood::response(text);
        let (connection, _) = connection().await;
        let end =
            StreamReader::new(StreamId::Request(1, Epoch(1))).read_stream(&connection, &mut response).await;
        let message = end.message(&connection);
        assert!(end == StreamEnd::Flooded && message.contains("localhost"), "{text:?}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn response_is_not_delayed_by_later_messages_or_another_stream() {
    let (connection, recorder) = connection().await;
    let flood = read_for_ten_seconds(&connection, StreamId::Notifications(Epoch(1)), FLOODS[1].0);
    let call = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let started = Instant::now();
        let text = format!("data: {{\"id\":1,\"result\":{{}}}}\n\n{}", FLOODS[1].0.repeat(100));
        let (mut response, _) = flood::response(&text);
        StreamReader::new(StreamId::Request(1, Epoch(1))).read_stream(&connection, &mut response).await;
        // The response is delivered at once. The stream does not end after it, so it is closed after its timeout.
        assert_eq!(recorder.times()[0], started);
        assert!(started.elapsed() <= Duration::from_millis(251), "{:?}", started.elapsed());
    };
    tokio::join!(flood, call);
}

#[tokio::test]
async fn exchange_fits_into_one_kibibyte() {
    let connection = Arc::new(connection().await.0);
    let head = MessageHead::new(Some(1), "tools/call", None);
    let message = OutboundMessage { epoch: Epoch(0), head, body: bytes::Bytes::new() };
    connection.send_queue.lock().mark_in_flight(&message);
    let exchange = exchange::start_exchange(&connection, message);
    // The allocator of glibc is much faster for allocations of at most 1032 bytes.
    let bytes = size_of_val(&*exchange);
    assert!(bytes <= 1024, "{bytes}");
}
