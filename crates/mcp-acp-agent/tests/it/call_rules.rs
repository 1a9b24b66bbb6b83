//! Rules for calls of the servers of a session.

use mcp_host_acp_agent::SessionServers;
use serde_json::json;

use crate::sessions::{entries, options, text_or_error, tool_call, validated};

#[tokio::test(start_paused = true)]
async fn cp_005_session_refuses_calls_by_rules_of_its_request() {
    let mut servers = entries(&["a"]);
    servers[0]["_meta"] = json!({ "mcp-host/calls": ["ask tools=echo", "deny tools=fail"] });
    let session = SessionServers::connect(validated(&servers), options()).await.unwrap();
    let refused = text_or_error(&session.call(tool_call("a__fail", r#"{"message":"x"}"#)).await);
    assert!(refused.contains("the rule `deny tools=fail (entry 'a')` refuses it"), "{refused}");
    // The client is not asked: it could answer itself.
    let unanswered = text_or_error(&session.call(tool_call("a__echo", r#"{"text":"x"}"#)).await);
    assert!(unanswered.contains("nobody can be asked"), "{unanswered}");
    assert_eq!(text_or_error(&session.call(tool_call("a__add", r#"{"a":1,"b":2}"#)).await), "3");
}
