//! Rate limits of calls, by token and by server.

use std::time::Duration;

use mcp_host_gateway::{AuditLog, GatewayOptions, HttpOptions, Rate, RateLimits, Tokens};
use mcp_host_model::{Secret, code};

use crate::support::{TestGateway, modern};

const ANN: &str = "ann-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"demo__echo","arguments":{"text":"a"}}}"#;

fn rate(text: &str) -> Option<Rate> {
    Some(text.parse().unwrap())
}

fn http() -> HttpOptions {
    let tokens = Tokens::read(&Secret::new(format!("{ANN} name=ann\n{BOB} name=bob"))).unwrap();
    let mut options = HttpOptions::default();
    options.tokens = tokens;
    options
}

/// A call of a stateless client.
async fn stateless_call(gateway: &TestGateway, token: &str) -> crate::support::Reply {
    let params = r#""name":"demo__echo","arguments":{"text":"a"}"#;
    let (headers, body) = modern("tools/call", Some("demo__echo"), params);
    let authorization = format!("Bearer {token}");
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    headers.push(("authorization", &authorization));
    gateway.post(&headers, &body).await
}

#[tokio::test]
async fn token_beyond_its_rate_gets_an_error_that_says_when_to_try_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit");
    let audit = AuditLog::to_file(&path).unwrap();
    let mut options = GatewayOptions::default();
    options.rates = {
        let mut limits = RateLimits::default();
        limits.per_token = rate("2/min");
        limits
    };
    options.audit = Some(audit.clone());
    let gateway = TestGateway::with(options, http()).await;
    assert_eq!(stateless_call(&gateway, ANN).await.status, 200);
    assert_eq!(stateless_call(&gateway, ANN).await.status, 200);
    let refused = stateless_call(&gateway, ANN).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds}");
    let error = &refused.json()["error"];
    assert_eq!((&error["code"], &error["data"]["limit"]), (&code::RATE_LIMITED.into(), &"token".into()));
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("the token `ann` has a limit of 2/min calls") && message.contains("try again in")
    );
    assert!(!message.contains(ANN));

    // A client with a session gets the error with its id, because many clients end a session at a status of 429.
    let authorization = format!("Bearer {ANN}");
    let session = gateway.initialize(&[("authorization", &authorization)]).await;
    let headers = [("authorization", &*authorization), ("mcp-session-id", &session)];
    let refused = gateway.post(&headers, CALL).await;
    assert_eq!((refused.status, &refused.json()["id"]), (200, &7.into()));
    assert_eq!(refused.json()["error"]["code"], code::RATE_LIMITED);
    // Lists reach no server, and another token has its own limit.
    let list = r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#;
    assert!(gateway.post(&headers, list).await.json()["result"].is_object());
    assert_eq!(stateless_call(&gateway, BOB).await.status, 200);

    let page = gateway.http("GET", "/metrics", &[("authorization", &authorization)], "").await.body;
    for line in [
        r#"mcp_gateway_token_calls_total{token="ann",outcome="limited"} 2"#,
        r#"mcp_gateway_token_calls_total{token="bob",outcome="success"} 1"#,
        r#"mcp_gateway_responses_total{status="429"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    audit.flush(Duration::from_secs(60));
    let log = std::fs::read_to_string(&path).unwrap();
    let limited = log
        .lines()
        .filter(|line| line.contains(r#""token":"ann""#) && line.contains(r#""outcome":"limited""#));
    assert_eq!(limited.count(), 2, "{log}");
    gateway.end().await;
}

#[tokio::test]
async fn clients_share_the_rate_of_a_server() {
    let mut options = GatewayOptions::default();
    options.rates = {
        let mut limits = RateLimits::default();
        limits.per_server = rate("2/min");
        limits
    };
    let gateway = TestGateway::with(options, http()).await;
    assert_eq!(stateless_call(&gateway, ANN).await.status, 200);
    assert_eq!(stateless_call(&gateway, BOB).await.status, 200);
    let refused = stateless_call(&gateway, BOB).await;
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["data"]["limit"]), (429, &"server".into()));
    assert!(error["message"].as_str().unwrap().contains("`demo`"), "{error}");
    let authorization = format!("Bearer {ANN}");
    let page = gateway.http("GET", "/metrics", &[("authorization", &authorization)], "").await.body;
    let line = r#"mcp_gateway_tool_calls_total{server="demo",tool="demo__echo",outcome="limited"} 1"#;
    assert!(page.lines().any(|found| found == line), "{page}");
    // Prompts and resources of the server count too.
    let session = gateway.initialize(&[("authorization", &authorization)]).await;
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"demo://greeting"}}"#;
    let headers = [("authorization", &*authorization), ("mcp-session-id", &session)];
    assert_eq!(gateway.post(&headers, read).await.json()["error"]["code"], code::RATE_LIMITED);
    gateway.end().await;
}
