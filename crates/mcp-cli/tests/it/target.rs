//! Servers of the command line, in place of a configuration.

use crate::support::{DEMO, HttpDemo, Workspace};
use crate::terminal::Terminal;

const PROGRAM: [&str; 3] = ["--", "mcp-host", "demo-server"];

#[track_caller]
fn check(words: &[&str], target: &[&str], part: &str) {
    let run = Workspace::empty().run(&[words, target].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains(part), "{part}: {run:?}");
}

/// RPT-360
#[test]
fn rpt_360_program_after_two_dashes_is_the_server() {
    check(&["tools", "ech*"], &PROGRAM, "echo");
    check(&["tools", "--schema", "add"], &PROGRAM, "tool `add` of server `mcp-host`");
    check(&["prompts"], &PROGRAM, "hello");
    check(&["resources"], &PROGRAM, "demo://greeting");
    check(&["resources", "--read", "demo://greeting"], &PROGRAM, "Hello from the demo server.");
    check(&["skills"], &PROGRAM, "no server has skills");
    check(&["doctor"], &PROGRAM, "handshake");
    check(&["call", "add", "a=2", "b=3"], &PROGRAM, "5\n");
    check(&["prompt", "hello"], &PROGRAM, "user: Hello!");
    let run = Workspace::empty().run(&[&["call", "ecko"], &PROGRAM[..]].concat());
    assert!(run.err.contains("`mcp-host tools -- mcp-host demo-server` lists the tools"), "{run:?}");
    let run = Workspace::empty().run(&[&["call", "echo"], &PROGRAM[..]].concat());
    assert!(run.err.contains("`mcp-host tools --schema echo -- mcp-host demo-server` shows"), "{run:?}");
}

/// RPT-360
#[test]
fn rpt_360_url_in_place_of_the_file_is_the_server() {
    let workspace = Workspace::empty();
    let demo = HttpDemo::start(&workspace);
    let url = demo.url.as_str();
    check(&["call", url, "add", "a=2", "b=3"], &[], "5\n");
    check(&["tools", url, "ech*", "-H", "X-Key: ${HOME}"], &[], "echo");
    let run = workspace.run(&["call", url, "ecko", "-H", "X-Key: hunter2"]);
    let help = format!("`mcp-host tools {url} --header …` lists the tools");
    assert!(run.err.contains(&help) && !run.err.contains("hunter2"), "{run:?}");
    check(&["doctor", url], &[], "handshake");
}

/// RPT-361
#[test]
fn rpt_361_server_of_the_command_line_has_no_file_and_no_lock() {
    let workspace = Workspace::dominds(DEMO);
    workspace.write("mcp.lock", "no lock file");
    workspace.write(".minds/mcp.lock", "no lock file");
    let run = |words: &[&str]| workspace.run(&[words, &PROGRAM[..]].concat());
    let tools = run(&["tools", "--format", "json"]);
    assert_eq!((tools.code, tools.err.as_str()), (Some(0), ""), "{tools:?}");
    assert_eq!(tools.json()["servers"][0]["name"], "mcp-host", "{tools:?}");
    let locked = run(&["tools", "--locked"]);
    assert!(locked.err.contains("a server of the command line has no lock file"), "{locked:?}");
    // What the command line says is an error of the command line, without lines of a file and without secrets.
    let unset = workspace.run(&["tools", "-e", "KEY=${NO_SUCH}", "--", "mcp-host", "demo-server"]);
    assert!(unset.err.contains("NO_SUCH") || unset.out.contains("NO_SUCH"), "{unset:?}");
    assert!(unset.code != Some(0) && !(unset.out + &unset.err).contains("line "));
    let missing = workspace.run(&["tools", "--", "no-such-program"]);
    assert!(missing.code == Some(3) && (missing.out + &missing.err).contains("no-such-program"));
    for words in [
        &["tools", "https://x.example", "--", "npx"][..],
        &["tools", "https://x.example", "--env", "KEY=hunter2"],
        &["prompts", "--header", "X-Key: hunter2"],
        &["tools", "--header", "hunter2", "https://x.example"],
    ] {
        let run = workspace.run(words);
        assert!(run.code == Some(2) && !run.err.contains("hunter2"), "{words:?}: {run:?}");
    }
}

/// RPT-362
#[test]
fn rpt_362_question_of_a_server_is_answered_at_the_terminal() {
    let workspace = Workspace::empty();
    let line = "call ask 'question=What is your name?' -- mcp-host demo-server";
    let Some(terminal) = Terminal::start(&workspace, line, (100, 30)) else { return };
    let shown = terminal.until("answer (string; required, Enter declines):");
    assert!(shown.contains("The server asks:\n  What is your name?"), "{shown}");
    terminal.types("Ada");
    terminal.press(&["Enter"]);
    terminal.until("These values are sent: {\"answer\":\"Ada\"}");
    terminal.types("y");
    terminal.press(&["Enter"]);
    terminal.until("the user answers: Ada");
    terminal.until("ended 0, the terminal is as before");
    let declined = Terminal::start(&workspace, line, (100, 30)).unwrap();
    declined.until("Enter declines):");
    declined.press(&["Enter"]);
    declined.until("the user declines");
    // Without a terminal the handshake says that there are no answers.
    let run = workspace.run(&["call", "ask", "question=Who?", "--", "mcp-host", "demo-server"]);
    assert!(run.code == Some(1) && run.err.contains("elicitation"), "{run:?}");
}
