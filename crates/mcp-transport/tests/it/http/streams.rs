//! Event streams: responses to calls, resumption, and the listening stream.

use mcp_testkit::wait::wait_until;

use super::peer::{Step, end, stream};
use super::*;

/// Writes an answer's event in an odd way, given the answer.
#[track_caller]
fn check(odd: fn(String) -> Reply) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let peer =
            Peer::start(move |request| modern(request, |request| odd(tool_result(request, "hello")))).await;
        let session = TestClient::default().connect(&peer.url).await.unwrap();
        assert_eq!(call(&session).await.map_err(|it| it.to_string()).as_deref(), Ok("hello"), "{place}");
    }
}

#[tokio::test]
async fn response_is_read_with_any_framing() {
    check(|it| stream(&[&format!("event: message\ndata: {it}\n\n")], end())).await;
    check(|it| stream(&[&format!("\u{feff}: hi\r\nid: 1\r\ndata:{it}\r\n\r\n")], end())).await;
    check(|it| stream(&[&format!("data: {it}\r"), "\r"], end())).await;
    check(|it| stream(&["event: ping\ndata: {}\n\n", &format!("data: {it}\n\n")], end())).await;
    check(|it| stream(&[&format!("data: {}\n\n", it.replacen(',', "\ndata: ,\ndata:", 1))], end())).await;
    check(|it| {
        stream(
            &it.split_inclusive(':').fold(vec!["data: "], |mut all, it| {
                all.push(it);
                all
            }),
            stream_tail(),
        )
    })
    .await;
    // The empty line is missing, and the end is clean.
    check(|it| stream(&[&format!("data: {it}\n")], end())).await;
    // The server keeps the stream open, which is none of the caller's business.
    check(|it| stream(&[&format!("data: {it}\n\n")], vec![Step::WaitForClose])).await;
    check(|it| reply(200, "Content-Type: Text/Event-Stream; charset=utf-8\r\n", format!("data: {it}\n\n")))
        .await;
    check(|it| reply(200, "Content-Type: text/plain\r\n", it)).await;
    check(|it| json_reply(format!("[{it}]"))).await;
}

fn stream_tail() -> Reply {
    let mut steps = vec![Step::Write(b"2\r\n\n\n\r\n".to_vec())];
    steps.extend(end());
    steps
}

#[tokio::test(start_paused = true)]
async fn silent_stream_times_out() {
    let peer =
        Peer::start(|request| modern(request, |_| stream(&[": hello\n\n"], vec![Step::WaitForClose]))).await;
    let mut limits = Limits::default();
    limits.sse_read = Duration::from_secs(7);
    let session =
        TestClient { limits: Some(limits), ..TestClient::default() }.connect(&peer.url).await.unwrap();
    let error = call(&session).await.unwrap_err();
    assert!(error.to_string().contains("nothing was received on the stream for 7 s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn stream_with_event_ids_is_resumed() {
    let peer = Peer::start(|request| match (request.kind().as_str(), request.header("last-event-id")) {
        ("tools/call", _) => stream(&["retry: 700\nid: e-1\ndata:\n\n"], end()),
        ("GET", "e-1") => {
            // Breaks off, after one more event.
            stream(
                &["id: e-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"],
                vec![Step::Close],
            )
        }
        // The id of the one and only call.
        ("GET", "e-2") => stream(&[&format!("id: e-3\ndata: {}\n\n", answer_to_first_call())], end()),
        ("GET", _) => reply(405, "", ""),
        _ => legacy(request, "s", |_| vec![]),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    let resumed: Vec<ReceivedRequest> =
        peer.received().into_iter().filter(|request| !request.header("last-event-id").is_empty()).collect();
    assert_eq!(resumed.len(), 2);
    assert_eq!(resumed[0].header("mcp-session-id"), "s");
    let waited = resumed[0].at - peer.first("tools/call").at;
    assert!((Duration::from_millis(700)..Duration::from_millis(900)).contains(&waited), "{waited:?}");
    assert_eq!(peer.count("tools/call"), 1);
}

/// `initialize` has the first id, the call the second: ids count up in steps of 2^16.
fn answer_to_first_call() -> String {
    json!({"jsonrpc": "2.0", "id": 2 << 16, "result": {"content": [{"type": "text", "text": "hello"}]}})
        .to_string()
}

#[tokio::test(start_paused = true)]
async fn stream_that_cannot_be_resumed_is_lost() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "tools/call" => stream(&["id: e-1\ndata:\n\n"], end()),
        "GET" if request.header("last-event-id").is_empty() => reply(405, "", ""),
        "GET" => reply(503, "", ""),
        _ => legacy(request, "s", |_| vec![]),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let error = call(&session).await.unwrap_err();
    assert!(matches!(error, CallError::OutcomeUnknown(_)), "{error}");
    assert_eq!(peer.count("GET"), 1 + 5);
}

/// The number of GETs within 4 s to a server whose GETs end like this.
async fn gets(seconds: u64, listened: fn() -> Reply) -> usize {
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "GET" => listened(),
        _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    // Whatever became of the stream, calls do not notice.
    assert_eq!(call(&session).await.unwrap(), "hello");
    peer.count("GET")
}

#[tokio::test(start_paused = true)]
async fn listening_retries_with_backoff() {
    assert_eq!(gets(600, || reply(405, "", "")).await, 1);
    assert_eq!(gets(600, || reply(200, "Content-Type: text/html\r\n", "<html>")).await, 1);
    assert_eq!(gets(4, || stream(&["data: {\"cut"], vec![Step::Close])).await, 3);
    assert_eq!(gets(4, || stream(&["retry: 0\n\n"], end())).await, 4);
    assert_eq!(gets(4, || reply(500, "", "")).await, 3);
    assert_eq!(gets(4, || vec![Step::Close]).await, 3);
    // RPT-063
    assert_eq!(gets(25, || reply(429, "Retry-After: 30\r\n", "")).await, 1);
    assert_eq!(gets(65, || reply(503, "Retry-After: 30\r\n", "")).await, 3);
    // A minute apart at most, for a server may come back.
    let many = gets(600, || reply(500, "", "")).await;
    assert!((10..=16).contains(&many), "{many}");
}

#[tokio::test]
async fn unsolicited_messages_are_delivered() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "GET" => {
            let changed =
                "id: 5\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
            stream(&[changed], vec![Step::WaitForClose])
        }
        _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let mut changes = session.list_changes();
    tokio::time::timeout(Duration::from_secs(5), changes.wait_for(|it| it.tools == 1))
        .await
        .unwrap()
        .unwrap();
    session.close(Duration::from_secs(1)).await;
    wait_until(|| peer.closed_by_client() == 1).await;
    assert_eq!(peer.count("DELETE"), 1);
}

#[tokio::test(start_paused = true)]
async fn listening_stream_is_resumed() {
    let peer = Peer::start(|request| match (request.kind().as_str(), request.header("last-event-id")) {
        ("GET", "") => {
            let changed =
                "id: 5\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
            stream(&[changed], end())
        }
        ("GET", _) => stream(&[], vec![Step::WaitForClose]),
        _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
    })
    .await;
    let _session = TestClient::legacy().connect(&peer.url).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let received: Vec<String> = peer
        .received()
        .iter()
        .filter(|request| request.verb == "GET")
        .map(|request| request.header("last-event-id").to_owned())
        .collect();
    assert_eq!(received, ["", "5"]);
}

#[tokio::test]
async fn response_on_another_stream_ends_the_expected_one() {
    // The first call's response never says anything; its answer comes with the second call's.
    let first = std::sync::Mutex::new(None);
    let peer = Peer::start(move |request| {
        modern(request, |request| match first.lock().unwrap().replace(request.clone()) {
            None => stream(&[": wait\n\n"], vec![Step::WaitForClose]),
            Some(waiting) => {
                let both = [tool_result(&waiting, "for the first"), tool_result(request, "for the second")];
                stream(&both.map(|it| format!("data: {it}\n\n")).each_ref().map(String::as_str), end())
            }
        })
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    let later = async {
        wait_until(|| peer.count("tools/call") == 1).await;
        call(&session).await.unwrap()
    };
    let (first, second) = tokio::join!(call(&session), later);
    assert_eq!((first.unwrap().as_str(), second.as_str()), ("for the first", "for the second"));
    wait_until(|| peer.closed_by_client() == 1).await;
    assert_eq!(peer.summary(), "server/discover tools/call tools/call");
}

#[tokio::test]
async fn response_on_the_listening_stream_ends_the_expected_one() {
    let peer = Peer::start(move |request| match request.kind().as_str() {
        // The id of the one and only call.
        "GET" => stream(
            &[],
            vec![
                Step::Wait(Duration::from_millis(200)),
                Step::Write(chunk(&format!("data: {}\n\n", answer_to_first_call()))),
                Step::WaitForClose,
            ],
        ),
        "tools/call" => vec![Step::WaitForClose],
        _ => legacy(request, "s", |_| vec![]),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    wait_until(|| peer.closed_by_client() == 1).await;
    assert_eq!(peer.count("notifications/cancelled"), 0, "it was answered: {}", peer.summary());
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into()
}
