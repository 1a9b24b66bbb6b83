//! Swaps under a lock file: what a server starts is bound, and nothing else starts.
//!
//! Each program leaves a mark when it starts, so a test sees what was started.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::{check, read};
use crate::support::{HttpDemo, PROGRAM, Run, Workspace};

const FILE: &str = "repo/.mcp.json";
const ENTRY: &str = r#"{"command": "./server.sh", "args": ["--serve"], "env": {"TOKEN": "first-value"}}"#;

fn run(workspace: &Workspace, arguments: &[&str]) -> Run {
    Run::of(workspace.command(arguments).current_dir(workspace.path().join("repo")).output().unwrap())
}

fn write_entry(workspace: &Workspace, name: &str, entry: &str) {
    workspace.write(FILE, &format!("{{\"mcpServers\": {{\"{name}\": {entry}}}}}"));
}

/// Writes a program that leaves a mark and is the demo server.
fn write_program(workspace: &Workspace, name: &str, mark: &str) {
    let started = workspace.path().join("started");
    let text = format!("#!/bin/sh\necho {mark} >> '{}'\nexec '{PROGRAM}' demo-server\n", started.display());
    workspace.write(name, &text);
    fs::set_permissions(workspace.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn marks(workspace: &Workspace) -> String {
    fs::read_to_string(workspace.path().join("started")).unwrap_or_default()
}

/// A locked project with this entry, and no marks.
fn locked(entry: &str) -> Workspace {
    let workspace = Workspace::empty();
    write_program(&workspace, "repo/server.sh", "good");
    write_program(&workspace, "repo/evil.sh", "evil");
    write_entry(&workspace, "own", entry);
    lock(&workspace);
    workspace
}

fn lock(workspace: &Workspace) {
    let locked = run(workspace, &["lock", "."]);
    assert_eq!(locked.code, Some(0), "{locked:?}");
    let tools = run(workspace, &["tools", ".", "--locked"]);
    assert_eq!(tools.code, Some(0), "{tools:?}");
    let _ = fs::remove_file(workspace.path().join("started"));
}

/// No command starts anything, each names what differs, and approving it is possible.
#[track_caller]
fn check_refused(workspace: &Workspace, difference: &str) {
    let before = read(workspace, "repo/mcp.lock");
    assert_ne!(run(workspace, &["call", ".", "echo", "text=a"]).code, Some(0));
    for command in [&["tools", "."], &["doctor", "."]] {
        let refused = run(workspace, command);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let text = refused.out + &refused.err;
        assert!(text.contains(difference), "{difference} is not in {text}");
        assert!(text.contains("mcp-host lock --update "), "{text}");
    }
    for command in [&["lock", "."][..], &["lock", ".", "--check"]] {
        check(
            &run(workspace, command),
            1,
            &["not started: it is not what the lock file approves", difference],
        );
    }
    assert_eq!((marks(workspace).as_str(), read(workspace, "repo/mcp.lock")), ("", before));
}

/// RPT-295
#[test]
fn rpt_295_replaced_entry_does_not_start() {
    let workspace = locked(ENTRY);
    write_entry(&workspace, "own", &ENTRY.replace("server.sh", "evil.sh"));
    check_refused(&workspace, "command: `./evil.sh`, approved: `./server.sh`");
    // The user approves it by its name.
    check(&run(&workspace, &["lock", ".", "--update", "own"]), 0, &["program command: `./evil.sh`"]);
    check(&run(&workspace, &["tools", "."]), 0, &[]);
    assert_eq!(marks(&workspace), "evil\nevil\n");
}

/// RPT-295
#[test]
fn rpt_295_added_argument_does_not_start() {
    let workspace = locked(ENTRY);
    write_entry(&workspace, "own", &ENTRY.replace("\"--serve\"", "\"--serve\", \"--root=/\""));
    check_refused(&workspace, "arguments: `--serve --root=/`, approved: `--serve`");
}

/// RPT-295
#[test]
fn rpt_295_moved_url_is_not_connected() {
    let workspace = Workspace::empty();
    let (one, other) = (HttpDemo::start(&workspace), HttpDemo::start(&workspace));
    let entry =
        |url: &str| format!("{{\"type\": \"http\", \"url\": \"{url}\", \"headers\": {{\"X-A\": \"b\"}}}}");
    write_entry(&workspace, "own", &entry(&one.url));
    lock(&workspace);
    write_entry(&workspace, "own", &entry(&other.url));
    check_refused(&workspace, &format!("url: `{}`", other.url));
    write_entry(&workspace, "own", &entry(&one.url).replace("X-A", "X-B"));
    check_refused(&workspace, "headers: `X-B`, approved: `X-A`");
}

/// RPT-295
#[test]
fn rpt_295_program_that_shadows_another_on_the_path_does_not_start() {
    let entry = r#"{"command": "toolbox", "env": {"PATH": "${PATH}"}}"#;
    let workspace = Workspace::empty();
    write_program(&workspace, "bin/toolbox", "good");
    write_entry(&workspace, "own", entry);
    lock(&workspace);
    write_program(&workspace, "repo/tools/toolbox", "evil");
    let folder = workspace.path().join("repo/tools").display().to_string();
    write_entry(&workspace, "own", &entry.replace("${PATH}", &format!("{folder}:${{PATH}}")));
    check_refused(&workspace, "variables: `PATH=");
    // The same with the `PATH` of the user, which leads into the project.
    write_entry(&workspace, "own", entry);
    let path = format!("{folder}:{}/bin:/usr/bin:/bin", workspace.path().display());
    let mut command = workspace.command(&["tools", "."]);
    let refused = command.current_dir(workspace.path().join("repo")).env("PATH", path).output().unwrap();
    let refused = Run::of(refused);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let text = refused.out + &refused.err;
    assert!(text.contains("files: `tools/toolbox blake3:"), "{text}");
    assert_eq!(marks(&workspace), "");
}

/// RPT-295
#[test]
fn rpt_295_edited_script_does_not_start() {
    let workspace = locked(ENTRY);
    write_program(&workspace, "repo/server.sh", "edited");
    check_refused(&workspace, "files: `server.sh blake3:");
}

/// RPT-295
#[test]
fn rpt_295_turned_link_does_not_start() {
    let workspace = Workspace::empty();
    write_program(&workspace, "repo/one/run.sh", "good");
    write_program(&workspace, "repo/two/run.sh", "good");
    let link = workspace.path().join("repo/current");
    symlink("one", &link).unwrap();
    write_entry(&workspace, "own", r#"{"command": "./current/run.sh"}"#);
    lock(&workspace);
    // The scripts are equal, and may load different files of their folders.
    fs::remove_file(&link).unwrap();
    symlink("two", &link).unwrap();
    check_refused(&workspace, "current/run.sh -> two/run.sh");
}

/// RPT-295
#[test]
fn rpt_295_added_variable_does_not_start() {
    let workspace = locked(ENTRY);
    write_entry(&workspace, "own", &ENTRY.replace("\"TOKEN\"", "\"LD_PRELOAD\": \"./evil.so\", \"TOKEN\""));
    check_refused(&workspace, "variables: `LD_PRELOAD=");
    // A changed value of a variable needs no approval, and is in no lock file.
    write_entry(&workspace, "own", &ENTRY.replace("first-value", "second-value"));
    check(&run(&workspace, &["tools", "."]), 0, &[]);
    assert!(!read(&workspace, "repo/mcp.lock").contains("first-value"));
}

/// RPT-295
#[test]
fn rpt_295_other_case_is_another_program_and_another_server() {
    let workspace = locked(ENTRY);
    write_program(&workspace, "repo/Server.sh", "evil");
    write_entry(&workspace, "own", &ENTRY.replace("server.sh", "Server.sh"));
    check_refused(&workspace, "command: `./Server.sh`");
    write_entry(&workspace, "Own", ENTRY);
    check_refused(&workspace, "it is not in the lock file");
}

/// RPT-295
#[test]
fn rpt_295_look_alike_letter_is_visible_and_does_not_start() {
    let workspace = locked(ENTRY);
    write_program(&workspace, "repo/s\u{435}rver.sh", "evil");
    write_entry(&workspace, "own", &ENTRY.replace("server.sh", "s\u{435}rver.sh"));
    check_refused(&workspace, "command: `./s\\u{435}rver.sh`");
}

/// RPT-295
#[test]
fn rpt_295_second_file_does_not_replace_the_locked_one() {
    let workspace = locked(ENTRY);
    let evil = "version: 1\nservers:\n  own:\n    transport: stdio\n    command: ../evil.sh\n";
    workspace.write("repo/.minds/mcp.yaml", evil);
    for command in [&["tools", "."][..], &["tools"], &["lock", "."], &["serve", ".", "--stdio"]] {
        let refused = run(&workspace, command);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let is_told = refused.err.contains(".minds/mcp.yaml has no lock file")
            && refused.err.contains(".mcp.json has one; name the file to use");
        assert!(is_told, "{refused:?}");
    }
    assert_eq!(marks(&workspace), "");
    check(&run(&workspace, &["tools", ".mcp.json"]), 0, &[]);
    assert_eq!(marks(&workspace), "good\n");
}

/// RPT-295
#[test]
fn rpt_295_other_profile_is_another_program() {
    // A program that replaces `${HOME}` starts another argument than one that passes it on.
    let workspace = locked(&ENTRY.replace("--serve", "${HOME}"));
    let before = read(&workspace, "repo/mcp.lock");
    let lock: Value = serde_json::from_str(&before).unwrap();
    assert_eq!(lock["programs"]["own"]["arguments"], json!(["${HOME}"]));
    let refused = run(&workspace, &["tools", ".", "--dialect", "vscode"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_eq!(marks(&workspace), "");
}

/// RPT-296
#[test]
fn rpt_296_lock_of_version_1_is_read_and_asks_to_be_renewed() {
    let workspace = locked(ENTRY);
    let new = read(&workspace, "repo/mcp.lock");
    let mut old: Value = serde_json::from_str(&new).unwrap();
    old["version"] = json!(1);
    old.as_object_mut().unwrap().remove("programs");
    workspace.write("repo/mcp.lock", &old.to_string());
    let note = "the lock file has version 1, which does not bind what the servers start";
    check(&run(&workspace, &["tools", "."]), 0, &[note, "`mcp-host lock --all` renews it"]);
    check(&run(&workspace, &["lock", "."]), 0, &[note]);
    check(&run(&workspace, &["lock", ".", "--all"]), 0, &["is written"]);
    assert_eq!(read(&workspace, "repo/mcp.lock"), new);
}

/// RPT-295
#[test]
fn rpt_295_reload_keeps_the_old_instance_until_the_lock_approves_the_new_one() {
    let workspace = locked(ENTRY);
    let running = super::long_commands::RunningCommand::start_in(&workspace, "repo", &["watch", "."]);
    running.until("ready own");
    assert_eq!(marks(&workspace), "good\n");
    write_entry(&workspace, "own", &ENTRY.replace("server.sh", "evil.sh"));
    running.until("it is not what the lock file approves");
    assert_eq!(marks(&workspace), "good\n");
    let approved = run(&workspace, &["lock", ".", "--update", "own"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    running.until("ready own");
    assert_eq!(marks(&workspace), "good\nevil\nevil\n");
    running.end();
}
