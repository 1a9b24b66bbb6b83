//! The rules for URLs, and the errors of their checks.

use crate::diagnostic::{CheckError, Code};

/// The URLs that a transport accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlRule {
    /// https, and http for this machine (HD-040, HD-043).
    HttpsOrLoopback,
    /// wss or ws (HD-042).
    WebSocket,
    /// http or https (DM-012).
    Http,
}

/// The error for a scheme that the rule does not accept.
pub(super) fn scheme_error(rule: UrlRule) -> CheckError {
    let (message, help) = match rule {
        UrlRule::HttpsOrLoopback => (
            "'url' must use https:// (or http:// for localhost)",
            "write an https:// URL; http:// is only for localhost, 127.0.0.0/8 and [::1]",
        ),
        UrlRule::WebSocket => (
            "'url' must use wss:// (or ws://) for websocket transport",
            "write a wss:// URL, or choose another transport",
        ),
        UrlRule::Http => ("'url' must be a valid http(s) URL", "write an http:// or https:// URL"),
    };
    CheckError::new(Code::UrlScheme, message, help)
}

/// The error for a text that is not a URL.
pub(super) fn invalid_url(rule: UrlRule, reason: &str) -> CheckError {
    match rule {
        UrlRule::HttpsOrLoopback | UrlRule::WebSocket => CheckError::new(
            Code::InvalidUrl,
            format!("'url' is not a valid URL: {reason}"),
            "write scheme, host and path, such as https://example.com/mcp",
        ),
        UrlRule::Http => CheckError::new(
            Code::InvalidUrl,
            format!("'url' must be a valid http(s) URL: {reason}"),
            "write scheme, host and path, such as https://example.com/mcp",
        ),
    }
}
