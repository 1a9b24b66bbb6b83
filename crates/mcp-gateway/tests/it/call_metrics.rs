//! `/metrics` of calls, by tool and by token.

use mcp_host_gateway::{GatewayOptions, HttpOptions, Tokens};
use mcp_host_model::Secret;

use crate::support::TestGateway;

const ANN: &str = "ann-0123456789abcdef";
const CY: &str = "cy-00123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

#[tokio::test]
async fn calls_are_counted_by_tool_and_by_token() {
    let tokens =
        Tokens::read(&Secret::new(format!("{ANN} name=ann\n{BOB}\n{CY} name=cy servers=own"))).unwrap();
    let mut http = HttpOptions::default();
    http.tokens = tokens;
    let gateway = TestGateway::with(GatewayOptions::default(), http).await;
    let ann = ("authorization", format!("Bearer {ANN}"));
    let bob = ("authorization", format!("Bearer {BOB}"));
    let call = async |authorization: &(&str, String), tool: &str, arguments: &str| {
        let authorization = (authorization.0, authorization.1.as_str());
        let session = gateway.initialize(&[authorization]).await;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        gateway.post(&[authorization, ("mcp-session-id", &session)], &body).await.json()
    };
    for _ in 0..2 {
        assert!(call(&ann, "demo__echo", r#"{"text":"hunter2"}"#).await["result"].is_object());
    }
    assert_eq!(call(&bob, "demo__fail", r#"{"message":"hunter2"}"#).await["result"]["isError"], true);
    assert!(call(&bob, "hunter2", "{}").await["error"].is_object());

    let page = gateway.http("GET", "/metrics", &[(ann.0, &ann.1)], "").await.body;
    for line in [
        r#"mcp_gateway_tool_calls_total{server="demo",tool="demo__echo",outcome="success"} 2"#,
        r#"mcp_gateway_tool_calls_total{server="demo",tool="demo__fail",outcome="tool_error"} 1"#,
        r#"mcp_gateway_token_calls_total{token="ann",outcome="success"} 2"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    let value = |start: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("{start} in {page}")).trim().parse::<f64>().unwrap()
    };
    assert!(value(r#"mcp_gateway_tool_seconds_total{server="demo",tool="demo__echo"}"#) > 0.0);
    assert!(value(r#"mcp_gateway_token_bytes_total{token="ann",direction="request"}"#) > 0.0);
    assert!(
        value(r#"mcp_gateway_tool_bytes_total{server="demo",tool="demo__echo",direction="result"}"#) > 0.0
    );
    // A token without a name has one from its hash. A tool that does not exist has no series.
    let of_bob =
        page.lines().filter(|line| line.starts_with(r#"mcp_gateway_token_calls_total{token="token-"#));
    assert_eq!(of_bob.count(), 2, "{page}");
    assert!(!page.contains("hunter2") && !page.contains(ANN) && !page.contains(BOB), "{page}");
    // RPT-253: a restricted token sees its own servers and calls only.
    let page = gateway.http("GET", "/metrics", &[("authorization", &format!("Bearer {CY}"))], "").await.body;
    assert!(page.contains(r#"mcp_host_server_state{server="own",state="ready"} 1"#), "{page}");
    assert!(page.contains("mcp_gateway_sessions "), "{page}");
    for hidden in ["demo", "ann", "token-"] {
        let series = page.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(series.filter(|line| line.contains(hidden)).collect::<Vec<_>>(), [""; 0], "{hidden}");
    }
    gateway.end().await;
}
