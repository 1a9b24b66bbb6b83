//! Runs every example in the `--help` of every command.

use std::io::Read;
use std::process::{Command, Stdio};

use mcp_testkit::process::send_signal;

use crate::support::{DEMO, PROGRAM, Workspace};

/// Examples that run until a signal.
const LONG_RUNNING: [&str; 3] = ["mcp-host watch ", "mcp-host demo-server --http", "mcp-host serve . --http"];

/// The commands in the help.
fn commands(workspace: &Workspace) -> Vec<String> {
    let help = workspace.run(&["-h"]).out;
    let lines = help.lines().skip_while(|it| *it != "Commands:").skip(1).take_while(|it| !it.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|it| !it.is_empty() && *it != "help").map(str::to_owned).collect()
}

fn examples(workspace: &Workspace, command: &str) -> Vec<String> {
    let help = workspace.run(&[command, "--help"]).out;
    let lines = help.lines().skip_while(|it| *it != "Examples:").skip(1);
    lines.map_while(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
}

/// Runs a line in a shell, in a new workspace.
#[track_caller]
fn check(line: &str) {
    let workspace = Workspace::dominds(DEMO);
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    workspace.write("request.json", request);
    workspace.write("token.txt", "hunter2\n");
    workspace.script("mcp-host", &format!("exec {PROGRAM} \"$@\""));
    let mut command = Command::new("sh");
    let endless = LONG_RUNNING.iter().any(|it| line.starts_with(it));
    command
        .args(["-c", &if endless { format!("exec {line}") } else { line.to_owned() }])
        .current_dir(workspace.path())
        .env_clear()
        .env("PATH", format!("{}/bin:/usr/bin:/bin", workspace.path().display()))
        .env("HOME", workspace.path())
        .env("MCP_HOST_KEYRING", "off")
        .env("XDG_RUNTIME_DIR", workspace.path().join("runtime"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if endless {
        // Its first output shows that it is running.
        let first = match child.stderr.take() {
            Some(mut err) if line.contains("--http") => err.read(&mut [0]).unwrap(),
            _ => child.stdout.as_mut().unwrap().read(&mut [0]).unwrap(),
        };
        assert_eq!(first, 1, "{line}");
        send_signal("INT", child.id());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{line}");
        return;
    }
    let output = child.wait_with_output().unwrap();
    let wanted = match line.split(' ').nth(1) {
        // The demo server runs over stdio, so login is a usage error.
        Some("login" | "logout") => 2,
        // The demo server has no tasks.
        Some("tasks") => 1,
        // No host runs.
        Some("stop" | "restart" | "logs") => 1,
        _ => 0,
    };
    assert_eq!(output.status.code(), Some(wanted), "{line}: {output:?}");
}

#[test]
fn every_example_of_every_command_runs() {
    let workspace = Workspace::empty();
    let commands = commands(&workspace);
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let examples = examples(&workspace, &command);
        assert!(!examples.is_empty(), "{command} has no examples");
        for line in examples {
            assert!(line.contains(&format!("mcp-host {command}")), "{command}: {line}");
            check(&line);
        }
    }
}

#[test]
fn quiet_prints_only_errors() {
    let workspace =
        Workspace::dominds(&format!("{DEMO}  odd:\n    transport: stdio\n    command: x\n    colour: red\n"));
    let loud = workspace.run(&["explain", ".", "--server", "demo", "--tool", "echo"]);
    assert!(loud.err.contains("note: reading") && loud.err.contains("warning"), "{loud:?}");
    let quiet = workspace.run(&["explain", ".", "--server", "demo", "--tool", "echo", "--quiet"]);
    assert_eq!((quiet.err.as_str(), quiet.out.as_str()), ("", loud.out.as_str()));
    let run = workspace.run(&["explain", ".", "--server", "nobody", "--tool", "echo", "-q"]);
    assert!(run.code == Some(2) && run.err.starts_with("error: "), "{run:?}");
    let run = workspace.run(&["call", ".", "sleep", r#"{"ms":20,"steps":2}"#, "-q"]);
    assert_eq!((run.err.as_str(), run.out.as_str()), ("", "slept 20 ms in 2 steps\n"));
    assert_eq!(workspace.run(&["check", ".", "-q", "-v"]).code, Some(2));
}

#[test]
fn verbose_prints_server_logs() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["call", ".", "log", "-v"]);
    assert_eq!(run.out, "sent 8 of 8 log messages\n");
    for level in ["DEBUG", "INFO", "WARN", "ERROR"] {
        assert!(
            run.err.lines().any(|line| line.contains(level) && line.contains("demo")),
            "{level}: {run:?}"
        );
    }
    assert_eq!(workspace.run(&["call", ".", "log"]).out, "sent 0 of 8 log messages\n");
}

#[test]
fn mistyped_argument_suggests_the_nearest() {
    let workspace = Workspace::dominds(DEMO);
    for (arguments, near) in [
        (&["doctr", "."][..], "'doctor'"),
        (&["tools", ".", "--sever", "demo"], "'--server'"),
        (&["check", ".", "--formt", "json"], "'--format'"),
        (&["check", ".", "--format", "jsn"], "'json'"),
        (&["convert", ".", "--to", "domind"], "'dominds'"),
    ] {
        let run = workspace.run(arguments);
        assert!(run.code == Some(2) && run.err.contains(near) && run.out.is_empty(), "{run:?}");
    }
}
