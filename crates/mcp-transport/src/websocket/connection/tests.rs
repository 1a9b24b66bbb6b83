//! An open WebSocket over an in-memory pipe, on a virtual clock: pings, timeouts and the close.

use std::sync::Mutex;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use mcp_host_model::UrlEndpoint;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::protocol::Role;
use url::Url;

use super::super::{WebSocketDial, socket};
use super::*;
use crate::net::url_endpoint::UrlOptions;
use crate::transport::{
    Epoch, FrameSink, MessageClass, MessageHead, Outbound, OutboundMessage, OutboundQueue, OutboundSender,
    RequestId, ShutdownSender, ShutdownSignal, StreamError, StreamId,
};

/// The capacity of the pipe in each direction.
const PIPE_BYTES: usize = 16 << 10;

/// Records delivered frames and noise.
#[derive(Default)]
struct FrameRecorder(Mutex<Vec<String>>);

impl FrameSink for FrameRecorder {
    fn deliver(&self, _: StreamId, frame: Bytes) -> MessageClass {
        self.0.lock().unwrap().push(String::from_utf8_lossy(&frame).into_owned());
        MessageClass::Solicited
    }

    fn is_pending(&self, _: RequestId) -> bool {
        true
    }

    fn fail_stream(&self, _: RequestId, _: StreamError) {
        panic!("a socket has no streams");
    }

    fn record_noise(&self, bytes: usize) {
        self.0.lock().unwrap().push(format!("{bytes} bytes of noise"));
    }

    fn end_calls(&self) {}
}

/// A running connection, and the socket of its peer.
struct TestConnection {
    out: OutboundSender,
    recorder: std::sync::Arc<FrameRecorder>,
    stop: ShutdownSender,
    running: JoinHandle<Disconnect>,
    peer: WebSocketStream<DuplexStream>,
}

async fn open_connection() -> TestConnection {
    let endpoint = UrlEndpoint::new(Url::parse("ws://peer.example/").unwrap());
    let WebSocketDial(endpoint) = WebSocketDial::new(&endpoint, &UrlOptions::default()).unwrap();
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let ours = ActivityStream::new(Box::new(ours), 1 << 20);
    let settings = socket::socket_config(1 << 20);
    let ours = WebSocketStream::from_raw_socket(ours, Role::Client, Some(settings)).await;
    let peer = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    let (out, queue) = OutboundQueue::new();
    let (stop, stopped) = ShutdownSignal::new();
    let recorder = std::sync::Arc::new(FrameRecorder::default());
    let link = Link { outbound: queue, inbound: std::sync::Arc::clone(&recorder) as _, shutdown: stopped };
    let running = tokio::spawn(async move { run_connection(&endpoint, ours, link).await });
    TestConnection { out, recorder, stop, running, peer }
}

impl TestConnection {
    fn send(&self, body: impl Into<Bytes>) {
        let head = MessageHead::new(Some(1), "tools/call", None);
        self.out.send(Outbound::Send(OutboundMessage { epoch: Epoch(0), head, body: body.into() }));
    }

    async fn wait_for_end(self) -> String {
        // The peer's socket stays open until ours is closed.
        let TestConnection { running, peer, .. } = self;
        let ended = running.await.unwrap();
        drop(peer);
        ended.to_string()
    }
}

/// Describes a message that the peer has read.
fn describe(message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>) -> String {
    match message {
        None => "end".to_owned(),
        Some(Err(error)) => error.to_string(),
        Some(Ok(Message::Text(text))) => format!("text of {}", text.len()),
        Some(Ok(Message::Ping(_))) => "ping".to_owned(),
        Some(Ok(Message::Pong(data))) => format!("pong {}", String::from_utf8_lossy(&data)),
        Some(Ok(Message::Close(Some(frame)))) => format!("close {}", u16::from(frame.code)),
        Some(Ok(other)) => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_connection_is_pinged_and_a_dead_one_closed() {
    let mut connection = open_connection().await;
    let started = Instant::now();
    for second in [30, 60, 90] {
        assert_eq!(describe(connection.peer.next().await), "ping");
        assert_eq!(started.elapsed().as_secs(), second);
        // The pong is written by the next read, or here.
        connection.peer.flush().await.unwrap();
    }
    // From now on the peer neither reads nor writes.
    assert_eq!(connection.wait_for_end().await, "it did not respond to a ping for 60 s");
    // The last ping was sent half a minute after the last pong, and the close takes half a second.
    assert_eq!(started.elapsed(), Duration::from_millis(180_500));
}

#[tokio::test(start_paused = true)]
async fn partial_message_counts_as_activity() {
    let TestConnection { recorder, running, peer, out: _out, stop: _stop } = open_connection().await;
    // A text of three bytes, one every 50 s: no message and no pong for longer than the pong timeout.
    let mut raw = peer.into_inner();
    let mut bytes = vec![0x81, 3];
    bytes.extend(b"{ }");
    for byte in bytes {
        tokio::io::AsyncWriteExt::write_all(&mut raw, &[byte]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(50)).await;
    }
    assert_eq!(*recorder.0.lock().unwrap(), ["{ }"]);
    assert!(!running.is_finished());
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_during_a_large_write() {
    let mut connection = open_connection().await;
    connection.send(vec![b' '; 1 << 20]);
    // The write has started, and is larger than the pipe.
    connection.peer.send(Message::Ping("now".into())).await.unwrap();
    assert_eq!(describe(connection.peer.next().await), "pong now");
    assert_eq!(describe(connection.peer.next().await), format!("text of {}", 1 << 20));
}

#[tokio::test(start_paused = true)]
async fn peer_that_does_not_read_times_out_with_bounded_memory() {
    let mut connection = open_connection().await;
    connection.send(vec![b' '; 1 << 20]);
    // The peer continues to send pings. The pongs must not accumulate.
    for number in 0..5000 {
        let ping = Message::Ping(format!("{number}: {}", "x".repeat(100)).into());
        // At some point the pipe is full, because neither side reads.
        if tokio::time::timeout(Duration::from_millis(1), connection.peer.send(ping)).await.is_err() {
            break;
        }
    }
    let started = Instant::now();
    assert_eq!(connection.wait_for_end().await, "it did not read its input for 60 s");
    assert!(started.elapsed() < Duration::from_secs(62));
}

#[tokio::test(start_paused = true)]
async fn slow_reader_does_not_time_out() {
    let mut connection = open_connection().await;
    connection.send(vec![b' '; 200_000]);
    connection.send("{}");
    let started = Instant::now();
    let (peer, raw) = {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let fast = WebSocketStream::from_raw_socket(ours, Role::Server, None).await;
        let mut slow = std::mem::replace(&mut connection.peer, fast).into_inner();
        let slowly = tokio::spawn(async move {
            let mut some = [0; 10_000];
            while let Ok(count @ 1..) = tokio::io::AsyncReadExt::read(&mut slow, &mut some).await {
                tokio::io::AsyncWriteExt::write_all(&mut theirs, &some[..count]).await.unwrap();
                // Slower than the timeout for the whole message, faster than the timeout without progress.
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
        });
        (&mut connection.peer, slowly)
    };
    // Pings are sent between the frames. The peer is silent, so the last one times out, but everything was sent.
    let mut texts = Vec::new();
    loop {
        match describe(peer.next().await) {
            ping if ping == "ping" => {}
            other if other.starts_with("text") => {
                texts.push(other);
                if texts.len() == 2 {
                    break;
                }
            }
            other => panic!("{other} after {:?}", started.elapsed()),
        }
    }
    assert_eq!(texts, ["text of 200000", "text of 2"]);
    assert!(started.elapsed() > Duration::from_secs(300));
    raw.abort();
}

#[tokio::test(start_paused = true)]
async fn close_takes_no_longer_than_its_deadline() {
    // A peer that responds.
    let mut closing = open_connection().await;
    closing.stop.request(Instant::now() + Duration::from_secs(5));
    let started = Instant::now();
    assert_eq!(describe(closing.peer.next().await), "close 1000");
    assert_eq!(describe(closing.peer.next().await), "end");
    assert_eq!(closing.wait_for_end().await, "it was stopped");
    assert_eq!(started.elapsed(), Duration::ZERO);
    // A peer that sends another message.
    let mut late = open_connection().await;
    late.stop.request(Instant::now() + Duration::from_secs(5));
    tokio::time::sleep(Duration::from_secs(1)).await;
    late.peer.send(Message::Text("{\"late\":1}".into())).await.unwrap();
    assert_eq!(describe(late.peer.next().await), "close 1000");
    let recorder = std::sync::Arc::clone(&late.recorder);
    assert_eq!(late.wait_for_end().await, "it was stopped");
    assert_eq!(*recorder.0.lock().unwrap(), ["{\"late\":1}"]);
    // A peer that does not read, with a message in flight.
    let stalled = open_connection().await;
    stalled.send(vec![b' '; 1 << 20]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = Instant::now();
    stalled.stop.request(started + Duration::from_secs(5));
    assert_eq!(stalled.wait_for_end().await, "it was stopped");
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn end_of_the_engine_closes_the_socket() {
    let TestConnection { out, running, mut peer, stop: _stop, recorder: _ } = open_connection().await;
    drop(out);
    let (ended, received) = tokio::join!(running, peer.next());
    assert_eq!(ended.unwrap().reason, DisconnectReason::Stopped);
    assert!(
        ["close 1000", "end", "WebSocket protocol error: Connection reset without closing handshake"]
            .contains(&describe(received).as_str())
    );
}

#[tokio::test(start_paused = true)]
async fn unsolicited_flood_is_rate_limited_and_can_be_closed() {
    let TestConnection { recorder, running, mut peer, out: _out, stop } = open_connection().await;
    let started = Instant::now();
    let flood =
        tokio::spawn(async move { while peer.feed(Message::text("the sky is falling")).await.is_ok() {} });
    tokio::time::sleep(Duration::from_secs(10)).await;
    let received = recorder.0.lock().unwrap().len();
    // The burst and the rate.
    assert!((80_000..100_000).contains(&received), "{received}");
    stop.request(Instant::now() + Duration::from_secs(2));
    assert_eq!(running.await.unwrap().reason, DisconnectReason::Stopped);
    assert!(started.elapsed() <= Duration::from_secs(13));
    flood.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn message_of_empty_frames_without_end_ends_the_connection() {
    let TestConnection { out: _out, stop: _stop, running, peer, .. } = open_connection().await;
    let mut peer = peer.into_inner();
    // The first frame of a text, then empty continuations.
    peer.write_all(&[0x01, 1, b'{']).await.unwrap();
    while peer.write_all(&[0x00, 0].repeat(10_000)).await.is_ok() {}
    let ended = running.await.unwrap().to_string();
    assert!(ended.contains("reading from it failed: a message does not end (52"), "{ended}");
}
