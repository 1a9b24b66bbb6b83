//! Faults in the bytes and the timing of a message.

use super::*;

pub(super) fn rows() -> Vec<FaultRow> {
    let row = |fault: &str, script: &str| row(Group::Message, fault, script);
    vec![
        row("it does not respond", "call=hush").want_on(ALL, "timed out | hello", "MCPTimeoutError | hello"),
        row("half a response, then nothing", "call=half+hush")
            .want_on(STDIO, "timed out | timed out", "MCPTimeoutError | hello")
            .want_on(
                &[Transport::Sse, Transport::WebSocket],
                "timed out | lost: broken",
                "MCPTimeoutError | hello | restarted",
            )
            .want_on(HTTP, "timed out | hello", "MCPTimeoutError | hello"),
        row("half a response, then a connection reset", "call=half+reset")
            .want_on(SHARED, "lost: closed | not sent: closed", "MCPConnectionError | hello | restarted")
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("half a response, then it closes the connection", "call=half+end")
            .want_on(SHARED, "lost: closed | not sent: closed", "MCPConnectionError | hello | restarted")
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("it resets the connection in a call", "call=reset")
            .want_on(SHARED, "lost: closed | not sent: closed", "MCPConnectionError | hello | restarted")
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("it closes the connection in a call", "call=end")
            .want_on(SHARED, "lost: closed | not sent: closed", "MCPConnectionError | hello | restarted")
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("it closes the connection after its response", "call=well+end")
            .want_on(SHARED, "hello | not sent: closed or lost: closed", "hello | hello | restarted")
            .want_on(HTTP, "hello | hello", "hello | hello"),
        row("it responds byte by byte, in time", "call=drip:1").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it responds byte by byte, too slowly", "call=drip:100").want_on(
            ALL,
            "timed out | hello",
            "MCPTimeoutError | hello",
        ),
        row("it floods", "call=flood")
            .want_on(&[Transport::Stdio, Transport::Events], "timed out | hello", "MCPTimeoutError | hello")
            .want_on(
                &[Transport::Sse, Transport::WebSocket],
                "timed out | hello",
                "MCPTimeoutError | hello or MCPTimeoutError",
            )
            .absent_on(&[Transport::Document], "a JSON response is one message: see the endless one"),
        row("it floods and responds", "call=flood+well")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(HTTP, "the HTTP response ends with the result: see the flood without one"),
        row("a message without end", "call=endless")
            .want_on(SHARED, "lost: broken | not sent: broken", "MCPConnectionError | hello | restarted")
            .want_on(HTTP, "too large | hello", "MCPProtocolError | hello"),
        row("it sends only keep-alive data", "call=alive").want_on(
            ALL,
            "timed out | hello",
            "MCPTimeoutError | hello",
        ),
        row("its response has another framing", "call=misframed")
            .want_on(STDIO, "timed out | timed out", "MCPTimeoutError | MCPTimeoutError")
            .want_on(&[Transport::Sse], "timed out | hello", "MCPTimeoutError | hello")
            .want_on(
                &[Transport::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | restarted",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("a byte that is not UTF-8", "call=latin1")
            .want_on(
                &[Transport::Stdio, Transport::Sse, Transport::Events, Transport::Document],
                "unreadable | hello",
                "MCPProtocolError | hello",
            )
            .want_on(
                &[Transport::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | restarted",
            ),
        row("UTF-16", "call=utf16")
            .want_on(STDIO, "timed out | timed out", "MCPTimeoutError | hello")
            .want_on(&[Transport::Sse], "timed out | hello", "MCPTimeoutError | hello")
            .want_on(
                &[Transport::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | restarted",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("a byte order mark before the response", "call=bom").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("JSON as deep as allowed", "call=deep:100").want_on(ALL, "hello | hello", "hello | hello"),
        row("JSON a hundred thousand deep", "call=deep:100000").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("a response of half a megabyte", "call=huge:500000").want_on(
            ALL,
            "500000 bytes | hello",
            "500000 bytes | hello",
        ),
        row("a response over the limit", "call=huge:2000000")
            .want_on(
                &[Transport::Stdio, Transport::Sse, Transport::Events, Transport::Document],
                "too large | hello",
                "MCPProtocolError | hello",
            )
            .want_on(
                &[Transport::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | restarted",
            ),
        row("it stops reading", "list=well+deaf")
            .want_on(
                &[Transport::Stdio, Transport::WebSocket],
                "timed out | lost: stalled",
                // A new connection accepts as much as the pipe buffers, then stalls too.
                "MCPTimeoutError or MCPConnectionError | MCPConnectionError or MCPTimeoutError | restarted",
            )
            .want_on(
                &[Transport::Sse, Transport::Events, Transport::Document],
                "timed out | timed out",
                "MCPTimeoutError | MCPTimeoutError",
            ),
        row("it does not respond to a list request", "list=hush").want_on(
            ALL,
            "list: timed out | hello",
            "not started: MCPTimeoutError",
        ),
        row("it resets the connection in a list", "list=half+reset")
            .want_on(SHARED, "list: lost: closed | not sent: closed", "not started: MCPConnectionError")
            .want_on(HTTP, "list: answer lost | hello", "not started: MCPConnectionError"),
        row("it closes the connection in a list", "list=end")
            .want_on(SHARED, "list: lost: closed | not sent: closed", "not started: MCPConnectionError")
            .want_on(HTTP, "list: answer lost | hello", "not started: MCPConnectionError"),
        row("the notification stream has only keep-alive data", "hear=alive").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("the notification stream floods", "hear=flood").want_on(ALL, "hello | hello", "hello | hello"),
        row("the notification stream ends repeatedly", "hear=end")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(SHARED, "the stream is the connection: see the close in a call"),
        row("the notification stream is reset repeatedly", "hear=reset")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(SHARED, "the stream is the connection: see the reset in a call"),
        row("it does not respond to the shutdown", "close=hush")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(&[Transport::Sse], "no request is sent: the stream is closed"),
    ]
}
