//! `tools`: lists, and errors for missing servers and tools.

use crate::support::{DEMO, HttpDemo, Workspace};

const BROKEN: &str = "  broken:\n    transport: stdio\n    command: /no/such/program\n";
const REJECTED: &str = "  rejected:\n    transport: stdio\n";

#[test]
fn output_is_one_json_document() {
    let run = Workspace::dominds(DEMO).run(&["tools", ".", "--format", "json"]);
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
fn failed_server_does_not_affect_others() {
    let workspace = Workspace::dominds(&format!("{DEMO}{BROKEN}"));
    let run = workspace.run(&["tools", "."]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("\necho ") && run.out.contains("✓ demo    ready (modern)\n"), "{run:?}");
    assert!(run.out.contains("✗ broken  failed  MCPConnectionError: "), "{run:?}");
    let document = workspace.run(&["tools", ".", "--format", "json"]).json();
    assert_eq!(document["servers"][1]["error"]["kind"], "MCPConnectionError");
    assert_eq!(document["problems"][0]["id"], "mcp/server/broken/server_error");
    assert_eq!(workspace.run(&["tools", ".", "--server", "demo"]).code, Some(0));
}

#[test]
fn invalid_entry_takes_precedence_over_unreachable_server() {
    let workspace = Workspace::dominds(&format!("{DEMO}{BROKEN}{REJECTED}"));
    let run = workspace.run(&["tools", ".", "--format", "json"]);
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
fn unknown_server_is_a_usage_error() {
    let run = Workspace::dominds(DEMO).run(&["tools", ".", "--server", "dmeo"]);
    assert_eq!(
        run.err,
        "note: reading .minds/mcp.yaml\nerror: there is no server `dmeo`; the servers are: demo\n"
    );
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
}

#[test]
fn http_server_is_listed_and_called() {
    let workspace = Workspace::empty();
    let demo = HttpDemo::start(&workspace);
    let text =
        format!("version: 1\nservers:\n  web:\n    transport: streamable_http\n    url: {}\n", demo.url);
    workspace.write(".minds/mcp.yaml", &text);
    let run = workspace.run(&["tools", "."]);
    assert!(run.out.contains("\necho ") && run.out.contains("✓ web  ready (modern)\n"), "{run:?}");
    let run = workspace.run(&["call", ".", "add", r#"{"a":2,"b":3}"#, "--format", "json"]);
    assert_eq!((run.code, &run.json()["metadata"]["server"]), (Some(0), &"web".into()));
    drop(demo);
    let run = workspace.run(&["tools", "."]);
    assert_eq!(run.code, Some(3), "{run:?}");
}

/// A replacement for `npx` that leaves a trace file.
const TRACE: &str = "echo started >> \"$HOME/trace\"; exec sleep 60";
const SOUND: &str =
    "name: a\ntools:\n  - {name: one, type: mcp, description: d, server: s, command: npx, args: [x]}\n";

#[test]
fn refused_file_starts_no_server() {
    let workspace = Workspace::empty();
    workspace.script("npx", TRACE);
    workspace.write(
        "agent.yaml",
        &format!("{SOUND}  - {{name: two, type: mcp, description: d, server: s, command: bash}}\n"),
    );
    let run = workspace.run(&["tools", ".", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("Invalid command 'bash'. Supported commands: npx, uvx, docker"), "{run:?}");
    let document = run.json();
    assert_eq!(document["problems"][0]["id"], "mcp/workspace_config_error");
    assert_eq!(document["servers"][1]["error"]["kind"], "MCPConfigError");
    assert_eq!(document["servers"].as_array().unwrap().len(), 2);
    let run = workspace.run(&["call", ".", "one__x", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.json()["error"]["kind"], "ConfigError");
    assert!(!workspace.path().join("trace").exists());
}

/// Shows that the check of the test above is meaningful: a valid file leaves the trace.
#[test]
fn valid_acp_request_starts_its_servers() {
    let workspace = Workspace::empty();
    workspace.script("npx", "echo started > \"$HOME/trace\"; exit 1");
    workspace.write("agent.yaml", SOUND);
    assert_eq!(workspace.run(&["tools", "."]).code, Some(3));
    assert!(workspace.path().join("trace").exists());
}

#[test]
fn server_text_is_sanitized() {
    let workspace =
        Workspace::dominds("version: 1\nservers:\n  rude:\n    transport: stdio\n    command: rude\n");
    workspace.script("rude", r#"printf '\033]0;owned\007\033[2Jgo away\r\n' >&2; exit 1"#);
    for format in ["text", "json"] {
        let run = workspace.run(&["tools", ".", "--color", "always", "--format", format]);
        assert!(run.out.contains("go away"), "{run:?}");
        assert!(
            !run.out.contains("\u{1b}]") && !run.out.contains("\u{1b}[2J") && !run.out.contains('\u{7}'),
            "{run:?}"
        );
    }
}
