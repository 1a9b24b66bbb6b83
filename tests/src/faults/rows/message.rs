//! Faults in the bytes of a message, and in their pace.

use super::*;

pub(super) fn rows() -> Vec<Row> {
    let row = |fault: &str, script: &str| row(Group::Message, fault, script);
    vec![
        row("it does not answer", "call=hush").want_on(ALL, "timed out | hello", "MCPTimeoutError | hello"),
        row("half an answer, then silence", "call=half+hush")
            .want_on(STDIO, "timed out | timed out", "MCPTimeoutError | hello")
            .want_on(
                &[Wire::Sse, Wire::WebSocket],
                "timed out | lost: broken",
                "MCPTimeoutError | hello | started again",
            )
            .want_on(HTTP, "timed out | hello", "MCPTimeoutError | hello"),
        row("half an answer, then it breaks off", "call=half+reset")
            .want_on(
                &[Wire::Stdio, Wire::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | hello | started again",
            )
            .want_on(
                &[Wire::Sse],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("half an answer, then it closes", "call=half+end")
            .want_on(
                &[Wire::Stdio, Wire::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | hello | started again",
            )
            .want_on(
                &[Wire::Sse],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("it breaks off in a call", "call=reset")
            .want_on(
                &[Wire::Stdio, Wire::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | hello | started again",
            )
            .want_on(
                &[Wire::Sse],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("it closes in a call", "call=end")
            .want_on(
                &[Wire::Stdio, Wire::WebSocket],
                "lost: closed | not sent: closed",
                "MCPConnectionError | hello | started again",
            )
            .want_on(
                &[Wire::Sse],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("it answers a byte at a time, in time", "call=drip:1").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it answers a byte at a time, too slowly", "call=drip:100").want_on(
            ALL,
            "timed out | hello",
            "MCPTimeoutError | hello",
        ),
        row("it floods", "call=flood")
            .want_on(&[Wire::Stdio, Wire::Events], "timed out | hello", "MCPTimeoutError | hello")
            .want_on(
                &[Wire::Sse, Wire::WebSocket],
                "timed out | hello",
                "MCPTimeoutError | hello or MCPTimeoutError",
            )
            .absent_on(&[Wire::Document], "a document is one message: see the endless one"),
        row("it floods, and answers all the same", "call=flood+well")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(HTTP, "a response is over with its answer: see the one that floods"),
        row("a message without end", "call=endless")
            .want_on(
                SHARED,
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "too large | hello", "MCPProtocolError | hello"),
        row("it only keeps alive, and does not answer", "call=alive").want_on(
            ALL,
            "timed out | hello",
            "MCPTimeoutError | hello",
        ),
        row("it answers in another framing", "call=misframed")
            .want_on(STDIO, "timed out | timed out", "MCPTimeoutError | MCPTimeoutError")
            .want_on(&[Wire::Sse], "timed out | hello", "MCPTimeoutError | hello")
            .want_on(
                &[Wire::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("a byte that is no UTF-8", "call=latin1")
            .want_on(
                &[Wire::Stdio, Wire::Sse, Wire::Events, Wire::Document],
                "unreadable | hello",
                "MCPProtocolError | hello",
            )
            .want_on(
                &[Wire::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            ),
        row("UTF-16", "call=utf16")
            .want_on(STDIO, "timed out | timed out", "MCPTimeoutError | hello")
            .want_on(&[Wire::Sse], "timed out | hello", "MCPTimeoutError | hello")
            .want_on(
                &[Wire::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("a byte order mark before the answer", "call=bom")
            .want_on(&[Wire::Stdio, Wire::Sse], "timed out | hello", "MCPTimeoutError | hello")
            .want_on(&[Wire::WebSocket, Wire::Document], "hello | hello", "hello | hello")
            .want_on(&[Wire::Events], "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        row("JSON as deep as allowed", "call=deep:100").want_on(ALL, "hello | hello", "hello | hello"),
        row("JSON a hundred thousand deep", "call=deep:100000").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("an answer of half a megabyte", "call=huge:500000").want_on(
            ALL,
            "500000 bytes | hello",
            "500000 bytes | hello",
        ),
        row("an answer over the limit", "call=huge:2000000")
            .want_on(
                &[Wire::Stdio, Wire::Sse, Wire::Events, Wire::Document],
                "too large | hello",
                "MCPProtocolError | hello",
            )
            .want_on(
                &[Wire::WebSocket],
                "lost: broken | not sent: broken",
                "MCPConnectionError | hello | started again",
            ),
        row("it reads no more", "list=well+deaf")
            .want_on(
                &[Wire::Stdio, Wire::WebSocket],
                "timed out | lost: stalled",
                // A new connection takes what fits into a pipe, and is as deaf.
                "MCPTimeoutError or MCPConnectionError | MCPConnectionError or MCPTimeoutError | started again",
            )
            .want_on(
                &[Wire::Sse, Wire::Events, Wire::Document],
                "timed out | timed out",
                "MCPTimeoutError | MCPTimeoutError",
            ),
        row("it does not answer when it is listed", "list=hush").want_on(
            ALL,
            "list: timed out | hello",
            "not started: MCPTimeoutError",
        ),
        row("it breaks off in a list", "list=half+reset")
            .want_on(
                &[Wire::Stdio, Wire::WebSocket],
                "list: lost: closed | not sent: closed",
                "not started: MCPConnectionError",
            )
            .want_on(&[Wire::Sse], "list: lost: broken | not sent: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "list: answer lost | hello", "not started: MCPConnectionError"),
        row("it closes in a list", "list=end")
            .want_on(
                &[Wire::Stdio, Wire::WebSocket],
                "list: lost: closed | not sent: closed",
                "not started: MCPConnectionError",
            )
            .want_on(&[Wire::Sse], "list: lost: broken | not sent: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "list: answer lost | hello", "not started: MCPConnectionError"),
        row("its own stream only keeps alive", "hear=alive").want_on(ALL, "hello | hello", "hello | hello"),
        row("its own stream floods", "hear=flood").want_on(ALL, "hello | hello", "hello | hello"),
        row("its own stream ends again and again", "hear=end")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(SHARED, "its own stream is the connection: see the one that closes in a call"),
        row("its own stream breaks off again and again", "hear=reset")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(SHARED, "its own stream is the connection: see the one that breaks off in a call"),
        row("it does not answer when it is to end", "close=hush")
            .want_on(ALL, "hello | hello", "hello | hello")
            .absent_on(&[Wire::Sse], "nobody is asked: the stream is let go of"),
    ]
}
