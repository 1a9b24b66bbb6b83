//! Framing of messages on each transport, correct and incorrect.

/// The framing of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A line.
    Line,
    /// An event of an open stream, in a chunk.
    Event,
    /// A text frame.
    Frame,
    /// An event of the response to one request.
    ResponseEvent {
        /// Whether the head of the response was sent.
        begun: bool,
    },
    /// The JSON response to one request.
    ResponseDocument,
}

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const ENDLESS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The end of a chunked response.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

impl Framing {
    /// Whether each request has its own HTTP response.
    pub(crate) fn has_own_response(self) -> bool {
        matches!(self, Framing::ResponseEvent { .. } | Framing::ResponseDocument)
    }

    /// Frames a message.
    pub(crate) fn frame(&mut self, payload: &[u8]) -> Vec<u8> {
        match self {
            Framing::Line => [payload, b"\n"].concat(),
            Framing::Event => chunk(&event(payload)),
            Framing::Frame => frame(0x81, payload),
            Framing::ResponseEvent { .. } => [self.head(), chunk(&event(payload))].concat(),
            Framing::ResponseDocument => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    payload.len()
                );
                [head.as_bytes(), payload].concat()
            }
        }
    }

    /// Frames a message in UTF-16, including the framing where it applies.
    pub(crate) fn utf16(&mut self, payload: &[u8]) -> Vec<u8> {
        let wide = |text: &[u8]| -> Vec<u8> {
            let text = std::str::from_utf8(text).unwrap();
            [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
        };
        match self {
            Framing::Line => wide(&[payload, b"\n"].concat()),
            Framing::Event => chunk(&wide(&event(payload))),
            Framing::ResponseEvent { .. } => [self.head(), chunk(&wide(&event(payload)))].concat(),
            Framing::Frame | Framing::ResponseDocument => self.frame(&wide(payload)),
        }
    }

    /// Frames a message like another protocol.
    pub(crate) fn misframed(&mut self, payload: &[u8]) -> Vec<u8> {
        match self {
            Framing::Line => {
                [format!("Content-Length: {}\r\n\r\n", payload.len()).as_bytes(), payload].concat()
            }
            Framing::Event => chunk(&[payload, b"\n\n"].concat()),
            // A reserved opcode.
            Framing::Frame => frame(0x83, payload),
            Framing::ResponseEvent { .. } => [self.head(), chunk(&[payload, b"\n\n"].concat())].concat(),
            Framing::ResponseDocument => [ENDLESS.as_bytes(), b"no number\r\n", payload].concat(),
        }
    }

    /// The start of a message without end, and a piece of it.
    pub(crate) fn endless(&mut self) -> (Vec<u8>, Vec<u8>) {
        let piece = vec![b'x'; 64 << 10];
        match self {
            Framing::Line => (br#"{"jsonrpc":""#.to_vec(), piece),
            Framing::Event => (chunk(b"data: {\"jsonrpc\":\""), chunk(&piece)),
            Framing::Frame => (frame(0x01, br#"{"jsonrpc":""#), frame(0x00, &piece)),
            Framing::ResponseEvent { .. } => {
                ([self.head(), chunk(b"data: {\"jsonrpc\":\"")].concat(), chunk(&piece))
            }
            Framing::ResponseDocument => {
                ([ENDLESS.as_bytes(), &chunk(br#"{"jsonrpc":""#)].concat(), chunk(&piece))
            }
        }
    }

    /// Keep-alive data.
    pub(crate) fn alive(&mut self) -> Vec<u8> {
        match self {
            Framing::Line => b"\n".to_vec(),
            Framing::Event => chunk(b": \n\n"),
            Framing::Frame => frame(0x89, b""),
            Framing::ResponseEvent { .. } => [self.head(), chunk(b": \n\n")].concat(),
            // Whitespace before a document.
            Framing::ResponseDocument => chunk(b" "),
        }
    }

    /// The head of a chunked response, if it was not sent yet.
    pub(crate) fn head(&mut self) -> Vec<u8> {
        match self {
            Framing::ResponseEvent { begun: begun @ false } => {
                *begun = true;
                EVENTS.into()
            }
            Framing::ResponseDocument => ENDLESS.into(),
            Framing::Line | Framing::Event | Framing::Frame | Framing::ResponseEvent { begun: true } => {
                Vec::new()
            }
        }
    }
}

/// A chunk.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A WebSocket frame of a server.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut res = vec![first];
    match payload.len() {
        length @ ..126 => res.push(length as u8),
        length @ ..65536 => {
            res.push(126);
            res.extend((length as u16).to_be_bytes());
        }
        length => {
            res.push(127);
            res.extend((length as u64).to_be_bytes());
        }
    }
    res.extend(payload);
    res
}

fn event(payload: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", payload, b"\n\n"].concat()
}
