//! Lifetime of sessions: replaced server sets, cancelled setups, stalled servers, disconnected clients.

use std::path::Path;

use mcp_host_acp::AcpVersion;
use mcp_testkit::process::is_alive;
use mcp_testkit::program::binary;
use mcp_testkit::wait::block_until;
use serde_json::{Value, json};

use super::conversation::{Client, PAIRS, Scenario};
use super::{agent, servers};

fn pid(file: &Path) -> u32 {
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

/// Asserts that the servers that wrote these files have exited.
#[track_caller]
fn assert_gone(files: &[&Path]) {
    for file in files {
        block_until(|| !is_alive(pid(file)));
    }
}

/// A server that writes its process id into a file for each start.
fn server(version: AcpVersion, folder: &Path, name: &str) -> Value {
    servers::demo_in_shell(version, name, &folder.join(name))
}

#[test]
fn acpx_10_load_and_resume_replace_the_whole_set() {
    for (client, version) in PAIRS {
        let methods: &[&str] = match version {
            AcpVersion::V1 => &["session/load", "session/resume"],
            AcpVersion::V2 => &["session/resume"],
        };
        for method in methods {
            let folder = tempfile::tempdir().unwrap();
            let server = |name: &str| server(version, folder.path(), name);
            let mut scenario = Scenario::new(version);
            scenario.new_session(json!([server("old"), server("older")]));
            scenario.prompt("/tools");
            scenario.step(method, json!({ "cwd": "/", "mcpServers": [server("new")] }));
            scenario.until_gone(&folder.path().join("old")).until_gone(&folder.path().join("older"));
            scenario.prompt("/tools").prompt(r#"/new__echo {"text": "still here"}"#);
            scenario.step(method, json!({ "cwd": "/", "mcpServers": [] }));
            scenario.until_gone(&folder.path().join("new"));
            scenario.prompt("/tools");
            let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
            let [before, after, echo, end] = &conversation.said()[..] else { panic!("{conversation:#?}") };
            let has = |tools: &str, name: &str| tools.contains(&format!("{name}__echo"));
            assert!(has(before, "old") && has(before, "older"), "{before}");
            assert!(has(after, "new") && !has(after, "old") && !has(after, "older"), "{after}");
            assert_eq!((echo.as_str(), end.as_str()), ("still here", ""), "{conversation:#?}");
        }
    }
}

#[test]
fn acp_021_a_failed_setup_keeps_the_servers() {
    for (client, version) in PAIRS {
        let folder = tempfile::tempdir().unwrap();
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([server(version, folder.path(), "old")]));
        scenario.step("session/resume", json!({ "cwd": "/", "mcpServers": [7] }));
        scenario.prompt(r#"/old__echo {"text": "still here"}"#);
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        assert_eq!(conversation.steps[2]["error"]["code"], -32602, "{conversation:#?}");
        assert_eq!(conversation.said(), ["still here"], "{conversation:#?}");
        assert_gone(&[&folder.path().join("old")]);
    }
}

#[test]
fn acp_021_a_cancelled_setup_leaves_no_process() {
    for (client, version) in PAIRS {
        let methods: &[&str] = match version {
            AcpVersion::V1 => &["session/new", "session/load", "session/resume"],
            AcpVersion::V2 => &["session/new", "session/resume"],
        };
        for method in methods {
            let folder = tempfile::tempdir().unwrap();
            let (stalled, beside) = (folder.path().join("stalled"), folder.path().join("beside"));
            let set = json!([
                servers::demo_in_shell(version, "beside", &beside),
                servers::shell(version, "stalled", &stalled, "sleep 600"),
            ]);
            let mut scenario = Scenario::new(version);
            scenario.new_session(json!([]));
            scenario.step(method, json!({ "cwd": "/", "mcpServers": set }));
            scenario.cancelled(&stalled.display().to_string(), "request");
            scenario.until_gone(&stalled);
            scenario.new_session(json!([server(version, folder.path(), "next")]));
            scenario.prompt(r#"/next__echo {"text": "goes on"}"#);
            let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
            assert_eq!(conversation.steps[2]["error"]["code"], -32800, "{conversation:#?}");
            assert_eq!(conversation.said(), ["goes on"], "{conversation:#?}");
            assert_gone(&[&stalled, &folder.path().join("next")]);
            // The server may not have been started before the cancellation.
            assert!(!beside.exists() || !is_alive(pid(&beside)), "{conversation:#?}");
        }
    }
}

#[test]
fn acp_021_a_stalled_server_ends_at_its_timeout() {
    for (client, version) in PAIRS {
        let folder = tempfile::tempdir().unwrap();
        let stalled = folder.path().join("stalled");
        let set = json!([
            servers::shell(version, "stalled", &stalled, "sleep 600"),
            servers::child(version, "missing", Path::new("/no/such/program"), &[], json!([])),
            server(version, folder.path(), "good"),
        ]);
        let mut scenario = Scenario::new(version);
        scenario.new_session(set.clone());
        scenario.prompt(r#"/good__echo {"text": "goes on"}"#).prompt("/servers");
        let Some(conversation) = scenario.run(client, &agent(&["--limit", "3000"])) else { return };
        let [echo, states] = &conversation.said()[..] else { panic!("{conversation:#?}") };
        assert_eq!(echo, "goes on", "{conversation:#?}");
        let states: Vec<Value> = states.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let words: Vec<_> = states.iter().map(|it| format!("{} {}", it["name"], it["status"])).collect();
        assert_eq!(
            words,
            [r#""stalled" "failed""#, r#""missing" "failed""#, r#""good" "connected""#],
            "{states:#?}"
        );
        let reported = &conversation.steps[1]["result"]["_meta"]["mcpServers"];
        assert_eq!(reported, &json!(states), "{conversation:#?}");

        // With only required servers, the first failure is the response.
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([set[1].clone(), set[2].clone()]));
        let Some(conversation) = scenario.run(client, &agent(&["--require-all"])) else { return };
        let error = &conversation.steps[1]["error"];
        assert_eq!(error["code"], -32603, "{error:#}");
        assert_eq!(error["message"], "MCP server 'missing': executable not found", "{error:#}");
        assert_eq!(error["data"]["serverName"], "missing", "{error:#}");
        assert_gone(&[&stalled, &folder.path().join("good")]);
    }
}

#[test]
fn acpx_05_acpx_14_a_slow_server_joins_its_session_later_and_the_client_is_told() {
    for (client, version) in PAIRS.into_iter().filter(|pair| pair.0 == Client::Node) {
        let folder = tempfile::tempdir().unwrap();
        let slow = format!("/bin/sh -c 'sleep 2; exec {} demo-server'", binary().display());
        let slow = servers::shell(version, "slow", &folder.path().join("slow"), &slow);
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([slow, server(version, folder.path(), "a")]));
        scenario.prompt(r#"/a__echo {"text": "begun"}"#).until_reported("slow", "connected");
        scenario.prompt(r#"/slow__echo {"text": "joined"}"#);
        let Some(conversation) = scenario.run(client, &agent(&["--wait", "500"])) else { return };
        assert_eq!(conversation.said(), ["begun", "joined"], "{conversation:#?}");
        let states = &conversation.steps[1]["result"]["_meta"]["mcpServers"];
        assert_eq!((&states[0]["status"], &states[1]["status"]), (&json!("connecting"), &json!("connected")));
        let update = &conversation.steps[3]["result"];
        match version {
            AcpVersion::V1 => assert_eq!(update["sessionUpdate"], "session_info_update", "{update}"),
            AcpVersion::V2 => assert_eq!(update["title"], "MCP server 'slow' is connected", "{update}"),
        }
    }
}

#[test]
fn acp_020_a_cancelled_turn_keeps_the_session() {
    for (client, version) in PAIRS {
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([servers::stdio(version, "it", "green")]));
        scenario.prompt(r#"/it__sleep {"ms": 600000}"#).cancelled("update", "session");
        scenario.prompt(r#"/it__echo {"text": "goes on"}"#);
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        let turn = &conversation.steps[2];
        let stopped = match version {
            AcpVersion::V1 => &turn["result"]["stopReason"],
            AcpVersion::V2 => &turn["ended"]["stopReason"],
        };
        assert_eq!(stopped, "cancelled", "{conversation:#?}");
        assert_eq!(conversation.said().last().unwrap(), "goes on", "{conversation:#?}");
    }
}

#[test]
fn acp_020_the_end_of_a_session_and_of_a_connection_ends_the_servers() {
    for (client, version) in PAIRS {
        let folder = tempfile::tempdir().unwrap();
        let server = |name: &str| server(version, folder.path(), name);
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([server("kept")]));
        scenario.new_session(json!([server("closed")]));
        scenario.step("session/close", json!({})).until_gone(&folder.path().join("closed"));
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        assert_eq!(conversation.exit["code"], 0, "{conversation:#?}");
        assert_gone(&[&folder.path().join("kept")]);
    }
}
