//! The command line: help, usage errors, schemas and exit codes.

use std::process::Stdio;

use crate::support::{DEMO, Run, Workspace, examples};

const HOLODECK: &str = "name: a\ntools: []\n";
const WRONG: &str = "version: 1\nservers:\n  a:\n    transport: stdio\n    comand: x\n";
const UNREACHABLE: &str = "version: 1\nservers:\n  a:\n    transport: stdio\n    command: /no/such/program\n";

#[track_caller]
fn check(config: &str, arguments: &str, want: i32) {
    let workspace = Workspace::dominds(config);
    let run = workspace.run(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(run.code, Some(want), "{arguments}: {run:?}");
}

#[test]
fn exit_codes_are_as_documented() {
    check(DEMO, "check .", 0);
    check(WRONG, "check .", 1);
    check(DEMO, "check nowhere.yaml", 1);
    check(DEMO, "check . nowhere.yaml", 1);
    check(DEMO, "check . --dialect holodeck --profile dominds", 2);
    check(DEMO, "chekc .", 2);
    check(DEMO, "--help", 0);
    check(DEMO, "--version", 0);
    check(DEMO, "tools .", 0);
    check(WRONG, "tools .", 1);
    check(UNREACHABLE, "tools .", 3);
    check(DEMO, "tools . --server nobody", 2);
    check(DEMO, "tools nowhere", 1);
    check(DEMO, "call . mixed", 0);
    check(DEMO, r#"call . fail {"message":"no"}"#, 1);
    check(DEMO, "call . nothing", 1);
    check(DEMO, "call . echo {}", 1);
    check(DEMO, "call . echo {", 2);
    check(DEMO, "call . echo []", 2);
    check(DEMO, "call . exit {}", 1);
    check(WRONG, "call . echo {}", 1);
    check(UNREACHABLE, "call . echo {}", 3);
    check(DEMO, "schema dominds", 0);
    check(DEMO, "schema toml", 2);
    check(DEMO, "schema dominds --profile holodeck-0.7", 2);
    check(DEMO, "demo-server", 0);
    check(DEMO, "demo-server --http 192.0.2.1:80", 2);
}

#[test]
fn version_names_commit_target_and_features() {
    let workspace = Workspace::empty();
    let short = format!("mcp-host {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(workspace.run(&["-V"]).out, short);
    let long = workspace.run(&["--version"]).out;
    let lines: Vec<&str> = long.lines().collect();
    let [version, commit, target, features] = lines.as_slice() else { panic!("{long}") };
    assert_eq!(*version, short.trim_end());
    // A debug build does not look for the commit, because each commit would build it again.
    assert!(commit.strip_prefix("commit: ").is_some_and(|it| !it.is_empty()), "{long}");
    let architecture = std::env::consts::ARCH;
    assert!(target.starts_with(&format!("target: {architecture}-")), "{long}");
    assert_eq!(*features, "features: stdio, http, sse, websocket, keyring, oauth, otel, watch");
}

#[test]
fn examples_in_the_help_work() {
    let workspace = Workspace::dominds(DEMO);
    workspace.write("agent.yaml", HOLODECK);
    let help = workspace.run(&["--help"]).out;
    let lines: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  mcp-host ")).collect();
    assert_eq!(lines.len(), 11, "{help}");
    for line in lines {
        let run = workspace.run(&words(line));
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }
}

/// Splits a line at spaces outside of single quotes.
fn words(line: &str) -> Vec<&str> {
    let mut res = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            res.push(part);
        } else {
            res.extend(part.split_whitespace());
        }
    }
    res
}

#[test]
fn unknown_command_suggests_the_nearest() {
    let run = Workspace::empty().run(&["chekc", "x"]);
    assert!(run.err.contains("'check'"), "{run:?}");
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
}

#[test]
fn schemas_are_json_schemas() {
    let workspace = Workspace::empty();
    for arguments in [
        &["schema", "holodeck"][..],
        &["schema", "dominds"],
        &["schema", "holodeck", "--profile", "holodeck-0.7"],
    ] {
        let schema = workspace.run(arguments).json();
        assert!(
            schema["$schema"].as_str().is_some_and(|url| url.contains("json-schema.org")),
            "{arguments:?}"
        );
        assert!(schema["properties"].is_object(), "{arguments:?}");
    }
}

#[test]
fn colours_need_a_terminal_or_the_option() {
    let workspace = Workspace::dominds(WRONG);
    let painted = |arguments: &[&str], variable: Option<&str>| {
        let mut command = workspace.command(arguments);
        command.envs(variable.map(|it| (it, "1")));
        command.output().unwrap().stdout.contains(&0x1b)
    };
    assert!(!painted(&["check", "."], None));
    assert!(painted(&["check", ".", "--color", "always"], None));
    assert!(!painted(&["check", ".", "--color", "never"], Some("CLICOLOR_FORCE")));
    assert!(!painted(&["check", "."], Some("NO_COLOR")));
    assert!(!painted(&["check", ".", "--format", "json", "--color", "always"], None));
}

#[test]
fn closed_reader_is_not_an_error() {
    let workspace = Workspace::dominds(DEMO);
    let mut child = workspace.command(&["call", ".", "grow", r#"{"bytes":200000}"#]).spawn().unwrap();
    drop(child.stdout.take());
    let run = crate::support::Run::of(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.err.as_str()), (Some(0), "note: reading .minds/mcp.yaml\n"));
}

#[test]
fn full_disk_is_reported() {
    let workspace = Workspace::dominds(DEMO);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = workspace.command(&["check", "."]).stdout(Stdio::from(full)).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("could not write the result"), "{err}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn quickstart_works() {
    let workspace = Workspace::empty();
    let file = examples().join("quickstart/.minds/mcp.yaml");
    let run = workspace.run(&["tools", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("echo"), "{run:?}");
}

/// A configuration in a parent folder is found and reported.
#[test]
fn nearest_configuration_is_used() {
    let workspace = Workspace::dominds(DEMO);
    workspace.write("a/b/file", "");
    let run = |arguments: &[&str]| {
        let output = workspace.command(arguments).current_dir(workspace.path().join("a/b")).output().unwrap();
        crate::support::Run::of(output)
    };
    let ran = run(&["check"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "✓ ../../.minds/mcp.yaml: dominds, 1 server\n"));
    assert_eq!(ran.err, "note: reading ../../.minds/mcp.yaml\n");
    assert_eq!(run(&["tools", "--server", "demo"]).code, Some(0));
    let ran = run(&["check", "."]);
    assert_eq!(ran.code, Some(1), "a folder that is named is the only one: {ran:?}");
}

#[test]
fn configuration_is_read_from_standard_input() {
    let workspace = Workspace::empty();
    let run = workspace.run_with_input(&["check", "-"], DEMO);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "✓ /dev/stdin: dominds, 1 server\n"));
    let run = workspace.run_with_input(&["explain", "-", "--tool", "echo"], DEMO);
    assert!(run.code == Some(0) && run.out.contains("is shown as `echo`"), "{run:?}");
}

#[test]
fn completion_scripts_are_printed() {
    let workspace = Workspace::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = workspace.run(&["completions", shell]);
        assert!(run.code == Some(0) && run.out.contains("MCP_HOST_COMPLETE"), "{shell}: {run:?}");
    }
    let bash = std::process::Command::new("bash").arg("-n").stdin(std::process::Stdio::piped()).spawn();
    let script = workspace.run(&["completions", "bash"]).out;
    let mut bash = bash.unwrap();
    std::io::Write::write_all(&mut bash.stdin.take().unwrap(), script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
}

#[test]
fn names_of_the_configuration_are_completed() {
    let workspace = Workspace::dominds(DEMO);
    // The last word is the one at the cursor.
    let completed = |line: &[&str]| {
        let mut words = vec!["--", "mcp-host"];
        words.extend(line);
        let mut command = workspace.command(&words);
        command.env("MCP_HOST_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", line.len().to_string());
        command
            .env("_CLAP_IFS", "\n")
            .env("_CLAP_COMPLETE_COMP_TYPE", "9")
            .env("_CLAP_COMPLETE_SPACE", "true");
        Run::of(command.output().unwrap()).out
    };
    assert_eq!(completed(&["expl"]), "explain");
    assert_eq!(completed(&["doctor", "--server", ""]), "demo");
    assert_eq!(completed(&["disable", ".", "d"]), "demo");
    // The tools are known after the first run.
    assert_eq!(completed(&["call", ".", "ec"]), "");
    assert_eq!(workspace.run(&["tools", "."]).code, Some(0));
    assert_eq!(completed(&["call", ".", "ec"]), "echo");
    assert_eq!(completed(&["tools", "--schema", "ad"]), "add");
    assert_eq!(completed(&["tools", ".", "gr"]), "grow");
    assert_eq!(completed(&["lock", "--update", "demo/gr"]), "demo/grow");
    assert_eq!(completed(&["add", ".", "d"]), "");
    // Names with the name of the server.
    workspace
        .write("mcp.json", r#"{"mcpServers": {"demo": {"command": "mcp-host", "args": ["demo-server"]}}}"#);
    assert_eq!(workspace.run(&["tools", "mcp.json"]).code, Some(0));
    assert_eq!(completed(&["tools", "mcp.json", "demo__ec"]), "demo__echo");
    assert!(completed(&["tools", "mcp.json", "demo__e"]).lines().any(|it| it == "demo__echo"));
}

#[test]
fn manual_page_has_every_command() {
    let workspace = Workspace::empty();
    let help = workspace.run(&["-h"]).out;
    let commands = help.lines().skip_while(|it| *it != "Commands:").skip(1).take_while(|it| !it.is_empty());
    let manual = workspace.run(&["man"]).out;
    let mut seen = 0;
    for line in commands {
        let Some(name) = line.strip_prefix("  ").and_then(|it| it.split(' ').next()) else { continue };
        if name.is_empty() || name == "help" {
            continue;
        }
        let heading = format!(".SH \"MCP\\-HOST {}\"", name.replace('-', "\\-").to_uppercase());
        assert!(manual.contains(&heading), "{heading}: {manual}");
        seen += 1;
    }
    assert!(seen > 10 && !manual.contains("mcp\\-host\\-check(1)"), "{seen} {manual}");
}

/// Invalid inputs: each error names the mistake and, if possible, a solution.
#[test]
fn invalid_configuration_files_are_explained() {
    let workspace = Workspace::dominds(DEMO);
    std::fs::write(workspace.path().join("binary.json"), b"\x7fELF\n\xff\xff").unwrap();
    std::fs::write(workspace.path().join("wide.json"), b"\xff\xfe{\0}\0").unwrap();
    std::fs::write(workspace.path().join("huge.json"), vec![b' '; (8 << 20) + 1]).unwrap();
    workspace.write("empty.yaml", "");
    workspace.write("folder.json/x", "");
    workspace.write("server.json", r#"{"name": "io.example/a", "remotes": []}"#);
    for (arguments, code, want) in [
        (&["check", "gone.yaml"][..], 1, "cannot read gone.yaml: it does not exist"),
        (&["check", "binary.json"], 1, "line 2 is not UTF-8; save the file as UTF-8 text"),
        (&["tools", "wide.json"], 1, "it is UTF-16; save it as UTF-8"),
        (&["doctor", "huge.json"], 1, "it is larger than 8 MiB"),
        (&["check", "empty.yaml"], 1, "help: add `--dialect holodeck`"),
        (&["check", "-"], 1, "/dev/stdin is empty, and its name does not determine"),
        (
            &["check", "server.json"],
            1,
            "server.json: this is the server.json of a published server, which is not read yet",
        ),
        (
            &["check", "server.json"],
            1,
            "help: add the server that it describes to an mcp.json: `mcp-host add`, with `--server-json` for a",
        ),
        (
            &["convert", "folder.json", "--to", "dominds"],
            1,
            "the folder folder.json contains none of .minds/mcp.yaml",
        ),
        (&["convert", ".", "--to", "mcp-json", "-o", "empty.yaml"], 1, "empty.yaml already exists"),
        (
            &["convert", ".", "--to", "mcp-json", "-o", "no/a.json"],
            1,
            "cannot write no/a.json: it does not exist",
        ),
        (
            &["add", "new.txt", "a", "--command", "b"],
            1,
            "help: name it .mcp.json, .minds/mcp.yaml or agent.yaml",
        ),
        (&["tools", ".", "--env-file", "binary.json"], 1, "cannot read the environment file binary.json"),
        (&["call", ".", "echo", "text"], 2, "help: write one JSON object in single quotes"),
        (&["call", ".", "echo", "-", "-"], 2, "with several arguments, each must be name=value"),
        (&["serve", ".", "--http", "8807"], 2, "write an address and a port, such as 127.0.0.1:8807"),
        (&["serve", ".", "--stdio", "--only", "nobody"], 1, "the servers are: demo"),
        (&["replay", "folder.json"], 1, "could not read folder.json: is a directory"),
        (&["check", "--no-such-flag"], 2, "unexpected argument '--no-such-flag'"),
    ] {
        let run = workspace.run(arguments);
        // `check` prints diagnostics to standard output.
        let said = format!("{}{}", run.out, run.err);
        assert!(run.code == Some(code) && said.contains(want), "{arguments:?}: {run:?}");
        assert!(!said.contains("panicked"), "{run:?}");
    }
}
