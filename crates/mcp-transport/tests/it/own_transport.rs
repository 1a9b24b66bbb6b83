//! The example of a transport of one's own conforms to the contract.

#[path = "../../examples/own_transport.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod example;

#[tokio::test]
async fn example_transport_conforms() {
    #[cfg(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
    let _running = crate::conformance::TABLE.lock().await;
    example::check().await;
}
