//! The SDK's client over real processes that misbehave.

use super::*;
use mcp_testkit::servers::{shell_script, shell_server};

/// Calls a tool that runs this script twice. Returns the outcomes.
async fn twice(tool: &str) -> [String; 2] {
    let client = serve(&Endpoint::Stdio(shell_server(tool))).await.unwrap();
    let message = |it: Result<String, ServiceError>| it.unwrap_or_else(|error| error.to_string());
    let res = [message(call(&client).await), message(call(&client).await)];
    client.cancel().await.unwrap();
    res
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let client = serve(&Endpoint::Stdio(shell_server(r#"text "$id" hello"#))).await.unwrap();
    assert_eq!(client.peer_info().unwrap().server_info.as_ref().unwrap().name, "sh");
    assert_eq!(client.list_all_tools().await.unwrap()[0].name, "t");
    assert_eq!(call(&client).await.unwrap(), "hello");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn unreadable_response_fails_its_request_only() {
    // An error whose code is not an integer. Without our transport, the SDK drops it and the request hangs.
    let odd = r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":"E_NOPE","message":"odd"}}\n' "$id""#;
    let [first, second] = twice(odd).await;
    assert!(first.contains("odd"), "{first}");
    assert_eq!(first, second);
    // A result of the wrong type, and an error without an id: both end the call.
    let [first, _] = twice(r#"answer "$id" 7"#).await;
    assert!(!first.is_empty());
}

#[tokio::test]
async fn too_long_line_ends_the_connection_with_a_message() {
    let long = r#"head -c 3000000 /dev/zero | tr '\0' x; echo; exit 3"#;
    let [first, second] = twice(long).await;
    assert!(first.contains("no longer available"), "{first}");
    assert!(!second.is_empty());
}

#[tokio::test]
async fn exit_during_a_call_is_reported_with_standard_error() {
    let [first, _] = twice("echo 'out of cheese' >&2; exit 7").await;
    assert!(
        first.contains("exit status") && first.contains('7') && first.contains("out of cheese"),
        "{first}"
    );
}

#[tokio::test]
async fn grandchild_that_holds_the_pipe_delays_no_request() {
    let [first, _] = twice("sleep 600 & exit 5").await;
    assert!(first.contains("no longer available"), "{first}");
}

#[tokio::test]
async fn exit_before_the_handshake_is_reported_with_evidence() {
    let error =
        serve(&Endpoint::Stdio(shell_script("echo 'no key' >&2; exit 4"))).await.err().unwrap().to_string();
    assert!(error.contains("no key") && error.contains('4'), "{error}");
    let gone = serve(&Endpoint::Stdio(mcp_host_model::StdioEndpoint::new("no-such-program-at-all"))).await;
    let error = gone.err().unwrap().to_string();
    assert!(error.contains("the command was not found"), "{error}");
}

#[tokio::test]
async fn silent_server_times_out_and_is_killed() {
    let mut options = RmcpOptions::default();
    options.handshake = Duration::from_millis(50);
    options.grace = Duration::from_millis(50);
    let transport = RmcpTransport::new(&*dial(&Endpoint::Stdio(shell_script("exec sleep 600"))), options);
    let ended = transport.disconnected();
    let error = ().serve(transport).await.err().unwrap().to_string();
    assert!(error.contains("did not answer within 0.05 s"), "{error}");
    ended.await;
}

#[tokio::test]
async fn close_of_a_server_that_does_not_read_ends_after_the_grace_period() {
    let client = serve(&Endpoint::Stdio(shell_server("exec sleep 600"))).await.unwrap();
    let peer = client.peer().clone();
    let waiting = tokio::spawn(async move { peer.call_tool(CallToolRequestParams::new("t")).await });
    client.cancel().await.unwrap();
    assert!(waiting.await.unwrap().is_err());
}
