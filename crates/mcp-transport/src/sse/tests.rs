//! Tests of the rate limit of a stream, on a virtual clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_host_model::{Limits, UrlEndpoint};

use super::*;
use crate::net::tests::flood::{self, FLOODS, ResponseRecorder};
use crate::net::url_endpoint::UrlOptions;

/// Drives a connection whose stream repeats a text without end, for some seconds. Returns the number of
/// repetitions, the delivered responses, and the end.
async fn drive_flooded(seconds: u64, text: &str) -> (usize, Arc<ResponseRecorder>, DisconnectReason) {
    let endpoint = UrlEndpoint::new("http://localhost:1/sse".parse().unwrap());
    let mut limits = Limits::default();
    limits.message_bytes = 1 << 20;
    let options = UrlOptions { limits, ..UrlOptions::default() };
    let endpoint = Arc::new(HttpEndpoint::new(&endpoint, &options).unwrap());
    let client = Client::new(Arc::clone(&endpoint)).await.unwrap();
    let (message_target, headers) = client.target_and_headers();
    let recorder = Arc::new(ResponseRecorder::default());
    let limits = stream::StreamLimits::from_endpoint(&endpoint);
    let connection =
        SseConnection { endpoint, client, message_target, headers, inbound: Arc::clone(&recorder) as _ };
    let (response, sent) = flood::response(text);
    let (_out, mut queue) = OutboundQueue::new();
    let shutdown_requested = pin!(tokio::time::sleep_until(Instant::now() + Duration::from_secs(seconds)));
    let shutdown_requested = pin!(futures_util::FutureExt::map(shutdown_requested, |()| Instant::now()));
    let end = drive(&connection, SseStream::new(response, limits), &mut queue, shutdown_requested).await;
    (AtomicUsize::load(&sent, Ordering::Relaxed), recorder, end)
}

#[tokio::test(start_paused = true)]
async fn flood_is_rate_limited() {
    for (text, weight) in FLOODS {
        let (sent, _, end) = drive_flooded(10, text).await;
        assert_eq!(end, DisconnectReason::Stopped);
        assert!((78_000..100_000).contains(&(sent * weight)), "{text:?}: {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn flood_without_a_message_ends_the_connection() {
    for (text, _) in &FLOODS[1..] {
        let (_, _, end) = drive_flooded(600, text).await;
        assert!(
            matches!(&end, DisconnectReason::Broken(why) if why.contains("floods the stream")),
            "{text:?}: {end:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn endless_event_is_rate_limited_and_ends_the_connection() {
    let comment = format!(": {}", "x".repeat(4094));
    let data = format!("data: {}\n", "x".repeat(1000));
    let other = format!("event: ping\n{data}");
    // A comment in one line, and too large events of both types, which are skipped line by line.
    for text in [comment, data, other] {
        let started = Instant::now();
        let (sent, _, end) = drive_flooded(60, &text).await;
        assert!(
            matches!(&end, DisconnectReason::Broken(why) if why.contains("does not end (67")),
            "{text:.20?}: {end:?}"
        );
        // 64 MiB: a burst of 32, and a second for the rest.
        assert!((900..2000).contains(&started.elapsed().as_millis()), "{text:.20?}: {:?}", started.elapsed());
        assert!((64 << 20..72 << 20).contains(&(sent * text.len())), "{text:.20?}: {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn response_behind_a_flood_arrives_soon() {
    let (_, recorder, _) =
        drive_flooded(10, &format!("{}data: {{\"id\":1}}\n\n", ": ping\n\n".repeat(50))).await;
    let times = recorder.times();
    assert!(times.len() > 500, "{}", times.len());
    // A chunk contains a hundred repetitions.
    assert!(times.windows(2).all(|it| it[1] - it[0] <= Duration::from_millis(1_250)), "{times:?}");
}
