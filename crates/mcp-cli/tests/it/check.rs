//! `check`: diagnostics in all formats.

use crate::support::{DEMO, Workspace};

const MISTAKES: &str = "\
version: 1
servers:
  good:
    transport: stdio
    command: mcp-host
  bad:
    transport: stdio
    comand: mcp-host
  worse:
    transport: carrier-pigeon
";

#[test]
fn diagnostics_show_positions() {
    let workspace = Workspace::dominds(MISTAKES);
    let run = workspace.run(&["check", ".minds/mcp.yaml"]);
    assert_eq!((run.code, run.err.as_str()), (Some(1), ""));
    insta::assert_snapshot!(run.out);
}

#[test]
fn output_is_one_json_document() {
    let workspace = Workspace::dominds(MISTAKES);
    workspace.write("other/agent.yaml", "name: a\ntools: []\n");
    let run = workspace.run(&["check", ".minds/mcp.yaml", "other", "nowhere.yaml", "--format", "json"]);
    assert_eq!((run.code, run.err.as_str()), (Some(1), "note: reading other/agent.yaml\n"));
    let mut document = run.json();
    let files = document["files"].as_array_mut().unwrap();
    assert_eq!(files.len(), 3);
    let servers = serde_json::to_string(&files[0]["servers"]).unwrap();
    assert_eq!(
        servers,
        concat!(
            r#"[{"name":"good","transport":"stdio","accepted":true},"#,
            r#"{"name":"bad","transport":"stdio","accepted":false},"#,
            r#"{"name":"worse","transport":null,"accepted":false}]"#
        )
    );
    for diagnostic in files[0]["diagnostics"].as_array().unwrap() {
        let members: Vec<&String> = diagnostic.as_object().unwrap().keys().collect();
        let want = ["severity", "code", "kind", "message", "pointer", "line", "column", "help"];
        let mut want: Vec<String> = want.map(str::to_owned).to_vec();
        want.sort();
        let mut got: Vec<String> = members.into_iter().cloned().collect();
        got.sort();
        assert_eq!(got, want);
    }
    assert_eq!(files[1]["path"], "other/agent.yaml");
    assert_eq!(files[1]["dialect"], "holodeck");
    assert_eq!(files[2]["diagnostics"][0]["message"], "cannot read nowhere.yaml: it does not exist");
}

#[test]
fn valid_file_prints_one_line() {
    let run = Workspace::dominds(DEMO).run(&["check", "."]);
    assert_eq!(run.out, "✓ .minds/mcp.yaml: dominds, 1 server\n");
    assert_eq!((run.code, run.err.as_str()), (Some(0), "note: reading .minds/mcp.yaml\n"));
}

#[test]
fn warnings_do_not_change_the_exit_code() {
    let workspace = Workspace::dominds(&DEMO.replace("    args", "    colour: red\n    args"));
    let run = workspace.run(&["check", "."]);
    assert!(run.out.ends_with("✓ .minds/mcp.yaml: dominds, 1 server; 1 warning\n"), "{run:?}");
    assert_eq!(run.code, Some(0));
}

#[track_caller]
fn check(files: &[&str], want: &str) {
    let workspace = Workspace::empty();
    for file in files {
        workspace.write(file, if file.ends_with("agent.yaml") { "name: a\ntools: []\n" } else { DEMO });
    }
    let run = workspace.run(&["check", "."]);
    assert_eq!(run.err + &run.out, want);
}

#[test]
fn folder_selects_its_configuration() {
    check(
        &["agent.yaml", ".minds/mcp.yaml"],
        "note: reading .minds/mcp.yaml\n✓ .minds/mcp.yaml: dominds, 1 server\n",
    );
    check(&["agent.yaml"], "note: reading agent.yaml\n✓ agent.yaml: holodeck, 0 servers\n");
    check(
        &["mcp.yaml"],
        "error: ConfigError: the folder . contains none of .minds/mcp.yaml, agent.yaml, .mcp.json, .vscode/mcp.json, \
         .cursor/mcp.json, .kiro/settings/mcp.json, .roo/mcp.json, mcp.json\n",
    );
}

#[test]
fn unknown_dialect_suggests_the_option() {
    let workspace = Workspace::empty();
    workspace.write("x.yaml", "a: 1\n");
    let run = workspace.run(&["check", "x.yaml"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.out.ends_with(
            "  help: add `--dialect holodeck`, `--dialect dominds`, `--dialect mcp-json` or `--dialect acp`\n"
        ),
        "{run:?}"
    );
    let run = workspace.run(&["check", "x.yaml", "--dialect", "dominds", "--format", "json"]);
    assert_eq!(run.json()["files"][0]["dialect"], "dominds");
}

/// HD-134: a missing variable fails the whole HoloDeck file; DM-122: it fails one Dominds server.
#[test]
fn hd_134_dm_122_missing_variable_fails_file_or_server() {
    let workspace = Workspace::dominds(&format!(
        "{DEMO}    env: {{ A: {{ env: MCP_HOST_TEST_UNSET }} }}\n  other:\n    transport: stdio\n    command: x\n"
    ));
    let servers = workspace.run(&["check", ".", "--format", "json"]).json()["files"][0]["servers"].clone();
    assert_eq!((&servers[0]["accepted"], &servers[1]["accepted"]), (&false.into(), &true.into()));
    workspace.write(".env", "MCP_HOST_TEST_UNSET=1\n");
    let run = workspace.run(&["check", ".", "--env-file", ".env"]);
    assert_eq!(run.code, Some(0), "{run:?}");
}
