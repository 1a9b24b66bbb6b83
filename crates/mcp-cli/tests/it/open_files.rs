//! Files that options name, and the limit of open files of the program and of its servers.

use std::process::Stdio;

use mcp_testkit::process::{catches_signal, send_signal, wait_for_exit};
use mcp_testkit::wait::block_until;
use nix::sys::stat::Mode;

use crate::support::{Run, Workspace};

/// Every option that names a file, with what is required beside it. `FILE` is the file.
const FILE_OPTIONS: [&[&str]; 14] = [
    &["check", "FILE"],
    &["tools", "FILE"],
    &["check", "good.json", "--env-file", "FILE"],
    &["tools", "good.json", "--env-file", "FILE"],
    &["import", "--from", "FILE", "--into", ".mcp.json"],
    &["add", "--server-json", "FILE", "new.json", "name"],
    &["schema", "--compare", "FILE", "FILE"],
    &["record", "good.json", "--calls", "FILE", "--out", "out.jsonl"],
    &["replay", "FILE"],
    &["call", "good.json", "a__t", "@FILE"],
    &["serve", "good.json", "--http", "127.0.0.1:0", "--token-file", "FILE"],
    &["serve", "good.json", "--http", "127.0.0.1:0", "--auth", "https://id.example", "--scope-map", "FILE"],
    &["serve", "good.json", "--http", "127.0.0.1:0", "--tls-cert", "FILE", "--tls-key", "FILE"],
    &["serve", "good.json", "--http", "127.0.0.1:0", "--audit", "FILE"],
];

// RPT-250
#[test]
fn option_that_names_no_regular_file_is_refused() {
    let workspace = Workspace::empty();
    workspace.write("good.json", r#"{"mcpServers": {"a": {"command": "true"}}}"#);
    nix::unistd::mkfifo(&workspace.path().join("fifo"), Mode::S_IRWXU).unwrap();
    for arguments in FILE_OPTIONS {
        for file in ["fifo", "/dev/tty", "/dev/zero"] {
            if arguments.contains(&"--audit") && file != "fifo" {
                continue;
            }
            let arguments: Vec<String> = arguments.iter().map(|it| it.replace("FILE", file)).collect();
            let run = workspace.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(run.code.is_some_and(|code| code != 0), "{arguments:?} {run:?}");
            let text = run.out.clone() + &run.err;
            let want = if file == "fifo" && arguments.contains(&"--audit".to_owned()) {
                "it is a pipe that no program reads"
            } else {
                "it is not a regular file"
            };
            assert!(text.contains(want), "{arguments:?} {run:?}");
        }
    }
}

// RPT-250
#[test]
fn stream_of_the_process_is_read_and_a_signal_ends_that() {
    let workspace = Workspace::empty();
    let good = r#"{"mcpServers": {"a": {"command": "true"}}}"#;
    assert_eq!(workspace.run_with_input(&["check", "/dev/stdin"], good).code, Some(0));
    workspace.write("good.json", good);
    let serve = ["serve", "good.json", "--http", "127.0.0.1:0", "--token-file", "/dev/stdin"];
    let mut child = workspace.command(&serve).stdin(Stdio::piped()).spawn().unwrap();
    // Nothing is written to it, so that reading the tokens blocks.
    let _input = child.stdin.take();
    block_until(|| catches_signal(child.id(), 15));
    send_signal("TERM", child.id());
    assert_eq!(wait_for_exit(&mut child), Some(143));
}

// RPT-065
#[cfg(target_os = "linux")]
#[test]
fn limit_of_open_files_is_raised_for_the_host_only() {
    let workspace =
        Workspace::dominds("version: 1\nservers:\n  a:\n    transport: stdio\n    command: limits\n");
    workspace.script(
        "limits",
        "echo \"server $(ulimit -Sn), host $(awk '/open files/ {print $4}' /proc/$PPID/limits)\" >&2; exit 1",
    );
    let program = workspace.command(&[]);
    let mut shell = std::process::Command::new("/bin/sh");
    let script = "ulimit -Sn 128; hard=$(ulimit -Hn); \"$0\" tools . 2>&1; echo \"hard $hard\"";
    shell.args(["-c", script]).arg(program.get_program()).current_dir(workspace.path());
    shell.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run = Run::of(shell.output().unwrap());
    let hard = run.out.lines().last().unwrap().strip_prefix("hard ").unwrap();
    assert!(run.out.contains(&format!("server 128, host {hard}")), "{run:?}");
}
