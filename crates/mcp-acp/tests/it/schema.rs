//! Conversions between our types and the official ones of the schema, in both directions (feature `schema`).

use agent_client_protocol_schema::{v1, v2};
use mcp_host_acp::{
    AcpTransport, AcpVersion, AgentProfile, Capabilities, ServerStartError, ServerStartErrorKind,
    SessionMethod, SessionRequest, SessionRequestError, ValidatedRequest, validate,
};
use mcp_host_model::{RawJson, RpcError};
use serde_json::{Value, json};

fn all_capabilities() -> Capabilities {
    let mut capabilities = Capabilities::STDIO;
    capabilities.http = true;
    capabilities.sse = true;
    capabilities.acp = true;
    capabilities.custom = vec!["_pigeon".to_owned()];
    capabilities
}

fn validated(version: AcpVersion, method: SessionMethod, params: &Value) -> ValidatedRequest {
    let request = SessionRequest::new(method, RawJson::from_value(params).unwrap());
    validate(&request, &AgentProfile::new(version, &all_capabilities())).unwrap()
}

/// Entries of version 1 with every member that the schema has.
fn entries() -> Value {
    json!([
        {"name": "files", "command": "/opt/files", "args": ["--all"], "env": [{"name": "KEY", "value": "v"}],
            "_meta": {"a": [1]}},
        {"type": "http", "name": "api", "url": "https://api.example/mcp", "headers": [{"name": "X-Key", "value": "v"}]},
        {"type": "sse", "name": "events", "url": "https://events.example/sse", "headers": [], "_meta": {"b": null}},
        {"type": "acp", "name": "editor", "serverId": "server-1"},
    ])
}

#[test]
fn acp_004_acp_005_acp_006_acpx_12_version_1_server_round_trips() {
    let params = json!({"cwd": "/desk", "mcpServers": entries()});
    let validated = validated(AcpVersion::V1, SessionMethod::New, &params);
    let official: Vec<v1::McpServer> = validated.servers.iter().map(|it| it.try_into().unwrap()).collect();
    assert_eq!(serde_json::to_value(&official).unwrap(), entries());
    let typed = v1::NewSessionRequest::new("/desk").mcp_servers(official);
    assert_eq!(SessionRequest::from(&typed).params.read::<Value>().unwrap(), params);
}

#[test]
fn acpx_11_version_2_server_round_trips_with_extensions() {
    let entries = json!([
        {"type": "stdio", "name": "files", "command": "/opt/files", "env": [{"name": "KEY", "value": "v"}]},
        {"type": "http", "name": "api", "url": "https://api.example/mcp", "_meta": {"a": 1}},
        {"type": "acp", "name": "editor", "serverId": "server-1"},
        {"type": "_pigeon", "name": "loft", "ring": {"left": true}, "_meta": {"b": 2}},
    ]);
    let params = json!({"cwd": "/desk", "mcpServers": entries});
    let validated = validated(AcpVersion::V2, SessionMethod::New, &params);
    let official: Vec<v2::McpServer> = validated.servers.iter().map(|it| it.try_into().unwrap()).collect();
    assert_eq!(serde_json::to_value(&official).unwrap(), entries);
    let typed = v2::NewSessionRequest::new("/desk").mcp_servers(official);
    assert_eq!(SessionRequest::from(&typed).params.read::<Value>().unwrap(), params);
}

#[test]
fn acpx_11_values_that_a_version_cannot_express_are_reported() {
    let params = json!({"cwd": "/desk", "mcpServers": [
        {"type": "sse", "name": "events", "url": "https://events.example/sse?SECRET", "headers": []},
    ]});
    let sse = validated(AcpVersion::V1, SessionMethod::New, &params);
    let error = v2::McpServer::try_from(&sse.servers[0]).unwrap_err();
    assert_eq!(error.to_string(), "the schema cannot represent MCP server 'events' (sse)");
    let params = json!({"cwd": "/desk", "mcpServers": [{"type": "_pigeon", "name": "loft"}]});
    let pigeon = validated(AcpVersion::V2, SessionMethod::New, &params);
    let error = v1::McpServer::try_from(&pigeon.servers[0]).unwrap_err();
    assert_eq!(
        (error.server_name.as_str(), error.transport),
        ("loft", AcpTransport::Other("_pigeon".to_owned()))
    );
}

#[test]
fn acp_015_capabilities_round_trip() {
    for number in 0_u8..16 {
        let bit = |it: u8| number & (1 << it) != 0;
        let mut ours = Capabilities::STDIO;
        ours.stdio = bit(0);
        ours.http = bit(1);
        ours.sse = bit(2);
        ours.acp = bit(3);
        let official = v1::McpCapabilities::from(&ours);
        assert_eq!((official.http, official.sse, official.acp), (bit(1), bit(2), bit(3)));
        assert_eq!(Capabilities::from(&official), {
            let mut capabilities = ours.clone();
            capabilities.stdio = true;
            capabilities
        });
        let official = v2::McpCapabilities::from(&ours);
        assert_eq!(
            (official.stdio.is_some(), official.http.is_some(), official.acp.is_some()),
            (bit(0), bit(1), bit(3))
        );
        assert_eq!(Capabilities::from(&official), {
            let mut capabilities = ours;
            capabilities.sse = false;
            capabilities
        });
    }
}

#[test]
fn acpx_10_typed_requests_equal_raw_ones() {
    #[track_caller]
    fn check(request: &SessionRequest, method: SessionMethod, more: &Value) {
        let mut expected = json!({"cwd": "/desk"});
        expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!((request.method, request.params.read::<Value>().unwrap()), (method, expected));
    }
    let session = json!({"sessionId": "s"});
    let listed = json!({"sessionId": "s", "mcpServers": []});
    check(&(&v1::NewSessionRequest::new("/desk")).into(), SessionMethod::New, &json!({"mcpServers": []}));
    check(&(&v1::LoadSessionRequest::new("s", "/desk")).into(), SessionMethod::Load, &listed);
    check(&(&v1::ResumeSessionRequest::new("s", "/desk")).into(), SessionMethod::Resume, &session);
    check(&(&v1::ForkSessionRequest::new("s", "/desk")).into(), SessionMethod::Fork, &session);
    check(&(&v2::NewSessionRequest::new("/desk")).into(), SessionMethod::New, &json!({}));
    check(&(&v2::ResumeSessionRequest::new("s", "/desk")).into(), SessionMethod::Resume, &session);
    check(&(&v2::ForkSessionRequest::new("s", "/desk")).into(), SessionMethod::Fork, &session);
}

#[test]
fn acpx_03_errors_are_equal_in_all_types() {
    let request =
        SessionRequest::new(SessionMethod::New, RawJson::from_value(&json!({"mcpServers": []})).unwrap());
    let refusal = validate(&request, &AgentProfile::new(AcpVersion::V1, &all_capabilities())).unwrap_err();
    let SessionRequestError::InvalidParams(invalid) = &refusal else { panic!() };
    let kind = ServerStartErrorKind::ExecutableNotFound { command: "/a".to_owned() };
    let failure = ServerStartError::new("a", AcpTransport::Stdio, kind, &[]);
    let check = |ours: RpcError, v1: v1::Error, v2: v2::Error| {
        let ours = serde_json::to_value(ours).unwrap();
        assert_eq!(serde_json::to_value(v1).unwrap(), ours);
        assert_eq!(serde_json::to_value(v2).unwrap(), ours);
    };
    check((&refusal).into(), (&refusal).into(), (&refusal).into());
    check(invalid.into(), invalid.into(), invalid.into());
    check((&failure).into(), (&failure).into(), (&failure).into());
    // An error without data stays without data.
    let bare = SessionRequestError::NotARequest;
    check((&bare).into(), (&bare).into(), (&bare).into());
}
