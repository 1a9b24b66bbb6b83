//! Notifications outside of requests: log messages of shared servers, and changed lists.

use std::time::Duration;

use mcp_host_gateway::{GatewayOptions, HttpOptions, Tokens};
use mcp_host_model::{NameTransform, Secret};
use mcp_host_runtime::DesiredServers;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{TestGateway, server};

/// Reads a stream until it has `text`; false if it does not arrive in time.
async fn wait_for_text(stream: &mut TcpStream, received: &mut String, text: &str, limit: Duration) -> bool {
    let read = async {
        let mut bytes = [0; 4096];
        while !received.contains(text) {
            let length = stream.read(&mut bytes).await.unwrap();
            assert!(length > 0, "{received}");
            received.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    };
    timeout(limit, read).await.is_ok()
}

/// Expects whether a client that set the level `warning` gets log messages of a shared server outside of its calls.
async fn check_logs(tokens: &str, headers: &[(&str, &str)], want: bool) {
    let tokens = Tokens::read(&Secret::new(tokens.to_owned())).unwrap();
    let mut options = HttpOptions::default();
    options.tokens = tokens;
    let servers = vec![server("demo"), server("old")];
    let fixture = TestGateway::with_servers(servers, GatewayOptions::default(), options).await;
    let session = fixture.initialize(headers).await;
    let mut headers = headers.to_vec();
    headers.push(("mcp-session-id", &session));
    let mut stream = fixture.open_stream("GET", &headers, "").await;
    let log = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"old__say","arguments":{"log":["info","error"]}}}"#;
    let mut received = String::new();
    // A client that set no level asked for nothing.
    assert_eq!(fixture.post(&headers, log).await.status, 200);
    assert!(!wait_for_text(&mut stream, &mut received, "later", Duration::from_millis(300)).await);
    let level = r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}"#;
    assert_eq!(fixture.post(&headers, level).await.status, 200);
    assert_eq!(fixture.post(&headers, log).await.status, 200);
    let limit = if want { Duration::from_secs(30) } else { Duration::from_millis(300) };
    assert_eq!(
        wait_for_text(&mut stream, &mut received, r#""level":"error""#, limit).await,
        want,
        "{received}"
    );
    assert!(!received.contains(r#""level":"info""#), "{received}");
    drop(stream);
    fixture.end().await;
}

// RPT-153
#[tokio::test]
async fn log_message_of_a_shared_server_reaches_clients_that_count_as_one() {
    check_logs("", &[], true).await;
}

// RPT-153
#[tokio::test]
async fn log_message_of_a_shared_server_reaches_no_client_with_a_token() {
    check_logs("ann-0123456789abcdef", &[("authorization", "Bearer ann-0123456789abcdef")], false).await;
}

// RPT-207
#[tokio::test]
async fn lists_are_notified_once_they_have_settled() {
    let fixture = TestGateway::new().await;
    let session = fixture.initialize(&[]).await;
    let mut stream = fixture.open_stream("GET", &[("mcp-session-id", &session)], "").await;
    let mut received = String::new();
    let apply = async |prefix: &str| {
        let mut renamed = server("demo");
        if !prefix.is_empty() {
            let add = prefix.to_owned();
            renamed.spec.exposure.tools.transforms =
                vec![NameTransform::Prefix { remove: String::new(), add }];
        }
        fixture.host.apply(DesiredServers::new(vec![renamed, server("own")])).await;
    };
    // The tools are the same again before the client is notified.
    apply("new_").await;
    apply("").await;
    let changed = "notifications/tools/list_changed";
    assert!(
        !wait_for_text(&mut stream, &mut received, changed, Duration::from_millis(500)).await,
        "{received}"
    );
    apply("a_").await;
    apply("b_").await;
    apply("c_").await;
    assert!(wait_for_text(&mut stream, &mut received, changed, Duration::from_secs(30)).await, "{received}");
    assert!(!wait_for_text(&mut stream, &mut received, "end", Duration::from_millis(300)).await);
    assert_eq!(received.matches("list_changed").count(), 1, "{received}");
    drop(stream);
    fixture.end().await;
}
