//! Resuming a session's notification stream with `Last-Event-ID`.

use std::time::Duration;

use mcp_host_model::NameTransform;
use mcp_host_runtime::DesiredServers;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{TestGateway, initialize, server};

/// An open stream of events, and what was read from it.
pub(crate) struct Stream {
    stream: TcpStream,
    pub(crate) text: String,
}

impl Stream {
    pub(crate) async fn open(fixture: &TestGateway, session: &str, headers: &[(&str, &str)]) -> Stream {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\
            {headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Stream { stream, text: String::new() }
    }

    /// A stream that is the response to this request.
    pub(crate) async fn from_post(fixture: &TestGateway, headers: &[(&str, &str)], body: &str) -> Stream {
        Stream { stream: fixture.open_stream("POST", headers, body).await, text: String::new() }
    }

    /// Reads until `text` contains `what`. Returns the ids of all events so far.
    pub(crate) async fn read_until(&mut self, what: &str) -> Vec<String> {
        let reading = async {
            while !self.text.contains(what) {
                let mut part = [0; 4096];
                let read = self.stream.read(&mut part).await.unwrap();
                assert!(read > 0, "{what} in {}", self.text);
                self.text.push_str(str::from_utf8(&part[..read]).unwrap());
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(30), reading).await;
        assert!(ended.is_ok(), "{what} in {}", self.text);
        self.text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
    }
}

/// Renames the tools by a reload.
async fn rename_tools(fixture: &TestGateway, prefix: &str) {
    let mut renamed = server("demo");
    renamed.spec.exposure.tools.transforms =
        vec![NameTransform::Prefix { remove: String::new(), add: prefix.into() }];
    fixture.host.apply(DesiredServers::new(vec![renamed, server("own")])).await;
}

#[tokio::test]
async fn resumed_stream_receives_missed_events() {
    let fixture = TestGateway::new().await;
    let session = fixture.initialize(&[]).await;
    let changed = "notifications/tools/list_changed";
    let mut stream = Stream::open(&fixture, &session, &[]).await;
    assert_eq!(stream.read_until("id: 1-0\ndata: \n\n").await, ["1-0"]);
    rename_tools(&fixture, "a_").await;
    assert_eq!(stream.read_until(changed).await[..2], ["1-0", "1-1"]);

    // A lost event is repeated, and later events follow it. A replaced stream receives nothing more.
    let mut again = Stream::open(&fixture, &session, &[("last-event-id", "1-0")]).await;
    assert_eq!(again.read_until("id: 1-1").await[..2], ["1-0", "1-1"]);
    // The connection stays usable: the last chunk ends the stream.
    let before = stream.text.matches(changed).count();
    stream.read_until("\r\n0\r\n\r\n").await;
    assert_eq!(stream.text.matches(changed).count(), before, "{}", stream.text);
    drop(again);

    // A change while no stream was open is reported once to the next one.
    let listening = Stream::open(&fixture, &session, &[("last-event-id", "1-1")]).await;
    drop(listening);
    rename_tools(&fixture, "b_").await;
    let mut third = Stream::open(&fixture, &session, &[("last-event-id", "1-1")]).await;
    let ids = third.read_until("id: 1-2").await;
    assert_eq!(ids[0], "1-1", "{ids:?}");

    // A new stream has its own ids, also after an unknown id.
    for (last, begins) in [(None, "id: 2-0"), (Some("1-1"), "id: 3-0"), (Some("x"), "id: 4-0")] {
        let last: Vec<_> = last.map(|it| ("last-event-id", it)).into_iter().collect();
        let mut new_stream = Stream::open(&fixture, &session, &last).await;
        new_stream.read_until(begins).await;
        assert!(!new_stream.text.contains("id: 1-"), "{}", new_stream.text);
    }
    fixture.end().await;
}

#[tokio::test]
async fn older_clients_receive_no_event_without_data() {
    let fixture = TestGateway::new().await;
    let reply = fixture.post(&[], &initialize("2025-06-18")).await;
    let session = reply.header("mcp-session-id").unwrap();
    let mut stream = Stream::open(&fixture, &session, &[]).await;
    stream.read_until(": \n\n").await;
    rename_tools(&fixture, "a_").await;
    assert_eq!(stream.read_until("notifications/tools/list_changed").await[0], "1-1");
    assert!(!stream.text.contains("data: \n"), "{}", stream.text);
    fixture.end().await;
}
