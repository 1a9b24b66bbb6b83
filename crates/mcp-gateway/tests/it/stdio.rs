//! The stdio transport, in both eras.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_gateway::{Bounds, Gateway, GatewayOptions, serve_stdio};
use mcp_host_model::code;
use mcp_host_registry::ToolBudget;
use mcp_testkit::wait::wait_until;
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::{TestServers, host, initialize, modern, server, starting_host};

/// A client of a gateway that serves stdio, connected by an in-memory pipe.
struct StdioClient {
    servers: Arc<TestServers>,
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<()>,
}

impl StdioClient {
    async fn new() -> StdioClient {
        StdioClient::with_bounds({
            let mut bounds = Bounds::default();
            bounds.message_bytes = 4000;
            bounds
        })
        .await
    }

    async fn with_bounds(bounds: Bounds) -> StdioClient {
        let servers: Arc<TestServers> = Arc::default();
        let host = host(&servers, vec![server("demo"), server("own")]).await;
        wait_until(|| servers.demo.open() == 1).await;
        let mut options = GatewayOptions::default();
        options.bounds = bounds;
        StdioClient::of_gateway(servers, Gateway::new(host, options))
    }

    fn of_gateway(servers: Arc<TestServers>, gateway: Gateway) -> StdioClient {
        let (near, far) = duplex(1 << 16);
        let (input, output) = split(far);
        let serving = tokio::spawn(async move { serve_stdio(&gateway, input, output).await });
        let (read, write) = split(near);
        StdioClient { servers, write, lines: BufReader::new(read).lines(), serving }
    }

    async fn send(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next message that has no method: a response.
    async fn next_response(&mut self) -> Value {
        loop {
            let line = self.lines.next_line().await.unwrap().unwrap();
            let value: Value = serde_json::from_str(&line).unwrap();
            if value.get("method").is_none() {
                return value;
            }
        }
    }

    /// The next notification of this method.
    async fn next_notification(&mut self, method: &str) -> Value {
        loop {
            let line = self.lines.next_line().await.unwrap().unwrap();
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["method"] == method {
                return value;
            }
        }
    }

    /// Closes the input, and checks that the gateway then ends without another message.
    async fn close(mut self) {
        self.write.shutdown().await.unwrap();
        self.serving.await.unwrap();
        assert_eq!(self.lines.next_line().await.unwrap(), None);
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"demo__echo","arguments":{"text":"a"}}}"#;

// RPT-060
#[tokio::test(start_paused = true)]
async fn silent_server_delays_a_new_client_for_two_seconds() {
    let servers: Arc<TestServers> = Arc::default();
    let configured = vec![server("demo"), server("mute")];
    let host = starting_host(&servers, configured, ToolBudget::default()).await;
    let mut client = StdioClient::of_gateway(servers, Gateway::new(host, GatewayOptions::default()));
    let begun = Instant::now();
    client.send(&initialize("2025-06-18")).await;
    client.next_response().await;
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    let tools = client.next_response().await;
    assert!(!tools["result"]["tools"].as_array().unwrap().is_empty());
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn legacy_client_continues_after_invalid_lines_and_cancelled_calls() {
    let mut client = StdioClient::new().await;
    client.send(CALL).await;
    assert_eq!(client.next_response().await["error"]["code"].as_i64(), Some(code::SERVER_ERROR));
    client.send(&initialize("2025-06-18")).await;
    assert_eq!(client.next_response().await["result"]["protocolVersion"], "2025-06-18");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.send(CALL).await;
    let response = client.next_response().await;
    assert_eq!((&response["id"], &response["result"]["content"][0]["text"]), (&"c".into(), &"a".into()));
    // An oversized line, invalid JSON and an empty line are followed by valid messages.
    client.send(&"x".repeat(5000)).await;
    assert_eq!(client.next_response().await["error"]["code"].as_i64(), Some(code::INVALID_REQUEST));
    client.send("\n{").await;
    assert_eq!(client.next_response().await["error"]["code"].as_i64(), Some(code::PARSE_ERROR));

    // A cancelled call has no response, and its id is free again.
    let sleep = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"demo__sleep","arguments":{"ms":60000,"steps":1}}}"#;
    client.send(sleep).await;
    client.send(sleep).await;
    assert_eq!(client.next_response().await["error"]["code"].as_i64(), Some(code::INVALID_REQUEST));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#).await;
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(client.next_response().await["id"], 2);
    client.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"demo__change_tools","arguments":{"name":"x"}}}"#).await;
    client.next_notification("notifications/tools/list_changed").await;
    client.close().await;
}

#[tokio::test]
async fn modern_client_needs_no_dialog_name_and_gets_tagged_notifications() {
    let mut client = StdioClient::new().await;
    let before = client.servers.demo.open();
    let message = |method, params| modern(method, None, params).1;
    client.send(&message("server/discover", "")).await;
    assert_eq!(client.next_response().await["result"]["resultType"], "complete");
    client.send(&message("initialize", "")).await;
    assert_eq!(client.next_response().await["error"]["code"].as_i64(), Some(code::METHOD_NOT_FOUND));
    // The connection is a dialog, so leased servers need no dialog name.
    client.send(&message("tools/call", r#""name":"own__echo","arguments":{"text":"a"}"#)).await;
    assert_eq!(client.next_response().await["result"]["content"][0]["text"], "a");
    assert_eq!(client.servers.demo.open(), before + 1);
    let listen = message("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#)
        .replace("\"id\":1", "\"id\":9");
    client.send(&listen).await;
    let notification = client.next_notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(notification["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 9);
    client.send(&message("tools/call", r#""name":"demo__change_tools","arguments":{"name":"x"}"#)).await;
    let notification = client.next_notification("notifications/tools/list_changed").await;
    assert_eq!(notification["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 9);
    client.close().await;
}

#[tokio::test]
async fn client_that_does_not_read_is_ended() {
    let send_timeout = std::time::Duration::from_millis(300);
    let client = StdioClient::with_bounds({
        let mut bounds = Bounds::default();
        bounds.send_timeout = send_timeout;
        bounds.requests_per_client = 4;
        bounds
    })
    .await;
    let StdioClient { mut write, lines, serving, servers: _servers } = client;
    write.write_all(format!("{}\n", initialize("2025-06-18")).as_bytes()).await.unwrap();
    let writing = async {
        for id in 1..3000 {
            let list = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
            if write.write_all(list.as_bytes()).await.is_err() {
                break;
            }
        }
        // At this point the gateway has already disconnected the client.
        drop(write);
    };
    let ended =
        tokio::time::timeout(std::time::Duration::from_secs(30), async { tokio::join!(writing, serving).1 });
    assert!(ended.await.is_ok_and(|it| it.is_ok()));
    drop(lines);
}
