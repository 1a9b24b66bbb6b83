//! The encoding of a message on each transport, whole and in halves.

/// The line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnding {
    Lf,
    CrLf,
}

impl LineEnding {
    /// The text with these line endings.
    pub(super) fn apply(self, text: &str) -> String {
        match self {
            LineEnding::Lf => text.to_owned(),
            LineEnding::CrLf => text.replace('\n', "\r\n"),
        }
    }

    /// The line ending after a message on transports that need none, as written by a server that writes lines.
    pub(super) fn after_json(self) -> &'static str {
        match self {
            LineEnding::Lf => "",
            LineEnding::CrLf => "\r\n",
        }
    }
}

/// A line.
pub(super) fn line(text: &str, line_ending: LineEnding) -> String {
    line_ending.apply(&format!("{text}\n"))
}

/// An event of an event stream.
pub(super) fn event(text: &str, line_ending: LineEnding) -> String {
    line_ending.apply(&format!("event: message\ndata: {text}\n\n"))
}

/// A WebSocket text frame from a server.
pub(super) fn websocket(text: &str) -> Vec<u8> {
    let mut res = vec![0x81, 127];
    res.extend((text.len() as u64).to_be_bytes());
    match u8::try_from(text.len()) {
        Ok(len @ ..126) => res = vec![0x81, len],
        _ => {
            if let Ok(len) = u16::try_from(text.len()) {
                res = vec![0x81, 126];
                res.extend(len.to_be_bytes());
            }
        }
    }
    res.extend(text.as_bytes());
    res
}

/// A chunk of a response with chunked encoding.
pub(super) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

pub(super) fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.len() / 2)
}

pub(super) fn halved(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len() / 2)
}
