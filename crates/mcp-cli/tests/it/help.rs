//! Every example under every command's `--help` is a line that runs.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::{DEMO, PROGRAM, Place, send};

/// What goes on until somebody ends it.
const ENDLESS: [&str; 3] = ["mcp-host watch ", "mcp-host demo-server --http", "mcp-host serve . --http"];

/// The commands that the help names.
fn commands(place: &Place) -> Vec<String> {
    let help = place.run(&["-h"]).out;
    let lines = help.lines().skip_while(|it| *it != "Commands:").skip(1).take_while(|it| !it.is_empty());
    let names = lines.filter_map(|it| it.strip_prefix("  ")?.split(' ').next());
    names.filter(|it| !it.is_empty() && *it != "help").map(str::to_owned).collect()
}

fn examples(place: &Place, command: &str) -> Vec<String> {
    let help = place.run(&[command, "--help"]).out;
    let lines = help.lines().skip_while(|it| *it != "Examples:").skip(1);
    lines.map_while(|it| it.strip_prefix("  ")).map(str::to_owned).collect()
}

/// Runs a line as a shell does, in a workspace of its own.
#[track_caller]
fn check(line: &str) {
    let place = Place::dominds(DEMO);
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    place.write("request.json", request);
    place.script("mcp-host", &format!("exec {PROGRAM} \"$@\""));
    let mut command = Command::new("sh");
    let endless = ENDLESS.iter().any(|it| line.starts_with(it));
    command
        .args(["-c", &if endless { format!("exec {line}") } else { line.to_owned() }])
        .current_dir(place.path())
        .env_clear()
        .env("PATH", format!("{}/bin:/usr/bin:/bin", place.path().display()))
        .env("HOME", place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if endless {
        // Its first words say that it is at work.
        let first = match child.stderr.take() {
            Some(mut err) if line.contains("--http") => err.read(&mut [0]).unwrap(),
            _ => child.stdout.as_mut().unwrap().read(&mut [0]).unwrap(),
        };
        assert_eq!(first, 1, "{line}");
        send("INT", child.id());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{line}");
        return;
    }
    let output = child.wait_with_output().unwrap();
    // The demo server is a program here, and wants no login.
    let wanted = if line.starts_with("mcp-host log") { 2 } else { 0 };
    assert_eq!(output.status.code(), Some(wanted), "{line}: {output:?}");
}

#[test]
fn every_example_of_every_command_runs() {
    let place = Place::empty();
    let commands = commands(&place);
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let examples = examples(&place, &command);
        assert!(!examples.is_empty(), "{command} has no examples");
        for line in examples {
            assert!(line.contains(&format!("mcp-host {command}")), "{command}: {line}");
            check(&line);
        }
    }
}

#[test]
fn quiet_says_errors_alone() {
    let place =
        Place::dominds(&format!("{DEMO}  odd:\n    transport: stdio\n    command: x\n    colour: red\n"));
    let loud = place.run(&["explain", ".", "--server", "demo", "--tool", "echo"]);
    assert!(loud.err.contains("note: reading") && loud.err.contains("warning"), "{loud:?}");
    let quiet = place.run(&["explain", ".", "--server", "demo", "--tool", "echo", "--quiet"]);
    assert_eq!((quiet.err.as_str(), quiet.out.as_str()), ("", loud.out.as_str()));
    let run = place.run(&["explain", ".", "--server", "nobody", "--tool", "echo", "-q"]);
    assert!(run.code == Some(2) && run.err.starts_with("error: "), "{run:?}");
    let run = place.run(&["call", ".", "sleep", r#"{"ms":20,"steps":2}"#, "-q"]);
    assert_eq!((run.err.as_str(), run.out.as_str()), ("", "slept 20 ms in 2 steps\n"));
    assert_eq!(place.run(&["check", ".", "-q", "-v"]).code, Some(2));
}

/// Who asks what is going on hears it from the servers, too.
#[test]
fn verbose_brings_what_the_server_logs() {
    let place = Place::dominds(DEMO);
    let run = place.run(&["call", ".", "log", "-v"]);
    assert_eq!(run.out, "sent 8 of 8 log messages\n");
    for level in ["DEBUG", "INFO", "WARN", "ERROR"] {
        assert!(run.err.lines().any(|it| it.contains(level) && it.contains("demo")), "{level}: {run:?}");
    }
    assert_eq!(place.run(&["call", ".", "log"]).out, "sent 0 of 8 log messages\n");
}

#[test]
fn what_is_mistyped_is_answered_with_what_is_near() {
    let place = Place::dominds(DEMO);
    for (arguments, near) in [
        (&["doctr", "."][..], "'doctor'"),
        (&["tools", ".", "--sever", "demo"], "'--server'"),
        (&["check", ".", "--formt", "json"], "'--format'"),
        (&["check", ".", "--format", "jsn"], "'json'"),
        (&["convert", ".", "--to", "domind"], "'dominds'"),
    ] {
        let run = place.run(arguments);
        assert!(run.code == Some(2) && run.err.contains(near) && run.out.is_empty(), "{run:?}");
    }
}
