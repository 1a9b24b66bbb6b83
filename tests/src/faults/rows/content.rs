//! Faults in the content of messages, and replaced servers.

use super::*;

pub(super) fn rows() -> Vec<FaultRow> {
    let row = |fault: &str, script: &str| row(Group::Content, fault, script);
    vec![
        row("a response with an unknown id", "call=wrong-id")
            .want_on(SHARED, "timed out | hello", "MCPTimeoutError | hello")
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("a response with its id as a string", "call=text-id").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("two responses", "call=twice")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(&[Transport::Document], "a JSON response is one message"),
        row("unsolicited responses and requests, then the response", "call=unasked")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(&[Transport::Document], "a JSON response is one message"),
        row("an error response", "call=error")
            .want_on(ALL, "error -32000 | hello", "MCPProtocolError | hello")
            .at_gateway("error -32000 | hello"),
        row("an error response to a list request", "list=error").want_on(
            ALL,
            "list: error -32000 | hello",
            "not started: MCPProtocolError",
        ),
        row("pages without end", "list=pages").want_on(
            ALL,
            "hello | hello",
            "MCPToolNotFoundError | MCPToolNotFoundError",
        ),
        row("the same page without end", "list=same-page").want_on(
            ALL,
            "hello | hello",
            "MCPToolNotFoundError | MCPToolNotFoundError",
        ),
        row("another MCP server listens on its port", "call=replaced")
            .want_on(
                &[Transport::Sse, Transport::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | MCPToolNotFoundError | restarted",
            )
            .want_on(HTTP, "outcome unknown | error -32602", "MCPOutcomeUnknownError | MCPProtocolError")
            .at_gateway("MCPOutcomeUnknownError | error -32602")
            .absent_on(STDIO, "a pipe has one process"),
        row("a web server listens on its port", "call=website")
            .want_on(
                &[Transport::Sse, Transport::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | MCPConnectionError | restarted",
            )
            .want_in(
                Era::Legacy,
                HTTP,
                "outcome unknown | not reopened",
                "MCPOutcomeUnknownError | MCPConnectionError | restarted",
            )
            .want_in(
                Era::Modern,
                HTTP,
                "outcome unknown | refused",
                "MCPOutcomeUnknownError | MCPConnectionError",
            )
            .absent_on(STDIO, "a pipe has one process"),
    ]
}
