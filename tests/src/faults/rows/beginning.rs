//! Faults before there is a session.

use super::*;

pub(super) fn rows() -> Vec<Row> {
    let row = |fault: &str, script: &str| row(Group::Beginning, fault, script);
    let tls = |fault: &str, script: &str| row(fault, script).absent_on(STDIO, "a pipe has no TLS");
    vec![
        row("nobody is there", "start=nobody")
            .want_on(STDIO, "no session: not started", "not started: MCPConnectionError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it accepts and says nothing", "start=hush").want_on(
            ALL,
            "no session: silent",
            "not started: MCPTimeoutError",
        ),
        row("it greets in another protocol", "start=banner")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it floods from the first moment", "start=flood")
            .want_on(STDIO, "no session: silent or no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it closes at once", "start=end")
            .want_on(STDIO, "no session: closed", "not started: MCPConnectionError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it breaks off at once", "start=reset")
            .want_on(STDIO, "no session: closed", "not started: MCPConnectionError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        tls("its certificate is its own", "start=self-signed").want_on(
            ALL,
            "no session: refused",
            "not started: MCPConnectionError",
        ),
        tls("its certificate is for another name", "start=wrong-name").want_on(
            ALL,
            "no session: refused",
            "not started: MCPConnectionError",
        ),
        tls("its certificate has expired", "start=expired").want_on(
            ALL,
            "no session: refused",
            "not started: MCPConnectionError",
        ),
        row("it does not answer the handshake", "open=hush").want_on(
            ALL,
            "no session: silent",
            "not started: MCPTimeoutError",
        ),
        row("it answers the handshake by half", "open=half+hush")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: silent", "not started: MCPTimeoutError"),
        row("it breaks off in its answer to the handshake", "open=half+reset")
            .want_on(&[Wire::Stdio, Wire::WebSocket], "no session: closed", "not started: MCPConnectionError")
            .want_on(&[Wire::Sse], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it closes in its answer to the handshake", "open=half+end")
            .want_on(&[Wire::Stdio, Wire::WebSocket], "no session: closed", "not started: MCPConnectionError")
            .want_on(&[Wire::Sse], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it breaks off in the handshake", "open=reset")
            .want_on(&[Wire::Stdio, Wire::WebSocket], "no session: closed", "not started: MCPConnectionError")
            .want_on(&[Wire::Sse], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it closes in the handshake", "open=end")
            .want_on(&[Wire::Stdio, Wire::WebSocket], "no session: closed", "not started: MCPConnectionError")
            .want_on(&[Wire::Sse], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it answers the handshake with an error", "open=error").want_on(
            ALL,
            "no session: rejected",
            "not started: MCPProtocolError",
        ),
        row("it answers the handshake a byte at a time", "open=drip:1").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it answers the handshake slower than there is time", "open=drip:100")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: silent", "not started: MCPTimeoutError"),
        row("it only keeps alive instead of the handshake", "open=alive").want_on(
            ALL,
            "no session: silent",
            "not started: MCPTimeoutError",
        ),
        row("it floods instead of the handshake", "open=flood")
            .want_on(ALL, "no session: silent or no session: timed out", "not started: MCPTimeoutError")
            .absent_on(&[Wire::Document], "a document is one message: see the endless one"),
        row("it answers the handshake without end", "open=endless")
            .want_on(SHARED, "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: unreadable", "not started: MCPProtocolError"),
        row("it answers the handshake in another framing", "open=misframed")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(&[Wire::Sse], "no session: silent", "not started: MCPTimeoutError")
            .want_on(&[Wire::WebSocket], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it answers the handshake in UTF-16", "open=utf16")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(&[Wire::Sse], "no session: silent", "not started: MCPTimeoutError")
            .want_on(&[Wire::WebSocket], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it answers the handshake under a wrong id", "open=wrong-id")
            .want_on(SHARED, "no session: silent", "not started: MCPTimeoutError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("its answer to the handshake is too large", "open=huge:2000000")
            .want_on(
                &[Wire::Stdio, Wire::Sse, Wire::Events, Wire::Document],
                "no session: unreadable",
                "not started: MCPProtocolError",
            )
            .want_on(&[Wire::WebSocket], "no session: broken", "not started: MCPConnectionError"),
    ]
}
