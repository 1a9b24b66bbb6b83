//! Requests of servers for the roots of a session.

use mcp_testkit::program::installed_folder;
use serde_json::json;

use super::conversation::{PAIRS, Scenario};
use super::{agent, servers};

#[test]
fn a_typescript_server_lists_the_roots_of_its_session() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js").display().to_string();
    let node = servers::on_path("node");
    let folders = tempfile::tempdir().unwrap();
    let [desk, other] = ["desk", "an other"].map(|it| folders.path().join(it));
    for folder in [&desk, &other] {
        std::fs::create_dir(folder).unwrap();
    }
    for (client, version) in PAIRS {
        let set = json!([servers::child(version, "it", &node, &[&script, "stdio"], json!([]))]);
        let mut scenario = Scenario::new(version);
        let params = json!({ "cwd": desk, "additionalDirectories": [other], "mcpServers": set });
        scenario.step("session/new", params).prompt("/it__get-roots-list");
        // Another session has its own roots.
        scenario.new_session(set).prompt("/it__get-roots-list");
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        let [first, second] = &conversation.said()[..] else { panic!("{conversation:#?}") };
        let uri = |folder: &str| format!("file://{}/{folder}", folders.path().display());
        assert!(first.contains(&uri("desk")) && first.contains(&uri("an%20other")), "{first}");
        assert!(second.contains("file:///") && !second.contains(&uri("desk")), "{second}");
    }
}
