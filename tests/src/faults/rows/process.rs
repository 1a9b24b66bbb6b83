//! Faults of processes.

use super::*;

pub(super) fn rows() -> Vec<FaultRow> {
    let row = |fault: &str, script: &str| {
        row(Group::Process, fault, script).absent_on(NETWORK, "the server is not a child process")
    };
    vec![
        row("it exits before the handshake", "start=exit:3").want_on(
            ALL,
            "no session: closed",
            "not started: MCPConnectionError",
        ),
        row("it exits in the handshake", "open=exit:3").want_on(
            ALL,
            "no session: closed",
            "not started: MCPConnectionError",
        ),
        row("it exits in a list", "list=exit:3").want_on(
            ALL,
            "list: lost: closed | not sent: closed",
            "not started: MCPConnectionError",
        ),
        row("it exits in a call", "call=exit:3").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | restarted",
        ),
        row("it crashes at the shutdown", "close=reset").want_on(ALL, "hello | hello", "hello | hello"),
        row("it ignores the end of its input and SIGTERM", "close=stubborn").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it exits, and its child holds its output", "call=orphan").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | restarted",
        ),
        row("the same, and the child has left the process group", "call=escape").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | restarted",
        ),
        row("it closes its output and runs on", "call=close-output").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | restarted",
        ),
        row("it fills its standard error and responds", "call=fill-errors+well").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it fills its standard error and does not respond", "call=fill-errors+hush").want_on(
            ALL,
            "timed out | hello",
            "MCPTimeoutError | hello",
        ),
        row("it exhausts its memory", "call=allocate").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | restarted",
        ),
    ]
}
