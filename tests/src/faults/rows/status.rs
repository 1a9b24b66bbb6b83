//! Faults in HTTP statuses and redirects.

use super::*;

const CODES: [u16; 8] = [401, 403, 404, 409, 429, 500, 502, 503];

pub(super) fn rows() -> Vec<FaultRow> {
    let row = |fault: String, script: String| {
        row(Group::Status, fault, script).absent_on(STDIO, "a pipe has no status")
    };
    let begun = |fault: String, script: String| {
        row(fault, script).want_on(NETWORK, "no session: refused", "not started: MCPConnectionError")
    };
    let called = |fault: String, script: String| {
        row(fault, script).absent_on(&[Transport::WebSocket], "an open connection has no status")
    };
    let mut res = Vec::new();
    for code in CODES {
        res.push(begun(format!("{code} at the start"), format!("open=status:{code}")));
        res.push(begun(format!("{code} with a body at the start"), format!("open=spoken:{code}")));
    }
    for code in CODES {
        let bare = called(format!("{code} to a call"), format!("call=status:{code}"));
        let spoken = called(format!("{code} with a body to a call"), format!("call=spoken:{code}"));
        res.extend([bare, spoken].map(|it| refused(it, code)));
    }
    let text = str::to_owned;
    res.push(begun(text("endless redirects at the start"), text("open=round")));
    res.push(begun(text("a redirect to another host at the start"), text("open=away")));
    for (fault, script) in
        [("endless redirects of a call", "call=round"), ("a redirect of a call to another host", "call=away")]
    {
        let row = called(text(fault), text(script));
        res.push(row.want_on(NETWORK, "refused | hello", "MCPConnectionError | hello"));
    }
    res.push(called(text("503 to a list"), text("list=status:503")).want_on(
        NETWORK,
        "list: answer lost | hello",
        "not started: MCPConnectionError",
    ));
    res
}

/// Adds the outcome of a status for a call.
fn refused(row: FaultRow, code: u16) -> FaultRow {
    match code {
        // With a stream, a 404 ends the session. The next request may start before that is known.
        404 => row
            .want_on(
                &[Transport::Sse],
                "refused | not sent: broken or lost: broken",
                "MCPConnectionError | hello | restarted",
            )
            .want_on(HTTP, "refused | hello", "MCPConnectionError | hello"),
        // The call may have run.
        500.. => row.want_on(NETWORK, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        _ => row.want_on(NETWORK, "refused | hello", "MCPConnectionError | hello"),
    }
}
