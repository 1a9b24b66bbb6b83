//! The audit log: one line per call, without its content.

use std::path::Path;
use std::time::Duration;

use mcp_host_gateway::{AuditLog, GatewayOptions, HttpOptions, Tokens, TrustedProxies};
use mcp_host_model::Secret;
use serde_json::Value;

use crate::support::TestGateway;

const LIMIT: Duration = Duration::from_secs(60);
const ANN: &str = "ann-0123456789abcdef";
const OLD: &str = "old-0123456789abcdef";

fn read_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_is_one_line_without_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit");
    let audit = AuditLog::to_file(&path).unwrap();
    let tokens =
        Tokens::read(&Secret::new(format!("{OLD} name=ann\n{ANN} name=ann expires=2100-01-01"))).unwrap();
    let gateway = TestGateway::with(
        {
            let mut options = GatewayOptions::default();
            options.audit = Some(audit.clone());
            options
        },
        {
            let mut options = HttpOptions::default();
            options.tokens = tokens;
            options.trusted_proxies = TrustedProxies::read(["127.0.0.0/8"]).unwrap();
            options
        },
    )
    .await;
    let authorization = format!("Bearer {ANN}");
    let session = gateway.initialize(&[("authorization", &authorization)]).await;
    let post = async |method: &str, params: &str| {
        let headers = [
            ("authorization", &*authorization),
            ("mcp-session-id", &*session),
            ("x-forwarded-for", "198.51.100.7, 192.0.2.1"),
        ];
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        gateway.post(&headers, &body).await.json()
    };
    let listed = post("tools/list", "{}").await;
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let echo =
        names.iter().find(|name| **name == "demo__echo" || **name == "echo").expect("an echo").to_string();
    let call = format!(r#"{{"name":"{echo}","arguments":{{"text":"hunter2"}}}}"#);
    assert!(post("tools/call", &call).await.to_string().contains("hunter2"));
    let unknown = r#"{"name":"no\nsuch","arguments":{"text":"hunter2"}}"#;
    assert!(post("tools/call", unknown).await["error"].is_object());
    assert!(post("resources/read", r#"{"uri":"hunter2://x"}"#).await["error"].is_object());
    audit.flush(LIMIT);
    let found = read_lines(&path);
    let field = |key: &str| found.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(field("method"), ["tools/call", "tools/call", "resources/read"]);
    assert_eq!(field("outcome"), ["success", "error", "error"]);
    assert_eq!(field("client"), ["t", "t", "t"]);
    assert_eq!(field("token"), ["ann", "ann", "ann"]);
    // RPT-204, RPT-205
    assert_eq!(field("address"), ["192.0.2.1"; 3]);
    assert_eq!(field("token_line"), [2, 2, 2]);
    let old = [("authorization", &*format!("Bearer {OLD}"))];
    let page = gateway.http("GET", "/metrics", &old, "").await.body;
    for line in [
        "mcp_gateway_token_requests_total{token=\"ann\",line=\"1\"} 1\n",
        "mcp_gateway_token_requests_total{token=\"ann\",line=\"2\"} 5\n",
        "mcp_gateway_token_expiry_timestamp_seconds{token=\"ann\",line=\"2\"} 4102444800\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    // A replaced list continues the counts.
    gateway.tokens.replace(Tokens::read(&Secret::new(format!("{ANN} name=ann"))).unwrap()).unwrap();
    let page = gateway.http("GET", "/metrics", &[("authorization", &authorization)], "").await.body;
    assert!(page.contains("mcp_gateway_token_requests_total{token=\"ann\",line=\"1\"} 6\n"), "{page}");
    assert_eq!(field("tool"), [Value::from(echo), Value::from("nosuch"), Value::Null]);
    assert_eq!(found[0]["server"], "demo");
    assert_eq!(found[0]["request_bytes"], call.len());
    assert!(found.iter().all(|line| line["time"].as_str().unwrap().ends_with('Z')));
    assert!(found[0]["result_bytes"].as_u64().unwrap() > 0 && found[0]["duration_ms"].is_number());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2") && !text.contains(ANN) && !text.contains(&session), "{text}");

    // Log rotation.
    let rotated = folder.path().join("audit.1");
    std::fs::rename(&path, &rotated).unwrap();
    audit.reopen();
    post("tools/call", &call).await;
    audit.flush(LIMIT);
    assert_eq!((read_lines(&rotated).len(), read_lines(&path).len(), audit.dropped_lines()), (3, 1, 0));
    gateway.end().await;
}
