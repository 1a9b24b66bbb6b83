//! Timeouts that a client requests for one server, in the `_meta` of its entry.
//!
//! ACP has no field for them: `"_meta": {"mcpTimeouts": {"startupMs": 120000, "requestMs": 600000}}`. An invalid value
//! is a warning and has no effect.

use std::time::Duration;

use mcp_host_model::RawJson;
use serde_json::{Map, Value};

/// The member of `_meta`.
const KEY: &str = "mcpTimeouts";

/// The maximum timeout: one day.
const MAX_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The timeouts of a server that its client has requested; `None`: those of the agent apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerTimeouts {
    /// `startupMs`: from the start of the server until its tools are known.
    pub startup: Option<Duration>,
    /// `requestMs`: for a call, and for any other request.
    pub request: Option<Duration>,
}

/// An invalid member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidTimeout {
    /// JSON pointer below `_meta`.
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl ServerTimeouts {
    /// Reads the `_meta` of an entry. Returns the timeouts, and the members that are invalid.
    pub(crate) fn read(meta: &RawJson) -> (ServerTimeouts, Vec<InvalidTimeout>) {
        let (mut timeouts, mut invalid) = (ServerTimeouts::default(), Vec::new());
        let mut report = |pointer: String, message: String| invalid.push(InvalidTimeout { pointer, message });
        // `_meta` may be any JSON, also one that serde_json's values cannot represent.
        let members: Map<String, Value> = match meta.read::<serde_json::Value>() {
            Ok(Value::Object(mut meta)) => match meta.remove(KEY) {
                None => return (timeouts, invalid),
                Some(Value::Object(members)) => members,
                Some(_) => {
                    report(format!("/{KEY}"), format!("'{KEY}' must be an object; it is ignored"));
                    return (timeouts, invalid);
                }
            },
            Ok(_) | Err(_) => return (timeouts, invalid),
        };
        for (key, value) in &members {
            let timeout = match key.as_str() {
                "startupMs" => &mut timeouts.startup,
                "requestMs" => &mut timeouts.request,
                _ => continue,
            };
            match value.as_u64().filter(|millis| (1..=MAX_MILLIS).contains(millis)) {
                Some(millis) => *timeout = Some(Duration::from_millis(millis)),
                None => report(
                    format!("/{KEY}/{key}"),
                    format!("'{key}' must be a whole number from 1 to {MAX_MILLIS}; it is ignored"),
                ),
            }
        }
        (timeouts, invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(meta: &str, startup: Option<u64>, request: Option<u64>, invalid: &[&str]) {
        let (timeouts, reported) = ServerTimeouts::read(&RawJson::parse(meta.to_owned().into()).unwrap());
        let millis = |timeout: Option<Duration>| timeout.map(|it| u64::try_from(it.as_millis()).unwrap());
        assert_eq!((millis(timeouts.startup), millis(timeouts.request)), (startup, request), "{meta}");
        assert_eq!(reported.iter().map(|it| it.pointer.as_str()).collect::<Vec<_>>(), invalid, "{meta}");
    }

    #[test]
    fn timeouts_are_whole_positive_milliseconds() {
        check("{}", None, None, &[]);
        check("[1]", None, None, &[]);
        check(r#"{"n":1e400,"mcpTimeouts":{"startupMs":1}}"#, None, None, &[]);
        check(r#"{"mcpTimeouts":{"startupMs":120000,"requestMs":1,"else":2}}"#, Some(120_000), Some(1), &[]);
        check(r#"{"mcpTimeouts":{"startupMs":0}}"#, None, None, &["/mcpTimeouts/startupMs"]);
        check(
            r#"{"mcpTimeouts":{"requestMs":86400001,"startupMs":5}}"#,
            Some(5),
            None,
            &["/mcpTimeouts/requestMs"],
        );
        check(r#"{"mcpTimeouts":{"startupMs":"5"}}"#, None, None, &["/mcpTimeouts/startupMs"]);
        check(r#"{"mcpTimeouts":30}"#, None, None, &["/mcpTimeouts"]);
    }
}
