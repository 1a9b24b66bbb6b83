//! The example of rmcp's client over a transport of ours.

#[path = "../../examples/websocket_client.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod websocket_client;

#[tokio::test(flavor = "multi_thread")]
async fn example_calls_a_tool_and_gets_an_error_when_the_server_ends() {
    let [sum, error, disconnect] = websocket_client::run().await.unwrap();
    assert_eq!(sum, r#"{"sum":5}"#);
    // Either the end of the transport, or the error that the request gets before it.
    assert!(error.starts_with("Transport") || error.contains("no longer available"), "{error}");
    // The code of an orderly end.
    assert!(disconnect.contains("1001"), "{disconnect}");
}
