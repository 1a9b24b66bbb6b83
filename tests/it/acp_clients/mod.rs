//! Real ACP clients against the example agent: the official SDKs of npm and PyPI, and acpx.
//!
//! Each client starts the agent like an editor and records all messages. Every message of the agent is validated
//! against the official schema.

mod acpx;
mod capabilities;
mod concurrency;
pub(crate) mod conversation;
mod forks;
mod lifetime;
mod logins;
mod malformed;
mod over_acp;
mod own_servers;
mod raw_client;
mod roots;
pub(crate) mod servers;

use std::path::PathBuf;
use std::sync::OnceLock;

use conversation::{Conversation, INHERITED, PAIRS, Scenario};
use mcp_host_acp::AcpVersion;
use mcp_testkit::program::{build_binary, installed_folder};
use serde_json::{Value, json};
use servers::DemoHttpServer;

/// The example agent with these arguments.
pub(crate) fn agent(arguments: &[&str]) -> Vec<String> {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    let agent = AGENT.get_or_init(|| build_binary("acp-agent", "acp-agent"));
    std::iter::once(agent.display().to_string()).chain(arguments.iter().map(|it| (*it).to_owned())).collect()
}

/// A scenario that connects over each transport of its version and calls a tool that returns what arrived.
pub(crate) fn colours(version: AcpVersion, web: &DemoHttpServer) -> Scenario {
    colours_by("session/new", version, web)
}

/// The same with another method, in an existing session.
pub(crate) fn colours_by(method: &str, version: AcpVersion, web: &DemoHttpServer) -> Scenario {
    let mut servers = vec![servers::stdio(version, "pipe", "green"), web.http("web", "blue")];
    let mut scenario = Scenario::new(version);
    if version == AcpVersion::V1 {
        servers.push(web.sse("events", "red"));
    }
    if method != "session/new" {
        scenario.new_session(json!([]));
    }
    scenario.step(method, json!({ "cwd": "/", "mcpServers": servers }));
    scenario.prompt(r#"/pipe__env {"name": "DEMO_COLOUR"}"#);
    scenario.prompt(r#"/pipe__env {"name": "DEMO_INHERITED"}"#);
    scenario.prompt(r#"/web__header {"name": "x-colour"}"#);
    if version == AcpVersion::V1 {
        scenario.prompt(r#"/events__header {"name": "x-colour"}"#);
    }
    scenario.step("session/close", json!({}));
    scenario
}

/// The arguments of the agent for [`colours`].
pub(crate) const INHERITING: &[&str] = &["--inherit-environment"];

/// Asserts the results of [`colours`].
#[track_caller]
pub(crate) fn assert_colours(version: AcpVersion, conversation: &Conversation) {
    let all: &[&str] = match version {
        AcpVersion::V1 => &["green", INHERITED, "blue", "red"],
        AcpVersion::V2 => &["green", INHERITED, "blue"],
    };
    assert_eq!(conversation.said(), all, "{conversation:#?}");
    assert!(conversation.steps.iter().all(|it| it.get("result").is_some()), "{conversation:#?}");
    assert_eq!(conversation.exit, json!({ "code": 0, "signal": null }), "{conversation:#?}");
}

#[test]
fn acp_017_acp_046_acp_047_acp_048_variables_and_headers_arrive_over_each_transport() {
    let folder = tempfile::tempdir().unwrap();
    let web = DemoHttpServer::start(folder.path());
    for (client, version) in PAIRS {
        let Some(conversation) = colours(version, &web).run(client, &agent(INHERITING)) else { return };
        assert_colours(version, &conversation);
        assert_eq!(conversation.steps[1]["sent"], "typed");
    }
}

#[test]
fn acpx_10_acp_046_acp_047_variables_and_headers_arrive_by_load_resume_and_fork_too() {
    let folder = tempfile::tempdir().unwrap();
    let web = DemoHttpServer::start(folder.path());
    for (client, version) in PAIRS {
        let methods: &[&str] = match version {
            AcpVersion::V1 => &["session/load", "session/resume", "session/fork"],
            AcpVersion::V2 => &["session/resume", "session/fork"],
        };
        for method in methods {
            let Some(conversation) = colours_by(method, version, &web).run(client, &agent(INHERITING)) else {
                return;
            };
            assert_colours(version, &conversation);
        }
    }
}

#[test]
fn acp_041_servers_of_the_typescript_sdk_over_each_transport() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js").display().to_string();
    let node = servers::on_path("node");
    let serve = |kind: &'static str| {
        crate::compare::start(|port| {
            let mut command = std::process::Command::new("node");
            command.arg(&script).arg(kind).env("PORT", port.to_string());
            command
        })
    };
    let (_web, http) = serve("streamableHttp");
    let (_events, sse) = serve("sse");
    let servers: Value = json!([
        { "name": "pipe", "command": node, "args": [script, "stdio"],
          "env": [{ "name": "DEMO_COLOUR", "value": "green" }] },
        { "type": "http", "name": "web", "url": format!("http://127.0.0.1:{http}/mcp"), "headers": [] },
        { "type": "sse", "name": "events", "url": format!("http://127.0.0.1:{sse}/sse"), "headers": [] },
    ]);
    for (client, version) in PAIRS.into_iter().filter(|it| it.1 == AcpVersion::V1) {
        let mut scenario = Scenario::new(version);
        scenario.new_session(servers.clone());
        scenario.prompt("/pipe__get-env");
        scenario.prompt(r#"/web__echo {"message": "hello"}"#);
        scenario.prompt(r#"/events__get-sum {"a": 2, "b": 40}"#);
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        let said = conversation.said();
        assert!(said[0].contains(r#""DEMO_COLOUR": "green""#), "{conversation:#?}");
        assert!(said[1].contains("Echo: hello") && said[2].contains("42"), "{conversation:#?}");
    }
}

#[test]
fn hd_100_the_tools_of_a_session_are_listed_in_the_order_of_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    let web = DemoHttpServer::start(folder.path());
    for (client, version) in PAIRS {
        let mut scenario = Scenario::new(version);
        let servers = [web.http("web", "blue"), servers::stdio(version, "pipe", "green")];
        scenario.new_session(json!(servers)).prompt("/tools").prompt("/servers");
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        let [tools, states] = &conversation.said()[..] else { panic!("{conversation:#?}") };
        let (web, pipe) = (tools.find("web__echo").unwrap(), tools.find("pipe__echo").unwrap());
        assert!(web < pipe, "{tools}");
        assert_eq!(states.matches("connected").count(), 2, "{states}");
    }
}
