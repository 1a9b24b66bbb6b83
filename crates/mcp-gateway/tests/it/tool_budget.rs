//! Limits on the lists of tools.

use mcp_host_gateway::{GatewayOptions, HttpOptions, Tokens};
use mcp_host_model::Secret;
use mcp_host_registry::ToolBudget;
use serde_json::Value;

use crate::support::{TestGateway, initialize, server};

const ANN: &str = "ann-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

async fn gateway(tool_budget: ToolBudget) -> TestGateway {
    let text = format!("{ANN} name=ann\n{BOB} name=bob servers=own");
    let tokens = Tokens::read(&Secret::new(text)).unwrap();
    let mut http = HttpOptions::default();
    http.tokens = tokens;
    let servers = vec![server("demo"), server("own")];
    TestGateway::with_tool_budget(servers, tool_budget, GatewayOptions::default(), http).await
}

/// Starts a session, sends a request and returns its result.
async fn send_in_new_session(gateway: &TestGateway, token: &str, path: &str, request: &str) -> Value {
    let authorization = format!("Bearer {token}");
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("authorization", &authorization),
    ];
    let begun = gateway.http("POST", path, &headers, &initialize("2025-11-25")).await;
    let session = begun.header("mcp-session-id").unwrap();
    headers.push(("mcp-session-id", &session));
    gateway.http("POST", path, &headers, request).await.json()
}

async fn tools(gateway: &TestGateway, token: &str, path: &str) -> Vec<String> {
    let list =
        send_in_new_session(gateway, token, path, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn first_tools_of_each_view_are_listed_and_the_others_cannot_be_called() {
    let unlimited = gateway(ToolBudget::default()).await;
    let all = tools(&unlimited, ANN, "/mcp").await;
    let own: Vec<String> = all.iter().filter(|name| name.starts_with("own__")).cloned().collect();
    unlimited.end().await;
    assert!(all.len() > 4 && own.len() > 3, "{all:?}");

    let limited = gateway({
        let mut budget = ToolBudget::default();
        budget.max_tools = Some(3);
        budget.max_tokens = None;
        budget
    })
    .await;
    assert_eq!(tools(&limited, ANN, "/mcp").await, all[..3]);
    assert_eq!(tools(&limited, BOB, "/mcp").await, own[..3]);
    // The limit applies after the selections of a request.
    assert_eq!(tools(&limited, ANN, "/mcp/own").await, own[..3]);
    assert_eq!(tools(&limited, ANN, "/mcp?tools=*__add").await, ["demo__add", "own__add"]);
    let call = |name: &str, text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{text}}}}}"#
        )
    };
    let left_out = all.last().unwrap();
    let refused = send_in_new_session(&limited, ANN, "/mcp", &call(left_out, "{}")).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("is left out, because there are too many tools"), "{message}");
    // What the token hides is not revealed.
    let hidden = send_in_new_session(&limited, BOB, "/mcp", &call(&all[0], "{}")).await;
    assert!(hidden["error"]["message"].as_str().unwrap().ends_with("not found"), "{hidden}");
    let listed = send_in_new_session(&limited, ANN, "/mcp", &call("demo__echo", r#"{"text":"a"}"#)).await;
    assert!(all[..3].contains(&"demo__echo".to_owned()) && listed["result"].is_object(), "{listed}");
    limited.end().await;
}

#[tokio::test]
async fn listed_tools_fit_the_limit_of_tokens() {
    let unlimited = gateway(ToolBudget::default()).await;
    let catalog = unlimited.host.snapshot().catalog.clone();
    unlimited.end().await;
    let limit = catalog.tools().iter().take(4).map(|tool| tool.estimated_tokens()).sum();
    let limited = gateway({
        let mut budget = ToolBudget::default();
        budget.max_tools = None;
        budget.max_tokens = Some(limit);
        budget
    })
    .await;
    let listed = tools(&limited, ANN, "/mcp").await;
    let first: Vec<&str> = catalog.tools().iter().take(4).map(|tool| tool.name.as_str()).collect();
    assert_eq!(listed, first);
    limited.end().await;
}
