//! Words of servers about sessions.

/// Whether an error message reports a lost session: `Bad Request: No valid session ID provided`, `Invalid session ID`,
/// `Session not found`, `Server not initialized`.
///
/// Whole phrases, not words: a tool may fail because a session of its own was closed, and its call must not
/// be repeated.
#[cfg(feature = "http")]
pub(crate) fn reports_lost_session(text: &str) -> bool {
    const PHRASES: [&str; 9] = [
        "session id",
        "session-id",
        "session not found",
        "session expired",
        "session has expired",
        "session terminated",
        "session has been terminated",
        "unknown session",
        "no such session",
    ];
    let text = text.to_ascii_lowercase();
    reports_missing_initialization(&text) || PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Whether an error message reports that there was no handshake.
pub(crate) fn reports_missing_initialization(text: &str) -> bool {
    text.to_ascii_lowercase().contains("not initialized")
}

/// Whether a text is about a session of any kind. It proves nothing: a check of the session has to follow.
pub(crate) fn mentions_session(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("session") || text.contains("no transport found") || reports_missing_initialization(&text)
}
