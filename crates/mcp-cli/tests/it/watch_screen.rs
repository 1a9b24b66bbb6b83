//! `watch` on a terminal: display, keys and restored terminal.

use mcp_testkit::process::{children, is_alive, only_child, send_signal, wait_until_dead};

use crate::support::{SHARED_DEMO, Workspace};
use crate::terminal::Terminal;

const OTHER: &str =
    "  broken:\n    truely-stateless: true\n    transport: stdio\n    command: /no/such/program\n";

#[test]
fn full_screen_view_shows_server_changes() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let Some(terminal) = Terminal::start(&workspace, "watch .", (100, 24)) else { return };
    let shown = terminal.until_it("demo ready", |screen| screen.contains("1/1 ready"));
    assert!(shown.starts_with(".minds/mcp.yaml  generation "), "{shown}");
    let log = shown.lines().find(|line| line.contains("reloaded .minds/mcp.yaml: added demo")).unwrap();
    // Each line of the log has a time.
    assert!(log.as_bytes()[2] == b':' && log.as_bytes()[5] == b':' && &log[8..9] == " ", "{shown}");
    workspace.write(".minds/mcp.yaml", &format!("{SHARED_DEMO}{OTHER}"));
    let shown = terminal.until_it("the broken one", |screen| {
        screen.contains(" restarting broken: the command was not found") && screen.contains("1/2 ready")
    });
    // The cause comes first in the table, the problems and the log.
    for line in ["broken restarting ", "error: broken: the command was not found"] {
        assert!(shown.lines().any(|it| it.starts_with(line)), "{shown}");
    }
    // A small window, the smallest one, and the original size.
    terminal.resize(40, 8);
    // What is cut ends with an ellipsis.
    terminal.until_it("less of it", |screen| {
        screen.contains("the command was not f…") && screen.lines().count() <= 8
    });
    terminal.resize(1, 1);
    terminal.resize(100, 24);
    terminal.until("the command was not found");
    // Keys.
    terminal.press(&["?"]);
    terminal.until("disable, or enable");
    terminal.press(&["Escape"]);
    terminal.until_it("no help", |screen| !screen.contains("disable, or enable"));
    terminal.types("/dem");
    terminal.until_it("the filter", |screen| screen.contains("/dem▏"));
    terminal.press(&["Enter", "Enter"]);
    // tmux may apply the last size only now, so the first frames may be too small for all details.
    terminal.until_it("all details", |screen| {
        ["server   demo", "leases   none", "echo, add"].iter().all(|detail| screen.contains(detail))
    });
    terminal.press(&["d"]);
    terminal.until("state    disabled");
    terminal.press(&["r"]);
    terminal.until("state    ready");
    let program = terminal.program();
    let server = only_child(program);
    terminal.press(&["q"]);
    let shown = terminal.until("ended ");
    assert!(shown.contains("ended 0, the terminal is as before") && !shown.contains("leases"), "{shown}");
    assert!(!is_alive(server));
}

#[track_caller]
fn check_end(end: impl Fn(&Terminal), code: &str) {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let Some(terminal) = Terminal::start(&workspace, "watch .", (80, 20)) else { return };
    terminal.until("1/1 ready");
    end(&terminal);
    let shown = terminal.until("ended ");
    assert!(shown.contains(&format!("ended {code}, the terminal is as before")), "{shown}");
}

#[test]
fn terminal_is_restored_at_every_exit() {
    check_end(|it| it.press(&["C-c"]), "130");
    check_end(|it| send_signal("TERM", it.program()), "143");
    check_end(|it| send_signal("HUP", it.program()), "129");
}

#[test]
fn watch_ends_with_its_terminal() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let Some(terminal) = Terminal::start(&workspace, "watch .", (80, 20)) else { return };
    terminal.until("1/1 ready");
    let program = terminal.program();
    let servers = children(program);
    terminal.close();
    wait_until_dead(&[program]);
    wait_until_dead(&servers);
}

#[test]
fn plain_output_is_available_on_a_terminal() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let Some(terminal) = Terminal::start(&workspace, "watch . --plain", (80, 30)) else { return };
    terminal.until("ready demo (modern)");
    terminal.press(&["C-c"]);
    terminal.until("ended 130, the terminal is as before");
}
