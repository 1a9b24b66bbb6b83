//! Concurrent operations: close and setup, cancel and completion, prompt and replaced servers. The client writes its
//! messages itself.

use std::path::{Path, PathBuf};

use mcp_host_acp::AcpVersion;
use mcp_testkit::process::{is_alive, send_signal};
use mcp_testkit::program::binary;
use mcp_testkit::wait::block_until;
use serde_json::{Value, json};

use super::raw_client::RawClient;
use super::{agent, servers};

/// A server that becomes ready when its gate file exists.
struct GatedServer {
    file: PathBuf,
    gate: PathBuf,
}

impl GatedServer {
    fn of(folder: &Path, name: &str) -> GatedServer {
        GatedServer { file: folder.join(name), gate: folder.join(format!("{name}.gate")) }
    }

    fn server(&self, version: AcpVersion, name: &str) -> Value {
        let (gate, binary) = (self.gate.display(), binary().display());
        let waits = format!("while [ ! -e {gate} ]; do sleep 0.01; done; exec {binary} demo-server");
        servers::shell(version, name, &self.file, &format!("/bin/sh -c '{waits}'"))
    }

    /// Waits until the server was started.
    #[track_caller]
    fn is_started(&self) {
        block_until(|| self.file.exists());
    }

    fn open(&self) {
        std::fs::write(&self.gate, "").unwrap();
    }

    fn is_alive(&self) -> bool {
        is_alive(std::fs::read_to_string(&self.file).unwrap().trim().parse().unwrap())
    }
}

/// The methods that replace the servers of a session.
fn exchanges(version: AcpVersion) -> &'static [&'static str] {
    match version {
        AcpVersion::V1 => &["session/load", "session/resume"],
        AcpVersion::V2 => &["session/resume"],
    }
}

/// The parameters of a setup.
fn set(session: &Value, servers: Value) -> Value {
    json!({ "sessionId": session, "cwd": "/", "mcpServers": servers })
}

#[test]
fn acp_020_closing_a_session_during_setup_ends_it() {
    for &version in AcpVersion::ALL {
        for method in exchanges(version) {
            let folder = tempfile::tempdir().unwrap();
            let late = GatedServer::of(folder.path(), "late");
            let mut wire = RawClient::start(version, &agent(&[]), folder.path());
            let session = wire.session(json!([]));
            let id = json!("late");
            wire.request(&id, method, set(&session, json!([late.server(version, "late")])));
            late.is_started();
            let closed = wire.asks("session/close", json!({ "sessionId": session }));
            assert!(closed.get("result").is_some(), "{closed}");
            late.open();
            let answer = wire.answer(&id);
            let message = "the session was closed while its MCP servers were being connected";
            assert_eq!(
                (&answer["error"]["code"], &answer["error"]["message"]),
                (&json!(-32603), &json!(message))
            );
            let prompt = json!([{ "type": "text", "text": "/tools" }]);
            let gone = wire.asks("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
            assert_eq!(gone["error"]["code"], -32002, "{gone}");
            block_until(|| !late.is_alive());
            wire.end();
        }
    }
}

#[test]
fn acpx_10_a_setup_response_matches_its_effect() {
    for &version in AcpVersion::ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut wire = RawClient::start(version, &agent(&[]), folder.path());
        // It ignores the end of input, so its shutdown is the slowest part.
        let stubborn = |name: &str| {
            let demo = format!("trap \"\" TERM; {} demo-server; sleep 600", binary().display());
            servers::shell(version, name, &folder.path().join(name), &format!("/bin/sh -c '{demo}'"))
        };
        let mut happened = Vec::new();
        for round in 0..12 {
            let session = wire.session(json!([stubborn(&format!("old{round}"))]));
            let late = GatedServer::of(folder.path(), &format!("new{round}"));
            let id = json!(format!("exchange-{round}"));
            wire.request(&id, "session/resume", set(&session, json!([late.server(version, "new")])));
            late.is_started();
            late.open();
            // The cancellation comes later each time; the last time, everything has happened.
            for _ in 0..round * 8 {
                wire.asks("session/close", json!({ "sessionId": "nobody's" }));
            }
            if round == 11 {
                wire.answer(&id);
            }
            wire.cancel(&id);
            let answer = wire.answer(&id);
            let tools = wire.turn(&session, "/tools");
            let (old, new) = (tools.contains(&format!("old{round}__echo")), tools.contains("new__echo"));
            match answer["error"]["code"].as_i64() {
                None => assert_eq!((old, new), (false, true), "{round}: {answer} {tools}"),
                Some(code) => {
                    assert_eq!((code, old, new), (-32800, true, false), "{round}: {answer} {tools}")
                }
            }
            happened.push(new);
        }
        assert_eq!(happened.last(), Some(&true));
        wire.end();
    }
}

/// Two requests with the ids `7` and `"7"`: cancelling one leaves the other.
#[track_caller]
fn check_ids(command: &[String], version: AcpVersion, cancelled: Value, kept: Value) {
    let folder = tempfile::tempdir().unwrap();
    let (gone, late) = (GatedServer::of(folder.path(), "gone"), GatedServer::of(folder.path(), "late"));
    let mut wire = RawClient::start(version, command, folder.path());
    let new = |server: Value| json!({ "cwd": "/", "mcpServers": [server] });
    wire.request(&cancelled, "session/new", new(gone.server(version, "gone")));
    wire.request(&kept, "session/new", new(late.server(version, "late")));
    gone.is_started();
    late.is_started();
    wire.cancel(&cancelled);
    assert_eq!(wire.answer(&cancelled)["error"]["code"], -32800);
    block_until(|| !gone.is_alive());
    assert!(late.is_alive() && !wire.is_answered(&kept));
    late.open();
    let session = wire.answer(&kept)["result"]["sessionId"].clone();
    assert_eq!(wire.turn(&session, r#"/late__echo {"text": "kept"}"#), "kept");
    wire.end();
}

#[test]
fn cancellation_distinguishes_ids_of_different_types() {
    for &version in AcpVersion::ALL {
        for command in [agent(&[]), crate::acp_proxy::guarded(&agent(&[]))] {
            check_ids(&command, version, json!("7"), json!(7));
            check_ids(&command, version, json!(7), json!("7"));
        }
    }
}

#[test]
fn acpx_10_a_waiting_turn_uses_the_current_servers() {
    for &version in AcpVersion::ALL {
        for method in exchanges(version) {
            let folder = tempfile::tempdir().unwrap();
            let mut wire = RawClient::start(version, &agent(&[]), folder.path());
            let server = |name: &str| servers::stdio(version, name, "green");
            let session = wire.session(json!([server("old")]));
            let (first, waits) = (json!("first"), json!("waits"));
            wire.prompt(&first, &session, r#"/old__sleep {"ms": 600000}"#);
            wire.update(&session, |it| it["status"] == "in_progress");
            wire.prompt(&waits, &session, "/tools");
            // The running prompt ends because its server ends.
            let answer = wire.asks(method, set(&session, json!([server("new")])));
            assert!(answer.get("result").is_some(), "{answer}");
            let tools = wire.said_until_end(&waits, &session);
            assert!(tools.contains("new__echo") && !tools.contains("old__echo"), "{tools}");
            wire.end();
        }
    }
}

#[test]
fn acp_020_turns_of_a_closed_session_are_cancelled() {
    for &version in AcpVersion::ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut wire = RawClient::start(version, &agent(&[]), folder.path());
        let session = wire.session(json!([servers::stdio(version, "it", "green")]));
        let first = json!("first");
        wire.prompt(&first, &session, r#"/it__sleep {"ms": 600000}"#);
        wire.update(&session, |it| it["status"] == "in_progress");
        let waiting: Vec<_> = (0..40).map(|it| json!(it)).collect();
        for id in &waiting {
            wire.prompt(id, &session, "/tools");
        }
        let closed = wire.asks("session/close", json!({ "sessionId": session }));
        assert!(closed.get("result").is_some(), "{closed}");
        for id in &waiting {
            let answer = wire.answer(id);
            match version {
                AcpVersion::V1 => assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}"),
                AcpVersion::V2 => assert_eq!(answer["error"]["code"], -32800, "{answer}"),
            }
        }
        match version {
            AcpVersion::V1 => assert_eq!(wire.answer(&first)["result"]["stopReason"], "cancelled"),
            AcpVersion::V2 => {
                let idle = wire.update(&session, |it| it["state"] == "idle");
                assert_eq!(idle["stopReason"], "cancelled", "{idle}");
            }
        }
        wire.end();
    }
}

#[test]
fn acpx_14_a_server_that_dies_is_told_to_the_client() {
    for &version in AcpVersion::ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("it");
        let mut wire = RawClient::start(version, &agent(&[]), folder.path());
        let session = wire.session(json!([servers::demo_in_shell(version, "it", &file)]));
        let pid = || std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let first = pid();
        send_signal("KILL", first);
        for status in ["failed", "connected"] {
            let update = wire.update(&session, |it| it["_meta"]["mcpServers"][0]["status"] == status);
            let kind = if version == AcpVersion::V1 { "session_info_update" } else { "notice" };
            assert_eq!(update["sessionUpdate"], kind, "{update}");
        }
        assert_ne!(pid(), first);
        assert_eq!(wire.turn(&session, r#"/it__echo {"text": "again"}"#), "again");
        wire.end();
    }
}

#[test]
fn a_full_agent_stops_idle_servers_until_their_session_is_used() {
    for &version in AcpVersion::ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut wire = RawClient::start(version, &agent(&["--max-sessions", "1"]), folder.path());
        wire.session(json!([]));
        let mut session = |name: &str| {
            wire.session(json!([servers::demo_in_shell(version, name, &folder.path().join(name))]))
        };
        let [first, second] = ["a", "b"].map(&mut session);
        for (session, name) in [(&first, "a"), (&second, "b"), (&first, "a")] {
            assert_eq!(wire.turn(session, &format!(r#"/{name}__echo {{"text": "here"}}"#)), "here");
        }
        wire.session(json!([servers::stdio(version, "c", "green")]));
        let idle = wire.update(&first, |it| it["_meta"]["mcpServers"][0]["status"] == "idle");
        assert_eq!(idle["_meta"]["mcpServers"][0]["name"], "a", "{idle}");
        wire.end();
    }
}

#[test]
fn hd_fr024_the_next_agent_ends_processes_of_a_killed_one() {
    for &version in AcpVersion::ALL {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        let mut wire = RawClient::start(version, &agent(&[]), folder.path());
        let beside = format!("sleep 600 & echo $! > {}; ", of("grandchild").display());
        let script = format!("/bin/sh -c '{beside} exec {} demo-server'", binary().display());
        wire.session(json!([servers::shell(version, "it", &of("child"), &script)]));
        let pid = |name: &str| std::fs::read_to_string(of(name)).unwrap().trim().parse::<u32>().unwrap();
        wire.kill();
        // The server exits at the end of input; its child does not.
        block_until(|| !is_alive(pid("child")));
        assert!(is_alive(pid("grandchild")));
        let mut next = RawClient::start(version, &agent(&[]), folder.path());
        next.session(json!([servers::stdio(version, "next", "green")]));
        block_until(|| !is_alive(pid("grandchild")));
        next.end();
    }
}
