//! Faults in the statuses of HTTP, and in its redirects.

use super::*;

const CODES: [u16; 8] = [401, 403, 404, 409, 429, 500, 502, 503];

pub(super) fn rows() -> Vec<Row> {
    let row = |fault: String, script: String| {
        row(Group::Status, fault, script).absent_on(STDIO, "a pipe has no status")
    };
    let begun = |fault: String, script: String| {
        row(fault, script).want_on(NETWORK, "no session: refused", "not started: MCPConnectionError")
    };
    let called = |fault: String, script: String| {
        row(fault, script).absent_on(&[Wire::WebSocket], "once it is open it has no status")
    };
    let mut res = Vec::new();
    for code in CODES {
        res.push(begun(format!("{code} at the beginning"), format!("open=status:{code}")));
        res.push(begun(format!("{code} with words at the beginning"), format!("open=spoken:{code}")));
    }
    for code in CODES {
        let bare = called(format!("{code} to a call"), format!("call=status:{code}"));
        let spoken = called(format!("{code} with words to a call"), format!("call=spoken:{code}"));
        res.extend([bare, spoken].map(|it| refused(it, code)));
    }
    let text = str::to_owned;
    res.push(begun(text("redirects without end at the beginning"), text("open=round")));
    res.push(begun(text("a redirect to another host at the beginning"), text("open=away")));
    for (fault, script) in [
        ("redirects without end of a call", "call=round"),
        ("a redirect of a call to another host", "call=away"),
    ] {
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

/// What a status is to a call.
fn refused(row: Row, code: u16) -> Row {
    match code {
        // On a stream that is the session. What follows at once may begin before its end is known.
        404 => row
            .want_on(
                &[Wire::Sse],
                "refused | not sent: broken or lost: broken",
                "MCPConnectionError | hello | started again",
            )
            .want_on(HTTP, "refused | hello", "MCPConnectionError | hello"),
        // It may have run.
        500.. => row.want_on(NETWORK, "outcome unknown | hello", "MCPOutcomeUnknownError | hello"),
        _ => row.want_on(NETWORK, "refused | hello", "MCPConnectionError | hello"),
    }
}
