//! `tools`: what is there, what is not, and why.

use crate::support::{DEMO, HttpDemo, Place};

const BROKEN: &str = "  broken:\n    transport: stdio\n    command: /no/such/program\n";
const REJECTED: &str = "  rejected:\n    transport: stdio\n";

#[test]
fn the_document_is_one_and_has_its_members() {
    let run = Place::dominds(DEMO).run(&["tools", ".", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let document = run.json();
    assert!(document["generation"].as_u64().is_some_and(|it| it > 0));
    let echo = &document["tools"][0];
    assert_eq!(
        (&echo["name"], &echo["server"], &echo["original_name"]),
        (&"echo".into(), &"demo".into(), &"echo".into())
    );
    assert_eq!(echo["input_schema"]["type"], "object");
    assert_eq!(
        document["servers"],
        serde_json::json!([{"name": "demo", "state": "ready", "era": "modern", "error": null}])
    );
    assert_eq!(document["problems"], serde_json::json!([]));
}

#[test]
fn one_bad_server_stays_alone() {
    let place = Place::dominds(&format!("{DEMO}{BROKEN}"));
    let run = place.run(&["tools", "."]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("\necho ") && run.out.contains("✓ demo    ready (modern)\n"), "{run:?}");
    assert!(run.out.contains("✗ broken  failed  MCPConnectionError: "), "{run:?}");
    let document = place.run(&["tools", ".", "--format", "json"]).json();
    assert_eq!(document["servers"][1]["error"]["kind"], "MCPConnectionError");
    assert_eq!(document["problems"][0]["id"], "mcp/server/broken/server_error");
    assert_eq!(place.run(&["tools", ".", "--server", "demo"]).code, Some(0));
}

#[test]
fn an_entry_that_is_written_wrongly_is_named_and_counts_more() {
    let place = Place::dominds(&format!("{DEMO}{BROKEN}{REJECTED}"));
    let run = place.run(&["tools", ".", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("servers.rejected.command must be a non-empty string"), "{run:?}");
    let document = run.json();
    let rejected =
        document["servers"].as_array().unwrap().iter().find(|it| it["name"] == "rejected").unwrap();
    assert_eq!(
        (&rejected["state"], &rejected["error"]["kind"]),
        (&"failed".into(), &"MCPConfigError".into())
    );
    assert_eq!(document["tools"].as_array().unwrap().len(), 12);
}

#[test]
fn a_server_that_is_not_there_is_a_usage_error() {
    let run = Place::dominds(DEMO).run(&["tools", ".", "--server", "dmeo"]);
    assert_eq!(run.err, "note: reading .minds/mcp.yaml\nerror: there is no server `dmeo`; there are: demo\n");
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
}

#[test]
fn a_server_over_http_is_like_any_other() {
    let place = Place::empty();
    let demo = HttpDemo::start(&place);
    let text =
        format!("version: 1\nservers:\n  web:\n    transport: streamable_http\n    url: {}\n", demo.url);
    place.write(".minds/mcp.yaml", &text);
    let run = place.run(&["tools", "."]);
    assert!(run.out.contains("\necho ") && run.out.contains("✓ web  ready (modern)\n"), "{run:?}");
    let run = place.run(&["call", ".", "add", r#"{"a":2,"b":3}"#, "--format", "json"]);
    assert_eq!((run.code, &run.json()["metadata"]["server"]), (Some(0), &"web".into()));
    drop(demo);
    let run = place.run(&["tools", "."]);
    assert_eq!(run.code, Some(3), "{run:?}");
}

/// A program in place of `npx` that leaves a trace.
const TRACE: &str = "echo started >> \"$HOME/trace\"; exec sleep 60";
const SOUND: &str =
    "name: a\ntools:\n  - {name: one, type: mcp, description: d, server: s, command: npx, args: [x]}\n";

#[test]
fn a_refused_file_starts_nothing() {
    let place = Place::empty();
    place.script("npx", TRACE);
    place.write(
        "agent.yaml",
        &format!("{SOUND}  - {{name: two, type: mcp, description: d, server: s, command: bash}}\n"),
    );
    let run = place.run(&["tools", ".", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("Invalid command 'bash'. Supported commands: npx, uvx, docker"), "{run:?}");
    let document = run.json();
    assert_eq!(document["problems"][0]["id"], "mcp/workspace_config_error");
    assert_eq!(document["servers"][1]["error"]["kind"], "MCPConfigError");
    assert_eq!(document["servers"].as_array().unwrap().len(), 2);
    let run = place.run(&["call", ".", "one__x", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.json()["error"]["kind"], "ConfigError");
    assert!(!place.path().join("trace").exists());
}

/// The trace of the test above is one that a sound file does leave.
#[test]
fn a_sound_file_starts_its_servers() {
    let place = Place::empty();
    place.script("npx", "echo started > \"$HOME/trace\"; exit 1");
    place.write("agent.yaml", SOUND);
    assert_eq!(place.run(&["tools", "."]).code, Some(3));
    assert!(place.path().join("trace").exists());
}

#[test]
fn a_strangers_words_do_not_command_the_terminal() {
    let place = Place::dominds("version: 1\nservers:\n  rude:\n    transport: stdio\n    command: rude\n");
    place.script("rude", r#"printf '\033]0;owned\007\033[2Jgo away\r\n' >&2; exit 1"#);
    for format in ["text", "json"] {
        let run = place.run(&["tools", ".", "--color", "always", "--format", format]);
        assert!(run.out.contains("go away"), "{run:?}");
        assert!(
            !run.out.contains("\u{1b}]") && !run.out.contains("\u{1b}[2J") && !run.out.contains('\u{7}'),
            "{run:?}"
        );
    }
}
