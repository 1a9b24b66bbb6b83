//! What frames bring, whole and in pieces, and what is no message.

use mcp_testkit::wait::wait_until;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::*;

/// The answer to a call, as text.
fn answer(message: &Value, text: &str) -> String {
    json!({"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}).to_string()
}

#[tokio::test]
async fn binary_json_is_a_message_and_other_data_is_noise() {
    let peer = Peer::start(|message| {
        modern(message, |message| {
            vec![
                Step::Text("starting hunter22 up".to_owned()),
                Step::Text(String::new()),
                Step::Frame(Message::Binary(vec![0xff, 0xfe, b'{'].into())),
                Step::Frame(Message::Binary(answer(message, "grün").into())),
            ]
        })
    })
    .await;
    let headers = vec![("X-Key".to_owned(), Secret::from("hunter22"))];
    let session = TestClient { headers, ..TestClient::default() }.connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "grün");
    let ended = session.close(Duration::from_secs(5)).await;
    let want = "it was stopped; 23 bytes that it sent were not MCP (they begin with \"starting *** up\")";
    assert_eq!(ended.to_string(), want);
}

#[tokio::test]
async fn fragmented_message_is_joined_and_pings_between_are_answered() {
    let peer = Peer::start(|message| {
        modern(message, |message| {
            let frame = |bytes: &[u8], kind, last| {
                let frame = Frame::message(bytes.to_vec(), OpCode::Data(kind), last);
                Step::Frame(Message::Frame(frame))
            };
            // Cut in the middle of a character.
            let text = answer(message, "grün");
            let (first, second) = text.as_bytes().split_at(text.find('ü').unwrap() + 1);
            vec![
                frame(first, Data::Text, false),
                Step::Frame(Message::Ping("a".into())),
                frame(b"", Data::Continue, false),
                Step::Frame(Message::Ping("b".into())),
                frame(second, Data::Continue, true),
            ]
        })
    })
    .await;
    let session = connect(&peer).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "grün");
    wait_until(|| peer.pongs() == 2).await;
}

#[tokio::test]
async fn large_messages_are_sent_and_received() {
    let peer = Peer::start(|message| {
        modern(message, |message| {
            vec![tool_result(message, message["params"]["arguments"]["text"].as_str().unwrap())]
        })
    })
    .await;
    let session = connect(&peer).await.unwrap();
    let text = "0123456789abcdef".repeat(10 << 16);
    let arguments = RawJson::parse(json!({"text": text}).to_string().into()).unwrap();
    let answer = session.call_tool("echo", &arguments, CallOptions::default()).await.unwrap();
    assert!(answer.value.text() == text);
}

/// What a call is told when the peer answers it so, and how the peer sees the end.
async fn check(limits: Limits, bytes: impl Fn() -> Step + Send + Sync + 'static, want: &str, end: &str) {
    let peer = Peer::start(move |message| modern(message, |_| vec![bytes()])).await;
    let session =
        TestClient { limits: Some(limits), ..TestClient::default() }.connect(&peer.url).await.unwrap();
    let error = call(&session).await.unwrap_err();
    assert!(matches!(error, CallError::Closed(_)), "{error:?}");
    assert_eq!(error.to_string(), format!("the server is no longer available: {want}"));
    wait_until(|| peer.open() == 0).await;
    assert_eq!(peer.ends(), end);
}

#[tokio::test]
async fn hd_117_protocol_violation_ends_the_connection_with_a_reason() {
    let raw = |bytes: &'static [u8]| move || Step::Raw(bytes.to_vec());
    let usual = Limits::default;
    check(usual(), raw(b"\x81\x02{\xff"), "it sent text that is not UTF-8", "close 1007").await;
    let reserved = "it violated the protocol: WebSocket protocol error: Reserved bits are non-zero";
    check(usual(), raw(b"\xc1\x02{}"), reserved, "close 1002").await;
    let masked = "it violated the protocol: WebSocket protocol error: Received a masked frame from server";
    check(usual(), raw(b"\x81\x82\0\0\0\0{}"), masked, "close 1002").await;
    let lonely = "it violated the protocol: WebSocket protocol error: Continue frame but nothing to continue";
    check(usual(), raw(b"\x80\x02{}"), lonely, "close 1002").await;
}

#[tokio::test]
async fn too_large_message_ends_the_connection_whole_or_fragmented() {
    let small = || {
        let mut limits = Limits::default();
        limits.message_bytes = 1000;
        limits
    };
    // A frame that only says that it will be large.
    let oversized = || Step::Raw(b"\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec());
    let want = "it sent a message of at least 9223372036854775807 bytes; the limit is 1000";
    check(small(), oversized, want, "close 1009").await;
    // Small pieces of a message without end.
    let pieces = || {
        let mut bytes = b"\x01\x01{".to_vec();
        bytes.extend(b"\0\x64".iter().chain(&[b' '; 100]).copied().collect::<Vec<u8>>().repeat(20));
        Step::Raw(bytes)
    };
    let want = "it sent a message of at least 1001 bytes; the limit is 1000";
    check(small(), pieces, want, "close 1009").await;
}

#[tokio::test]
async fn flood_does_not_delay_responses() {
    let peer = Peer::start(|message| {
        modern(message, |message| {
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}});
            let mut steps: Vec<Step> = (0..20_000).map(|_| Step::Text(notice.to_string())).collect();
            steps.push(tool_result(message, "hello"));
            steps
        })
    })
    .await;
    let session = connect(&peer).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(call(&session).await.unwrap(), "hello");
}
