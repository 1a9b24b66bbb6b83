//! Output on a terminal: colours, suggestions, progress; and Ctrl-C.
//!
//! `script` of util-linux provides the terminal and forwards typed input.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use mcp_testkit::process::wait_for_exit;

use crate::support::{DEMO, PROGRAM, Workspace};
use crate::terminal::Terminal;

/// Starts the program in a terminal. Typed input is its standard input.
fn terminal(workspace: &Workspace, line: &str, variables: &[(&str, &str)]) -> Child {
    terminal_in(workspace, "", line, variables)
}

/// Starts the program in a terminal, in a folder of the workspace.
fn terminal_in(workspace: &Workspace, folder: &str, line: &str, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new("script");
    command
        .args(["-q", "-e", "-c", &format!("stty cols 120 rows 30; {PROGRAM} {line}"), "/dev/null"])
        .current_dir(workspace.path().join(folder))
        .env_clear()
        .env("PATH", format!("{}/bin:/usr/bin:/bin", workspace.path().display()))
        .env("HOME", workspace.path())
        .env("XDG_STATE_HOME", workspace.path().join("state"))
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    for (name, value) in variables {
        command.env(name, value);
    }
    command.spawn().unwrap()
}

/// The terminal output of a run with colours and plain line feeds.
fn shown(workspace: &Workspace, line: &str, variables: &[(&str, &str)]) -> String {
    let output = terminal(workspace, line, variables).wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

#[test]
fn suggestions_are_printed_on_a_terminal_only() {
    let workspace = Workspace::dominds(DEMO);
    for (line, next) in [
        ("check .", "`mcp-host tools .minds/mcp.yaml` starts the servers and lists their tools"),
        ("tools .", "`mcp-host call .minds/mcp.yaml echo text=…` calls the first tool"),
        ("doctor .", "`mcp-host tools .` lists their tools"),
        (
            "call . echo text=hi",
            "`mcp-host convert . --to DIALECT` writes the configuration for another program",
        ),
        ("convert . --to mcp-json -o a.json", "`mcp-host check a.json` checks the result"),
        ("add . b --url http://x.example", "`mcp-host doctor . --server b` tests it"),
        ("disable . b", "`mcp-host check .` checks the file"),
    ] {
        let text = shown(&workspace, &format!("{line} --color never"), &[]);
        assert!(text.ends_with(&format!("next: {next}\n")), "{line}: {text:?}");
    }
    for arguments in [&["check", "."][..], &["tools", "."], &["call", ".", "echo", "text=hi"]] {
        let run = workspace.run(arguments);
        assert!(!run.err.contains("next: ") && !run.out.contains("next: "), "{run:?}");
    }
    for line in ["check . --format json", "tools . --format json", "check . --quiet", "check . | cat"] {
        let text = shown(&workspace, line, &[]);
        assert!(!text.contains("next"), "{line}: {text:?}");
    }
}

/// RPT-285
#[test]
fn rpt_285_suggestion_names_no_configuration_of_a_project() {
    let workspace = Workspace::empty();
    workspace.write(
        "repo/.mcp.json",
        r#"{"mcpServers": {"demo": {"command": "mcp-host", "args": ["demo-server"]}}}"#,
    );
    workspace.script("mcp-host", &format!("exec {PROGRAM} \"$@\""));
    let check = |line: &str, next: &str| {
        let child = terminal_in(&workspace, "repo", &format!("{line} --color never"), &[]);
        let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().replace("\r\n", "\n");
        assert!(text.ends_with(&format!("next: {next}\n")), "{line}: {text:?}");
    };
    let trust = "`mcp-host trust` shows what its servers start, and approves them";
    check("check", trust);
    // The question is not answered.
    check("tools", trust);
    let approved = workspace.command(&["trust"]).current_dir(workspace.path().join("repo")).output().unwrap();
    assert!(approved.status.success(), "{approved:?}");
    check("check", "`mcp-host tools` starts the servers and lists their tools");
    check("tools", "`mcp-host call demo__echo text=…` calls the first tool");
    check("doctor", "`mcp-host tools` lists their tools");
}

#[test]
fn no_color_disables_colours() {
    let workspace = Workspace::dominds(DEMO);
    assert!(shown(&workspace, "check .", &[]).contains("\u{1b}[32m✓"));
    for (line, variables) in [
        ("check .", &[("NO_COLOR", "1")][..]),
        ("check . --color never", &[]),
        ("check .", &[("TERM", "dumb")]),
    ] {
        let text = shown(&workspace, line, variables);
        assert!(!text.contains("\u{1b}["), "{line} {variables:?}: {text:?}");
    }
}

#[test]
fn progress_bar_is_cleared() {
    let workspace = Workspace::dominds(DEMO);
    let text = shown(&workspace, r#"call . sleep '{"ms":600,"steps":4}'"#, &[]);
    assert!(text.contains("[=====>") && text.contains("sleep: 2/4 step 2 of 4"), "{text:?}");
    assert!(text.contains("slept 600 ms in 4 steps\n"), "{text:?}");
    let text = shown(&workspace, r#"call . sleep '{"ms":60,"steps":4}' --quiet"#, &[]);
    assert_eq!(text, "slept 60 ms in 4 steps\n");
}

#[test]
fn progress_line_is_cleared_after_ctrl_c() {
    let workspace = Workspace::dominds(
        "version: 1\nservers:\n  silent:\n    transport: stdio\n    command: sleep\n    args: ['600']\n",
    );
    for command in ["call . echo", "tools .", "doctor ."] {
        let Some(terminal) = Terminal::start(&workspace, command, (60, 20)) else { return };
        terminal.until("ing silent");
        terminal.press(&["C-c"]);
        let shown = terminal.until("ended 130");
        // The first character of the line is one of the spinner's, in the block of Braille patterns.
        assert!(!shown.contains(|it: char| ('\u{2800}'..='\u{28ff}').contains(&it)), "{shown}");
    }
}

#[test]
fn image_is_drawn_on_a_capable_terminal() {
    let workspace = Workspace::dominds(DEMO);
    let kitty = shown(&workspace, "call . mixed", &[("TERM", "xterm-kitty")]);
    assert!(kitty.contains("[image: image/png, 76 bytes]") && kitty.contains("\u{1b}_Gf=100,a=T,m=0;iVBOR"));
    let iterm = shown(&workspace, "call . mixed", &[("TERM_PROGRAM", "iTerm.app")]);
    assert!(iterm.contains("\u{1b}]1337;File=inline=1;") && iterm.contains("size=76:iVBOR"), "{iterm:?}");
    for (line, variables) in [
        ("call . mixed", &[][..]),
        ("call . mixed --format json", &[("TERM", "xterm-kitty")]),
        ("call . mixed | cat", &[("TERM", "xterm-kitty")]),
        ("call . mixed", &[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")]),
    ] {
        let text = shown(&workspace, line, variables);
        assert!(!text.contains("\u{1b}_G") && !text.contains("1337"), "{line} {variables:?}: {text:?}");
    }
}

#[test]
fn ctrl_c_sends_a_cancellation() {
    let workspace =
        Workspace::dominds("version: 1\nservers:\n  demo:\n    transport: stdio\n    command: recorded\n");
    workspace.script("recorded", &format!("tee \"$HOME/wire\" | {PROGRAM} demo-server"));
    let mut child = terminal(&workspace, r#"call . sleep '{"ms":60000,"steps":1000}'"#, &[]);
    let mut out = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("step 1 of 1000") {
        let count = out.read(&mut bytes).unwrap();
        assert!(count > 0, "{:?}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..count]);
    }
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    keys.flush().unwrap();
    // Drain the output, so that the program does not block on a full pipe.
    let rest = std::thread::spawn(move || out.read_to_end(&mut seen));
    assert_eq!(wait_for_exit(&mut child), Some(130));
    drop(keys);
    rest.join().unwrap().unwrap();
    let wire = std::fs::read_to_string(workspace.path().join("wire")).unwrap();
    let last = wire.lines().last().unwrap();
    assert!(last.contains("\"notifications/cancelled\"") && last.contains("requestId"), "{wire}");
}
