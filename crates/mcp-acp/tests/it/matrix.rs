//! A table of accepted and refused transports by version, declared capabilities and method (ACP-033).

use crate::{error_json, raw, request};
use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, ServerSetEffect, SessionMethod, SessionRequestError, validate,
};

/// A valid entry of each transport, with the `type` that both versions accept.
const ENTRIES: &[(&str, &str)] = &[
    ("stdio", r#"{"type":"stdio","name":"a","command":"/a","args":[],"env":[]}"#),
    ("http", r#"{"type":"http","name":"a","url":"https://a.example","headers":[]}"#),
    ("sse", r#"{"type":"sse","name":"a","url":"https://a.example","headers":[]}"#),
    ("acp", r#"{"type":"acp","name":"a","serverId":"1"}"#),
    ("_pigeon", r#"{"type":"_pigeon","name":"a","loft":7}"#),
    ("websocket", r#"{"type":"websocket","name":"a","command":"/a","args":[],"env":[]}"#),
];

/// Checks that an agent with these capabilities accepts these transports, and refuses the others with the right
/// message.
#[track_caller]
fn check(version: AcpVersion, declared: &str, accepted: &str) {
    let capabilities = Capabilities::read(version, &raw(declared));
    for &method in SessionMethod::ALL {
        for (transport, entry) in ENTRIES {
            let row = format!("{declared} {version:?} {} {transport}", method.as_str());
            let result =
                validate(&request(method, &format!("[{entry}]")), &AgentProfile::new(version, &capabilities));
            if version == AcpVersion::V2 && method == SessionMethod::Load {
                assert!(matches!(result, Err(SessionRequestError::MethodNotFound { .. })), "{row}");
                continue;
            }
            if accepted.split(' ').any(|it| it == *transport) {
                let result = result.unwrap_or_else(|it| panic!("{row}: {it}"));
                let servers: Vec<_> = result.servers.iter().map(|it| it.transport().to_string()).collect();
                assert_eq!((servers, result.warnings), (vec![(*transport).to_owned()], Vec::new()), "{row}");
                continue;
            }
            let refusal = result.expect_err(&row);
            let data = &error_json(&refusal)["data"];
            assert_eq!(refusal.to_string(), refusal_message(version, transport), "{row}");
            assert_eq!(data["errors"].as_array().map(Vec::len), Some(1), "{row}");
            assert_eq!(data["errors"][0]["pointer"], "/params/mcpServers/0/type", "{row}");
            assert_eq!(data["requestedTransport"], *transport, "{row}");
            assert_eq!(data["declaredCapability"], false, "{row}");
        }
    }
}

/// The message of the error for this transport, if it was not declared.
fn refusal_message(version: AcpVersion, transport: &str) -> &'static str {
    match (version, transport) {
        (AcpVersion::V1, "http") => {
            "HTTP transport not supported: agent did not declare mcpCapabilities.http"
        }
        (AcpVersion::V1, "sse") => "SSE transport not supported: agent did not declare mcpCapabilities.sse",
        (AcpVersion::V1, "acp") => "ACP transport not supported: agent did not declare mcpCapabilities.acp",
        (AcpVersion::V1, "_pigeon") => {
            "Invalid mcpServers: MCP server 'a': '_pigeon' transport not supported: protocol version 1 has no such \
            transport"
        }
        (AcpVersion::V1, _) => {
            "Invalid mcpServers: MCP server 'a': 'websocket' transport not supported: protocol version 1 has no such \
            transport"
        }
        (AcpVersion::V2, "stdio") => "STDIO transport not supported: agent did not declare session.mcp.stdio",
        (AcpVersion::V2, "http") => "HTTP transport not supported: agent did not declare session.mcp.http",
        (AcpVersion::V2, "acp") => "ACP transport not supported: agent did not declare session.mcp.acp",
        (AcpVersion::V2, "sse") => "SSE transport not supported: protocol version 2 has no such transport",
        (AcpVersion::V2, "_pigeon") => {
            "Invalid mcpServers: MCP server 'a': '_pigeon' transport not supported: agent did not declare \
            session.mcp._pigeon"
        }
        (AcpVersion::V2, _) => {
            "Invalid mcpServers: MCP server 'a': 'websocket' transport not supported: protocol version 2 has no such \
            transport"
        }
    }
}

#[test]
fn acp_001_acp_015_acp_016_acp_033_acp_039_version_1_accepts_declared_transports() {
    let check = |declared, accepted| check(AcpVersion::V1, declared, accepted);
    check("{}", "stdio");
    check(r#"{"http":true}"#, "stdio http");
    check(r#"{"sse":true}"#, "stdio sse");
    check(r#"{"acp":true}"#, "stdio acp");
    check(r#"{"http":true,"sse":true}"#, "stdio http sse");
    check(r#"{"http":true,"acp":true}"#, "stdio http acp");
    check(r#"{"sse":true,"acp":true}"#, "stdio sse acp");
    check(r#"{"http":true,"sse":true,"acp":true,"_pigeon":true}"#, "stdio http sse acp");
    check(r#"{"http":"true","sse":1,"acp":null}"#, "stdio");
}

#[test]
fn acp_033_acpx_11_version_2_accepts_declared_transports() {
    let check = |declared, accepted| check(AcpVersion::V2, declared, accepted);
    check("{}", "");
    check(r#"{"stdio":{}}"#, "stdio");
    check(r#"{"http":{}}"#, "http");
    check(r#"{"acp":{}}"#, "acp");
    check(r#"{"stdio":{},"http":{}}"#, "stdio http");
    check(r#"{"stdio":{},"acp":{}}"#, "stdio acp");
    check(r#"{"http":{},"acp":{}}"#, "http acp");
    check(r#"{"stdio":{},"http":{},"acp":{},"sse":{},"_pigeon":{}}"#, "stdio http acp _pigeon");
    check(r#"{"stdio":true,"http":null,"acp":[]}"#, "");
}

#[test]
fn acpx_10_later_requests_replace_the_servers() {
    for (method, effect) in [
        (SessionMethod::New, ServerSetEffect::Initial),
        (SessionMethod::Load, ServerSetEffect::Replacement),
        (SessionMethod::Resume, ServerSetEffect::Replacement),
        (SessionMethod::Fork, ServerSetEffect::Initial),
    ] {
        assert_eq!(
            crate::validate_with_all(AcpVersion::V1, &request(method, "[]")).unwrap().server_set_effect,
            effect
        );
    }
}
