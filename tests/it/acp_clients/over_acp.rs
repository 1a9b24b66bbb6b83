//! MCP over ACP (ACPX-12): a server of the official MCP SDK inside a client of the official ACP SDK.

use mcp_host_acp::AcpVersion;
use serde_json::json;

use super::agent;
use super::conversation::{Client, Scenario};

#[test]
fn acpx_12_a_server_of_the_npm_client_is_called_through_the_connection() {
    for &version in AcpVersion::ALL {
        let mut scenario = Scenario::serving(version, "server-1");
        let editor = json!({ "type": "acp", "name": "editor", "serverId": "server-1" });
        scenario.new_session(json!([editor]));
        scenario.prompt("/tools").prompt(r#"/editor__echo {"text": "through ACP"}"#).prompt("/editor__fail");
        // An unknown server fails alone.
        let gone = json!({ "type": "acp", "name": "gone", "serverId": "server-2" });
        scenario.step("session/resume", json!({ "cwd": "/", "mcpServers": [gone, editor] }));
        scenario.prompt(r#"/editor__echo {"text": "again"}"#);
        let Some(conversation) = scenario.run(Client::Node, &agent(&["--transports", "acp"])) else { return };
        let [tools, echo, fail, again] = &conversation.said()[..] else { panic!("{conversation:#?}") };
        assert!(tools.contains("editor__echo") && tools.contains("editor__fail"), "{tools}");
        assert_eq!([echo, again], ["through ACP", "again"], "{conversation:#?}");
        assert!(fail.contains("as asked"), "{fail}");
        let gone = &conversation.steps[5]["result"]["_meta"]["mcpServers"][0];
        assert_eq!((&gone["name"], &gone["status"]), (&json!("gone"), &json!("failed")), "{conversation:#?}");
        let error = gone["error"]["data"]["error"].as_str().unwrap();
        assert!(
            error.contains("the client no longer has this server") && error.contains("-33001"),
            "{error}"
        );
    }
}
