//! Refusals to the letter, members in the order in which they are sent.

use super::*;

/// The error as it is sent, a member a line.
fn error(refused: &[(&str, TransportKind)], supported: &[TransportKind]) -> String {
    let refusal = |(name, transport): &(&str, TransportKind)| Refusal {
        server_name: (*name).to_owned(),
        transport: *transport,
    };
    let invalid = InvalidParams::new(refused.iter().map(refusal).collect(), supported.to_vec());
    let text = serde_json::to_string(&invalid.expect("something is refused")).unwrap();
    text.replace(",\"", ",\n\"").replace("},{", "},\n{")
}

#[test]
fn acp_027_acp_028_http_is_refused_to_the_letter() {
    insta::assert_snapshot!(error(&[("api-server", TransportKind::Http)], &[TransportKind::Stdio]), @r#"
    {"code":-32602,
    "message":"HTTP transport not supported: agent did not declare mcpCapabilities.http",
    "data":{"requestedTransport":"http",
    "declaredCapability":false,
    "supportedTransports":["stdio"],
    "serverName":"api-server",
    "errors":[{"message":"HTTP transport not supported: agent did not declare mcpCapabilities.http",
    "serverName":"api-server",
    "requestedTransport":"http"}]}}
    "#);
}

#[test]
fn acp_029_sse_is_refused_to_the_letter() {
    let supported = [TransportKind::Stdio, TransportKind::Http];
    insta::assert_snapshot!(error(&[("event-stream", TransportKind::Sse)], &supported), @r#"
    {"code":-32602,
    "message":"SSE transport not supported: agent did not declare mcpCapabilities.sse",
    "data":{"requestedTransport":"sse",
    "declaredCapability":false,
    "supportedTransports":["stdio",
    "http"],
    "serverName":"event-stream",
    "errors":[{"message":"SSE transport not supported: agent did not declare mcpCapabilities.sse",
    "serverName":"event-stream",
    "requestedTransport":"sse"}]}}
    "#);
}

#[test]
fn acp_048_the_first_refusal_speaks_and_all_are_listed() {
    let refused = [("chat", TransportKind::WebSocket), ("api", TransportKind::Http)];
    insta::assert_snapshot!(error(&refused, &[TransportKind::Stdio]), @r#"
    {"code":-32602,
    "message":"WebSocket transport not supported: ACP has no such transport",
    "data":{"requestedTransport":"websocket",
    "declaredCapability":false,
    "supportedTransports":["stdio"],
    "serverName":"chat",
    "errors":[{"message":"WebSocket transport not supported: ACP has no such transport",
    "serverName":"chat",
    "requestedTransport":"websocket"},
    {"message":"HTTP transport not supported: agent did not declare mcpCapabilities.http",
    "serverName":"api",
    "requestedTransport":"http"}]}}
    "#);
}

#[test]
fn without_a_refusal_there_is_no_error() {
    assert_eq!(InvalidParams::new(Vec::new(), vec![TransportKind::Stdio]), None);
}
