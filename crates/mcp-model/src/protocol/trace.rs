//! W3C trace contexts, as MCP carries them in a request's `_meta`.
//!
//! An invalid context is rejected here, because a server that receives one starts a new trace without an error.

use std::fmt;

/// A trace context (W3C Trace Context, level 1). A request's `_meta` carries it as `traceparent` and `tracestate`,
/// the two names that MCP exempts from the prefix rule.
///
/// Invariant: both are ASCII without control characters, so they need no escaping in a header; `tracestate` has at
/// most 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
}

/// The error for an invalid trace context. Does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTraceContext {
    /// `traceparent` is not `version-trace-parent-flags` in lower-case hexadecimal digits, or its version is `ff`.
    #[error("`traceparent` must be two, 32, 16 and two lower-case hexadecimal digits with `-` between them")]
    Parent,
    /// The trace id or the parent id is all zeros, which means none.
    #[error("`traceparent` names no trace: an id in it is all zeros")]
    NoTrace,
    /// `tracestate` is empty, too long, or contains an invalid character.
    #[error("`tracestate` must be 1 to 512 printable ASCII characters")]
    State,
}

impl TraceContext {
    /// The maximum length of `tracestate` in bytes, which every participant must forward.
    pub const MAX_STATE_BYTES: usize = 512;

    /// Parses the values of `traceparent` and `tracestate`. A future version may append to the four parts of
    /// `traceparent`.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Result<TraceContext, InvalidTraceContext> {
        // The four parts of version 00 with their separators have 55 bytes.
        let (known, appended) = traceparent.split_at_checked(55).ok_or(InvalidTraceContext::Parent)?;
        let parts: Vec<&str> = known.split('-').collect();
        let &[version, trace, span, flags] = parts.as_slice() else {
            return Err(InvalidTraceContext::Parent);
        };
        let is_hex = |part: &&str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let has_lengths = [version, trace, span, flags].map(str::len) == [2, 32, 16, 2];
        let is_plain = appended.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let can_append = version != "00" && appended.starts_with('-') && is_plain && appended.len() <= 256;
        let is_valid = has_lengths && parts.iter().all(is_hex) && version != "ff";
        if !is_valid || !(appended.is_empty() || can_append) {
            return Err(InvalidTraceContext::Parent);
        }
        if [trace, span].iter().any(|id| id.bytes().all(|byte| byte == b'0')) {
            return Err(InvalidTraceContext::NoTrace);
        }
        if let Some(state) = tracestate {
            let is_printable = state.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
            if state.is_empty() || state.len() > TraceContext::MAX_STATE_BYTES || !is_printable {
                return Err(InvalidTraceContext::State);
            }
        }
        let tracestate = tracestate.map(|state| state.replace('\t', " "));
        Ok(TraceContext { traceparent: traceparent.to_owned(), tracestate })
    }

    /// Returns the value of `traceparent`.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// Returns the value of `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }
}

impl fmt::Display for TraceContext {
    /// Writes the value of `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parent: &str, state: Option<&str>, want: Result<&str, InvalidTraceContext>) {
        let got = TraceContext::parse(parent, state);
        let got = got.as_ref().map(|it| it.tracestate().unwrap_or("-")).map_err(|it| *it);
        assert_eq!(got, want, "{parent}");
    }

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn parses_w3c_contexts() {
        check(GOOD, None, Ok("-"));
        check(GOOD, Some("a=1,b@c=2"), Ok("a=1,b@c=2"));
        check(GOOD, Some("a=1,\tb=2"), Ok("a=1, b=2"));
        // A later version may be longer.
        check(&GOOD.replacen("00", "01", 1), None, Ok("-"));
        check(&format!("{}-more", GOOD.replacen("00", "01", 1)), None, Ok("-"));
    }

    #[test]
    fn rejects_invalid_contexts() {
        use InvalidTraceContext::{NoTrace, Parent, State};
        let upper = GOOD.to_uppercase();
        let ff = GOOD.replacen("00", "ff", 1);
        let more = format!("{GOOD}-more");
        let quoted = format!("{}-\"", GOOD.replacen("00", "01", 1));
        let cut = GOOD.replace("4736", "47é");
        for it in ["", "00", &GOOD[1..], &upper, &ff, &more, &quoted, &cut, &GOOD.replace('-', "_")] {
            check(it, None, Err(Parent));
        }
        check("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None, Err(NoTrace));
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None, Err(NoTrace));
        for it in ["", "a=\n", "a=é", &"a".repeat(513)] {
            check(GOOD, Some(it), Err(State));
        }
    }
}
