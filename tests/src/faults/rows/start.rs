//! Faults before the session.

use super::*;

pub(super) fn rows() -> Vec<FaultRow> {
    let row = |fault: &str, script: &str| row(Group::Start, fault, script);
    let tls = |fault: &str, script: &str| row(fault, script).absent_on(STDIO, "a pipe has no TLS");
    vec![
        row("no server exists", "start=no-server")
            .want_on(STDIO, "no session: not started", "not started: MCPConnectionError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it accepts the connection and sends nothing", "start=hush").want_on(
            ALL,
            "no session: silent",
            "not started: MCPTimeoutError",
        ),
        row("it greets in another protocol", "start=banner")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it floods from the start", "start=flood")
            .want_on(STDIO, "no session: silent or no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it closes at once", "start=end")
            .want_on(STDIO, "no session: closed", "not started: MCPConnectionError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        row("it resets the connection at once", "start=reset")
            .want_on(STDIO, "no session: closed", "not started: MCPConnectionError")
            .want_on(NETWORK, "no session: refused", "not started: MCPConnectionError"),
        tls("its certificate is self-signed", "start=self-signed").want_on(
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
        row("it does not respond to the handshake", "open=hush").want_on(
            ALL,
            "no session: silent",
            "not started: MCPTimeoutError",
        ),
        row("it sends half a handshake response", "open=half+hush")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: silent", "not started: MCPTimeoutError"),
        row("it resets the connection in its handshake response", "open=half+reset")
            .want_on(SHARED, "no session: closed", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it closes the connection in its handshake response", "open=half+end")
            .want_on(SHARED, "no session: closed", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it resets the connection in the handshake", "open=reset")
            .want_on(SHARED, "no session: closed", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("it closes the connection in the handshake", "open=end")
            .want_on(SHARED, "no session: closed", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("its handshake response is an error", "open=error").want_on(
            ALL,
            "no session: rejected",
            "not started: MCPProtocolError",
        ),
        row("it sends the handshake response byte by byte", "open=drip:1").want_on(
            ALL,
            "hello | hello",
            "hello | hello",
        ),
        row("it sends the handshake response too slowly", "open=drip:100")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(NETWORK, "no session: silent", "not started: MCPTimeoutError"),
        row("it sends only keep-alive data instead of the handshake response", "open=alive").want_on(
            ALL,
            "no session: silent",
            "not started: MCPTimeoutError",
        ),
        row("it floods instead of the handshake response", "open=flood")
            .want_on(ALL, "no session: silent or no session: timed out", "not started: MCPTimeoutError")
            .absent_on(&[Transport::Document], "a JSON response is one message: see the endless one"),
        row("its handshake response has no end", "open=endless")
            .want_on(SHARED, "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: unreadable", "not started: MCPProtocolError"),
        row("its handshake response has another framing", "open=misframed")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(&[Transport::Sse], "no session: silent", "not started: MCPTimeoutError")
            .want_on(&[Transport::WebSocket], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("its handshake response is in UTF-16", "open=utf16")
            .want_on(STDIO, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(&[Transport::Sse], "no session: silent", "not started: MCPTimeoutError")
            .want_on(&[Transport::WebSocket], "no session: broken", "not started: MCPConnectionError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("its handshake response has a wrong id", "open=wrong-id")
            .want_on(SHARED, "no session: timed out", "not started: MCPTimeoutError")
            .want_on(HTTP, "no session: refused", "not started: MCPConnectionError"),
        row("its handshake response is too large", "open=huge:2000000")
            .want_on(
                &[Transport::Stdio, Transport::Sse, Transport::Events, Transport::Document],
                "no session: unreadable",
                "not started: MCPProtocolError",
            )
            .want_on(&[Transport::WebSocket], "no session: broken", "not started: MCPConnectionError"),
    ]
}
