//! `session/fork`, unstable in both versions: a session with its own servers.

use mcp_host_acp::AcpVersion;
use mcp_testkit::process::is_alive;
use mcp_testkit::wait::block_until;
use serde_json::json;

use super::conversation::{PAIRS, Scenario};
use super::{agent, servers};

#[test]
fn acpx_10_a_fork_has_its_own_servers() {
    for (client, version) in PAIRS {
        let folder = tempfile::tempdir().unwrap();
        let server = |name: &str| servers::demo_in_shell(version, name, &folder.path().join(name));
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([server("old")]));
        scenario.step("session/fork", json!({ "cwd": "/", "mcpServers": [server("new")] }));
        scenario.prompt(r#"/new__echo {"text": "forked"}"#).prompt("/tools");
        scenario.prompt_in(0, r#"/old__echo {"text": "still here"}"#).prompt_in(0, "/tools");
        // The fork is closed, the original session is not.
        scenario.step("session/close", json!({})).until_gone(&folder.path().join("new"));
        scenario.prompt_in(0, r#"/old__echo {"text": "still"}"#);
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        let [forked, of_fork, old, of_old, still] = &conversation.said()[..] else {
            panic!("{conversation:#?}")
        };
        assert_eq!([forked, old, still], ["forked", "still here", "still"], "{conversation:#?}");
        assert!(of_fork.contains("new__echo") && !of_fork.contains("old__"), "{of_fork}");
        assert!(of_old.contains("old__echo") && !of_old.contains("new__"), "{of_old}");
        let ids = [1, 2].map(|it: usize| &conversation.steps[it]["result"]["sessionId"]);
        assert!(ids[0].is_string() && ids[1].is_string() && ids[0] != ids[1], "{ids:?}");
        let old = std::fs::read_to_string(folder.path().join("old")).unwrap();
        block_until(|| !is_alive(old.trim().parse().unwrap()));
    }
}

#[test]
fn acp_039_a_fork_is_validated_and_needs_a_session() {
    for (client, version) in PAIRS {
        let mut scenario = Scenario::new(version);
        let fork = |servers| json!({ "cwd": "/", "mcpServers": servers });
        scenario.new_session(json!([]));
        let http = json!([{ "type": "http", "name": "a", "url": "https://a.example", "headers": [] }]);
        scenario.step("session/fork", fork(http));
        scenario.step("session/fork", json!({ "sessionId": "nobody's", "cwd": "/", "mcpServers": [] }));
        let Some(conversation) = scenario.run(client, &agent(&["--transports", "stdio"])) else { return };
        let place = if version == AcpVersion::V1 { "mcpCapabilities" } else { "session.mcp" };
        let message = format!("HTTP transport not supported: agent did not declare {place}.http");
        let [declared, unknown] = [2, 3].map(|it: usize| &conversation.steps[it]["error"]);
        assert_eq!((&declared["code"], &declared["message"]), (&json!(-32602), &json!(message)));
        assert_eq!((&unknown["code"], &unknown["data"]["sessionId"]), (&json!(-32002), &json!("nobody's")));
    }
}
