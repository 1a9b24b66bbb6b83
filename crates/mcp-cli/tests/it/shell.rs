//! `shell`: the prompt and scripts.

use std::os::unix::fs::PermissionsExt;

use mcp_testkit::process::send_signal;
use serde_json::Value;

use crate::support::{DEMO, Run, Workspace};
use crate::terminal::Terminal;

fn script(lines: &str, arguments: &[&str]) -> Run {
    let workspace = Workspace::dominds(DEMO);
    let words: Vec<&str> = ["shell", "."].into_iter().chain(arguments.iter().copied()).collect();
    workspace.run_with_input(&words, lines)
}

/// Compares the output and exit code of a script.
#[track_caller]
fn check(lines: &str, code: i32, out: &str, err: &str) {
    let run = script(lines, &[]);
    assert_eq!((run.code, run.out.as_str()), (Some(code), out), "{run:?}");
    assert!(run.err.ends_with(err), "{run:?}");
}

#[test]
fn script_lines_are_executed_in_order() {
    check("echo text=hello\nadd {\"a\": 2,\n  \"b\": 3}\n", 0, "hello\n5\n{\n  \"sum\": 5\n}\n", "");
    check("echo text='a b'\n# a note\n\nexit\necho text=never\n", 0, "a b\n", "");
    check(
        "prompt summarise text=5\n",
        0,
        "user: Summarise the following text in at most 50 words.\n\n5\n",
        "",
    );
    check("read demo://greeting\n", 0, "Hello from the demo server.\n", "");
    check("fail message=no\necho text=on\n", 1, "on\n", "MCPToolError: no\n");
    check(
        "echo\n",
        1,
        "",
        "ValidationError: Invalid arguments for tool 'echo': \"text\" is a required property\n  \
         help: `schema echo` shows the arguments of the tool\n",
    );
    check(
        "prompts x\n",
        2,
        "",
        "error: `prompts` takes no arguments, but got `x`\n  help: `help` lists the commands\n",
    );
    check("restart dmeo\n", 1, "", "error: there is no server `dmeo`; the servers are: demo\n");
    check("restart demo\nservers\n", 0, "✓ demo  ready (modern)\n", "");
    check("disable demo\nservers\n", 0, "✗ demo  disabled\n", "");
    check("problems\nread x:y\n", 1, "there are no problems\n", "");
    check(
        "echo {\"text\":\n",
        2,
        "",
        "error: the bracket { is not closed\n  help: `help` lists the commands\n",
    );
    check("", 0, "", "");
}

#[test]
fn shell_lists_equal_the_commands() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run_with_input(&["shell"], "tools\nschema echo\nprompts\nresources\nhelp\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    for want in [
        "\n12 tools, about ",
        "\ntext      string  yes       What to answer\n",
        "summarise",
        "demo://greeting",
        "restart SERVER",
    ] {
        assert!(run.out.contains(want), "{want} in {run:?}");
    }
    assert_eq!(
        run.err, "note: reading .minds/mcp.yaml\n",
        "a script is told what is wrong, and here nothing is"
    );
}

#[test]
fn json_events_are_one_per_line() {
    let run = script("echo text=hello\nservers\nfail message=no\n", &["--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let documents: Vec<Value> = run.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(documents[0]["content"][0]["text"], "hello");
    assert_eq!(documents[1][0]["state"], "ready");
    assert_eq!(documents[2]["success"], false);
    assert_eq!(documents.len(), 3);
}

#[test]
fn shell_session_is_recorded() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run_with_input(&["shell", ".", "--record", "out.jsonl"], "echo text=kept\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("wrote out.jsonl: demo (modern), "), "{run:?}");
    assert!(
        std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap().contains(r#""text":"kept""#)
    );
}

const ENDED: &str = "the terminal is as before";

#[test]
fn prompt_has_completion_history_and_cancellation() {
    let workspace = Workspace::dominds(DEMO);
    let Some(terminal) = Terminal::start(&workspace, "shell .", (100, 30)) else { return };
    terminal.until("mcp>");
    // Completes a tool and then its argument.
    terminal.types("ec");
    terminal.press(&["Tab"]);
    terminal.until("mcp> echo");
    terminal.press(&["Tab"]);
    terminal.until("mcp> echo text=");
    terminal.types("from-the-prompt");
    terminal.press(&["Enter"]);
    terminal.until("\nfrom-the-prompt\n");
    // JSON that spans several lines is one command.
    terminal.types("add {\"a\": 2,");
    terminal.press(&["Enter"]);
    terminal.types("\"b\": 3}");
    terminal.press(&["Enter"]);
    terminal.until("\"sum\": 5");
    // Ctrl-C cancels the call, not the shell.
    terminal.types("sleep ms=600000 steps=1000");
    terminal.press(&["Enter"]);
    terminal.until("sleep: 0%");
    terminal.press(&["C-c"]);
    terminal.until("cancelled");
    // Without a running call, Ctrl-C discards the line.
    terminal.types("never");
    terminal.until("mcp> never");
    terminal.press(&["C-c"]);
    // Input that is read together with Ctrl-C is discarded too, so wait for the new prompt before typing.
    terminal.until_it("a new screen", |it| it.trim_end().ends_with("mcp> never\nmcp>"));
    terminal.types("echo text=still-here");
    terminal.press(&["Enter"]);
    terminal.until("\nstill-here\n");
    // A line that may contain a secret is not stored in the history.
    terminal.types("echo {\"text\":\"x\",\"password\":\"hunter2\"}");
    terminal.press(&["Enter"]);
    terminal.until("ValidationError");
    terminal.press(&["Up"]);
    terminal.until_it("the last screen that is remembered", |it| {
        it.trim_end().ends_with("mcp> echo text=still-here")
    });
    terminal.press(&["C-u", "C-d"]);
    let shown = terminal.until(ENDED);
    assert!(shown.contains("ended 0, "), "{shown}");
    let history = workspace.path().join("state/mcp-host/history");
    let text = std::fs::read_to_string(&history).unwrap();
    assert!(text.contains("echo text=from-the-prompt") && !text.contains("hunter2"), "{text}");
    assert_eq!(std::fs::metadata(history).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn changes_are_printed_between_prompts() {
    let workspace = Workspace::dominds(DEMO);
    let Some(terminal) = Terminal::start(&workspace, "shell .", (100, 30)) else { return };
    terminal.until("mcp>");
    workspace.write(".minds/mcp.yaml", &format!("{DEMO}    transform: [{{prefix: my_}}]\n"));
    terminal.until_it("the new names", |_| {
        terminal.press(&["Enter"]);
        terminal.shows().contains("renamed or filtered demo")
    });
    terminal.types("my_ec");
    terminal.press(&["Tab"]);
    terminal.until("mcp> my_echo");
}

#[test]
fn signal_restores_the_terminal() {
    let workspace = Workspace::dominds(DEMO);
    let Some(terminal) = Terminal::start(&workspace, "shell .", (100, 30)) else { return };
    terminal.until("mcp>");
    send_signal("TERM", terminal.program());
    let shown = terminal.until("ended ");
    assert!(shown.contains("ended 143, the terminal is as before"), "{shown}");
}

#[test]
fn script_reports_failed_servers() {
    let workspace = Workspace::dominds(&format!(
        "{DEMO}  broken:\n    transport: stdio\n    command: /no/such/program\n  odd:\n    transport: stdio\n"
    ));
    let run = workspace.run_with_input(&["shell", "."], "echo text=on\n");
    assert_eq!((run.code, run.out.as_str()), (Some(0), "on\n"), "{run:?}");
    assert!(
        run.err.contains("✗ odd     failed  MCPConfigError: ") && run.err.contains("/no/such/program"),
        "{run:?}"
    );
    assert!(run.err.contains("servers.odd.command must be a non-empty string"), "{run:?}");
}

#[test]
fn script_without_a_configuration_fails() {
    let workspace = Workspace::dominds("version: 2\n");
    for (file, want) in
        [("gone.yaml", "cannot read gone.yaml: it does not exist"), (".", "none of its servers")]
    {
        let run = workspace.run_with_input(&["shell", file], "echo text=on\n");
        assert!(run.code == Some(1) && run.out.is_empty() && run.err.contains(want), "{run:?}");
    }
}
