//! `tools`: lists, and errors for missing servers and tools.

use crate::support::{DEMO, HttpDemo, Run, Workspace};

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

#[test]
fn filter_lists_the_tools_that_match() {
    let workspace = Workspace::dominds(DEMO);
    for arguments in [&["tools", ".", "e*", "ADD"][..], &["tools", "e*", "add"]] {
        let run = workspace.run(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        let names: Vec<&str> =
            run.out.lines().skip(1).map_while(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["echo", "add", "exit", "env"], "{run:?}");
    }
    let document = workspace.run(&["tools", ".", "add", "--format", "json"]).json();
    assert_eq!(document["tools"].as_array().unwrap().len(), 1);
    let run = workspace.run(&["tools", ".", "nothing*"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.ends_with("error: no tool matches `nothing*`\n"), "{run:?}");
    let run = workspace.run_with_input(&["shell", "."], "tools ad*\ntools nothing\n");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("\n1 tool, ") && run.err.contains("no tool matches `*nothing*`"), "{run:?}");
}

#[test]
fn width_of_the_table_is_that_of_columns() {
    let workspace = Workspace::dominds(DEMO);
    let lines = |columns: Option<&str>| -> Vec<String> {
        let mut command = workspace.command(&["tools", "."]);
        match columns {
            Some(columns) => command.env("COLUMNS", columns),
            None => command.env_remove("COLUMNS"),
        };
        let run = Run::of(command.output().unwrap());
        run.out.lines().take(13).map(str::to_owned).collect()
    };
    // Nothing is cut in a pipe.
    assert!(lines(None).iter().all(|line| !line.contains('…')));
    let mixed = "mixed         demo        35  reads     Answers with every kind of content: text, image, audio, \
        resource and link";
    assert!(lines(None).iter().any(|line| line.starts_with(mixed)), "{:#?}", lines(None));
    // A terminal that is too narrow shows whole names, and no descriptions.
    for (columns, heading) in [
        ("60", "TOOL          SERVER  TOKENS  HINT      DESCRIPTION"),
        ("40", "TOOL          SERVER  TOKENS  HINT"),
        ("8", "TOOL"),
    ] {
        let lines = lines(Some(columns));
        assert_eq!(lines[0], heading);
        assert!(
            lines.iter().any(|line| line.split_whitespace().next() == Some("change_tools")),
            "{lines:#?}"
        );
    }
}

/// A server with tools whose schemas are wrong, and one that the demo server has too.
const ODD: &str = r##"
answer() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}' ;;
  *'"tools/list"'*) answer '{"tools":[
    {"name":"typo","inputSchema":{"type":"object","properties":{"a":{"type":"strin"}}}},
    {"name":"dangling","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}},
    {"name":"text","inputSchema":{"type":"string"}},
    {"name":"result","inputSchema":{"type":"object"},"outputSchema":{"type":"objekt"}},
    {"name":"whole","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["n"]}},
    {"name":"whole","inputSchema":{"type":"object"}},
    {"name":"echo","inputSchema":{"type":"object"}}]}' ;;
  *'"tools/call"'*) answer '{"content":[{"type":"text","text":"a text"}],"structuredContent":{"m":1}}' ;;
  *'"method":"notifications/'*) ;;
  *) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"unknown"}}' ;;
  esac
done
"##;

#[test]
fn invalid_schemas_and_collisions_are_warnings() {
    let workspace = Workspace::dominds(&format!("{DEMO}  odd:\n    transport: stdio\n    command: odd\n"));
    workspace.script("odd", &ODD.replace("\n    {", "{"));
    let collision = "warning: tool `echo` of server `odd` is skipped: the name `echo` is taken by tool `echo` of \
        server `demo`";
    let run = workspace.run(&["tools", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for want in [
        "arguments of tool `typo` of server `odd` are passed on unchecked: its schema cannot be used: \
        /properties/a/type is `strin`, which is no type",
        "/properties/a/$ref is `#/$defs/none`, which does not exist",
        "its type must be `object` and is `string`",
        "structured results of tool `result` of server `odd` are passed on unchecked: its schema cannot be used: \
        /type is `objekt`, which is no type",
        collision,
        "the name `whole` is taken by tool `whole` of server `odd`\n  help: both are of one server: the first one \
        is used",
    ] {
        assert!(run.out.contains(want), "{want}: {run:?}");
    }
    let call = workspace.run(&["call", ".", "whole"]);
    let want = "warning: the structured content does not fit the tool's output schema: \"n\" is a required property\n";
    assert!(call.code == Some(0) && call.out.starts_with("a text\n") && call.err.contains(want), "{call:?}");
    assert!(run.out.contains("! odd   ready (legacy)  "), "{run:?}");
    let run = workspace.run(&["doctor", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.out.contains(
            "\n! odd  the tool `typo` has a mistake: its schema cannot be used: /properties/a/type is \
            `strin`, which is no type (and 3 more); 7 tools\n"
        ),
        "{run:?}"
    );
    assert!(run.out.contains(&format!("\n{collision}\n  help: rename")), "{run:?}");
    let document = workspace.run(&["doctor", ".", "--format", "json"]).json();
    assert_eq!(document["problems"][1]["id"], "mcp/server/odd/tool_collision/echo");
}
