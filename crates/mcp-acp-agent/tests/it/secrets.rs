//! Responses repeat no secret of the request. The types of the SDK do; ours keep the raw parameters.

use agent_client_protocol::v1::schema::{NewSessionRequest, NewSessionResponse};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, JsonRpcMessage, on_receive_request};
use mcp_host_acp::{Capabilities, Policy};
use mcp_host_acp_agent::{LoadSession, NewSession, RequiredServers, SessionServers, TypedSessionRequest};
use serde_json::{Value, json};

use crate::raw_client::RawClient;
use crate::sessions::options;

/// Parameters with secrets in each entry, of which the last is invalid.
fn params() -> Value {
    json!({"cwd": std::env::temp_dir(), "mcpServers": [
        {"name": "files", "command": "/opt/files", "args": ["--key=SECRET-1"],
            "env": [{"name": "KEY", "value": "SECRET-2"}]},
        {"type": "http", "name": "api", "url": "https://user:SECRET-3@api.example/mcp?token=SECRET-4",
         "headers": [{"name": "Authorization", "value": "Bearer SECRET-5"}]},
        {"name": "wrong", "command": 7, "args": ["SECRET-6"]},
    ]})
}

#[tokio::test]
async fn acpx_04_values_that_the_sdk_prints_are_not_printed() {
    let typed = Agent.v1().on_receive_request(
        async |_: NewSessionRequest, responder: Responder<NewSessionResponse>, _: ConnectionTo<Client>| {
            responder.respond(NewSessionResponse::new("never"))
        },
        on_receive_request!(),
    );
    let sdk_response = RawClient::connect(typed).request("session/new", params()).await;
    assert_eq!(sdk_response["error"]["code"], -32602);
    // If this fails, the SDK no longer repeats values.
    assert!(sdk_response.to_string().contains("SECRET-2"), "{sdk_response}");

    let raw = Agent.v1().on_receive_request(
        async |request: NewSession, responder: Responder<NewSessionResponse>, _: ConnectionTo<Client>| {
            let mut capabilities = Capabilities::STDIO;
            capabilities.http = true;
            let refused = request.validate(&capabilities, Policy::default()).await.unwrap_err();
            responder.respond_with_error(refused.into())
        },
        on_receive_request!(),
    );
    let our_response = RawClient::connect(raw).request("session/new", params()).await;
    assert!(!our_response.to_string().contains("SECRET"), "{our_response}");
    let error = serde_json::to_string_pretty(&our_response["error"]).unwrap();
    insta::assert_snapshot!(error, @r#"
    {
      "code": -32602,
      "message": "Invalid mcpServers: MCP server 'wrong': 'env' is required (and 1 more error)",
      "data": {
        "supportedTransports": [
          "stdio",
          "http"
        ],
        "serverName": "wrong",
        "errors": [
          {
            "index": 2,
            "serverName": "wrong",
            "field": "env",
            "pointer": "/params/mcpServers/2/env",
            "message": "MCP server 'wrong': 'env' is required",
            "suggestion": "add `\"env\": []`"
          },
          {
            "index": 2,
            "serverName": "wrong",
            "field": "command",
            "pointer": "/params/mcpServers/2/command",
            "message": "'command' must be text, not a number",
            "suggestion": "put the value into quotes"
          }
        ]
      }
    }
    "#);
}

#[tokio::test]
async fn debug_output_of_a_request_is_redacted() {
    let request = NewSession::parse_message("session/new", &params()).unwrap();
    assert_eq!(format!("{request:?}"), "NewSession(SessionRequest(session/new, ***))");
    assert_eq!(request.to_untyped_message().unwrap().params, params());
    // Parameters of any shape are read; only the validation refuses them.
    for params in [Value::Null, json!([1]), json!("SECRET"), json!({"mcpServers": 3})] {
        let request = LoadSession::parse_message("session/load", &params).unwrap();
        assert!(request.session_id().is_none());
        let refused = request.validate(&Capabilities::STDIO, Policy::default()).await.unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("SECRET"), "{refused:?}");
    }
    assert!(LoadSession::parse_message("session/new", &params()).is_err());
    // A new session has no id yet, even if the request has the member.
    let named = json!({"sessionId": "session-1"});
    assert!(NewSession::parse_message("session/new", &named).unwrap().session_id().is_none());
    let loaded = LoadSession::parse_message("session/load", &named).unwrap();
    assert_eq!(loaded.session_id().unwrap(), "session-1");
}

#[tokio::test(start_paused = true)]
async fn acpx_03_server_failure_is_an_internal_error_of_the_sdk() {
    let validated = crate::sessions::validated(&json!([
        {"type": "http", "name": "locked", "url": "https://api.example/mcp?token=SECRET", "headers": []},
    ]));
    let mut options = options();
    options.required = RequiredServers::All;
    let error = SessionServers::connect(validated, options).await.err().unwrap();
    let error: agent_client_protocol::Error = error.into();
    assert_eq!(error.code, agent_client_protocol::ErrorCode::INTERNAL_ERROR);
    assert_eq!(
        error.message,
        "MCP server 'locked': authentication failed: the server answered with status 401"
    );
    assert!(
        error
            .data
            .is_some_and(|error| error["serverName"] == "locked" && !error.to_string().contains("SECRET"))
    );
}
