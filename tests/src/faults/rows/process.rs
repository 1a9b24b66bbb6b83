//! Faults that only a process can have.

use super::*;

pub(super) fn rows() -> Vec<Row> {
    let row = |fault: &str, script: &str| {
        row(Group::Process, fault, script).absent_on(NETWORK, "it is no process of ours")
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
            "MCPConnectionError | hello | started again",
        ),
        row("it dies when it is to end", "close=reset").want_on(ALL, "hello | hello", "hello | hello"),
        row("it ignores the end of its input and SIGTERM", "close=stubborn").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it ends, and a process of its own holds its output", "call=orphan").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | started again",
        ),
        row("the same, and that has left its process group", "call=escape").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | started again",
        ),
        row("it closes its output and lives", "call=close-output").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | started again",
        ),
        row("it fills its standard error, and answers", "call=fill-errors+well").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it fills its standard error, and does not answer", "call=fill-errors+hush").want_on(
            ALL,
            "timed out | hello",
            "MCPTimeoutError | hello",
        ),
        row("it has little memory, and takes all of it", "call=allocate").want_on(
            ALL,
            "lost: closed | not sent: closed",
            "MCPConnectionError | hello | started again",
        ),
    ]
}
