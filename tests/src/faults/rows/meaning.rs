//! Faults in what messages say, and in who says them.

use super::*;

pub(super) fn rows() -> Vec<Row> {
    let row = |fault: &str, script: &str| row(Group::Meaning, fault, script);
    vec![
        row("an answer under an id that nobody gave", "call=wrong-id")
            .want_on(SHARED, "timed out | hello", "MCPTimeoutError | hello")
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("an answer under its id as a text", "call=text-id").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("two answers", "call=twice")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(&[Wire::Document], "a document is one message"),
        row("answers and questions that nobody asked for, then the answer", "call=unasked")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(&[Wire::Document], "a document is one message"),
        row("an error", "call=error")
            .want_on(ALL, "error -32000 | hello", "MCPProtocolError | hello")
            .at_gateway("error -32000 | hello"),
        row("a list is answered with an error", "list=error").want_on(
            ALL,
            "list: error -32000 | hello",
            "not started: MCPProtocolError",
        ),
        row("pages without end", "list=pages").want_on(
            ALL,
            "list: too much | hello",
            "not started: MCPProtocolError",
        ),
        row("the same page again and again", "list=same-page").want_on(
            ALL,
            "list: too much | hello",
            "not started: MCPProtocolError",
        ),
        row("another server listens at its port", "call=replaced")
            .want_on(
                &[Wire::Sse],
                "lost: broken | not sent: broken",
                "MCPConnectionError | MCPToolNotFoundError | started again",
            )
            .want_on(
                &[Wire::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | MCPToolNotFoundError | started again",
            )
            .want_on(HTTP, "outcome unknown | error -32602", "MCPOutcomeUnknownError | MCPProtocolError")
            .at_gateway("MCPOutcomeUnknownError | error -32602")
            .absent_on(STDIO, "a pipe has one process at its end"),
        row("a web server listens at its port", "call=website")
            .want_on(
                &[Wire::Sse],
                "lost: broken | not sent: broken",
                "MCPConnectionError | MCPConnectionError | started again",
            )
            .want_on(
                &[Wire::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | MCPConnectionError | started again",
            )
            .want_in(
                Era::Legacy,
                HTTP,
                "outcome unknown | not reopened",
                "MCPOutcomeUnknownError | MCPConnectionError",
            )
            .want_in(
                Era::Modern,
                HTTP,
                "outcome unknown | refused",
                "MCPOutcomeUnknownError | MCPConnectionError",
            )
            .absent_on(STDIO, "a pipe has one process at its end"),
    ]
}
