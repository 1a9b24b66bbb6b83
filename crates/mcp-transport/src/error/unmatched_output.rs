//! What a server sent that resembles MCP but belongs to no request. It explains a timeout.
//!
//! Pure. Only output that was not accepted is examined.

use std::fmt;

use serde::de::IgnoredAny;

/// Maximum number of bytes of an output that are examined.
const MAX_EXAMINED_BYTES: usize = 64 << 10;

/// Output of a server that resembles MCP but belongs to no request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnmatchedOutput {
    /// A response with this id, which no request has.
    UnknownId(String),
    /// A result without an id.
    ResultWithoutId,
    /// An error without an id, with its message.
    ErrorWithoutId(String),
    /// A message with other text before or after it on its line.
    MixedWithText,
    /// A message over several lines.
    SeveralLines,
    /// A message without the line break that ends it.
    NoLineBreak,
    /// Messages with `Content-Length` headers, as language servers send them.
    ContentLength,
}

impl UnmatchedOutput {
    /// Recognizes output that is no message. `None` for text without a message in it.
    pub(crate) fn from_noise(output: &[u8]) -> Option<UnmatchedOutput> {
        const HEADER: &[u8] = b"content-length:";
        let text = output[..output.len().min(MAX_EXAMINED_BYTES)].trim_ascii();
        if text.get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER)) {
            return Some(UnmatchedOutput::ContentLength);
        }
        // The first line of an indented object or list.
        if matches!(text, b"{" | b"[") || text.starts_with(b"\"jsonrpc\"") {
            return Some(UnmatchedOutput::SeveralLines);
        }
        memchr::memmem::find(text, b"\"jsonrpc\"")?;
        let is_unfinished = match serde_json::from_slice::<IgnoredAny>(text) {
            Ok(_) => return None,
            Err(error) => error.is_eof(),
        };
        Some(if is_unfinished { UnmatchedOutput::SeveralLines } else { UnmatchedOutput::MixedWithText })
    }

    /// What to do.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            UnmatchedOutput::UnknownId(_)
            | UnmatchedOutput::ResultWithoutId
            | UnmatchedOutput::ErrorWithoutId(_) => {
                "a response repeats the id of its request: update the server, or report this as its bug"
            }
            UnmatchedOutput::MixedWithText => {
                "each message needs a line of its own: make the server log to standard error"
            }
            UnmatchedOutput::SeveralLines => {
                "each message needs to be one line: switch the indentation of JSON off in the server"
            }
            UnmatchedOutput::NoLineBreak => {
                "each message ends with a line break: write one after it, and flush the output in the server"
            }
            UnmatchedOutput::ContentLength => {
                "MCP has one message per line and no headers: use a version or an option of the server for MCP"
            }
        }
    }
}

impl fmt::Display for UnmatchedOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnmatchedOutput::UnknownId(id) => {
                write!(f, "it sent a response with the id {id}, which no request has")
            }
            UnmatchedOutput::ResultWithoutId => f.write_str("it sent a result without an id"),
            UnmatchedOutput::ErrorWithoutId(message) if message.is_empty() => {
                f.write_str("it sent an error without an id")
            }
            UnmatchedOutput::ErrorWithoutId(message) => {
                write!(f, "it sent an error without an id: {message}")
            }
            UnmatchedOutput::MixedWithText => f.write_str("it mixed other text into the line of a message"),
            UnmatchedOutput::SeveralLines => f.write_str("it wrote a message over several lines"),
            UnmatchedOutput::NoLineBreak => f.write_str("it wrote a message without a line break at its end"),
            UnmatchedOutput::ContentLength => {
                f.write_str("it frames its messages with Content-Length headers, as language servers do")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RPT-036
    #[test]
    fn output_that_resembles_a_message_is_recognized() {
        #[track_caller]
        fn check(output: &str, want: Option<UnmatchedOutput>) {
            assert_eq!(UnmatchedOutput::from_noise(output.as_bytes()), want, "{output}");
        }
        check("Content-Length: 89\r", Some(UnmatchedOutput::ContentLength));
        check("content-length:89", Some(UnmatchedOutput::ContentLength));
        check("{", Some(UnmatchedOutput::SeveralLines));
        check("  \"jsonrpc\": \"2.0\",", Some(UnmatchedOutput::SeveralLines));
        check("{\"jsonrpc\":\"2.0\",\"result\":{", Some(UnmatchedOutput::SeveralLines));
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        check(&format!("processing… {message}"), Some(UnmatchedOutput::MixedWithText));
        check(&format!("\r10%\r100%{message}"), Some(UnmatchedOutput::MixedWithText));
        check(&format!("{message} done"), Some(UnmatchedOutput::MixedWithText));
        check("Server started on port 3000", None);
        check(r#"{"level":"info"}"#, None);
        check("", None);
    }
}
