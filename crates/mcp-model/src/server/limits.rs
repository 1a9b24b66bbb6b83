//! How long a server may take and how much it may send.

use std::time::Duration;

/// The limits of one server. Every duration is finite and greater than zero.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The absolute deadline of one request, from the caller's point of view.
    pub request: Duration,
    /// The longest silence during a request; progress ends it. Unset: only `request` counts.
    pub idle: Option<Duration>,
    /// How long connecting may take (TCP, TLS, the first bytes of an answer).
    pub connect: Duration,
    /// How long the server may take from its start to its lists. Longer than a cold `npx`.
    pub startup: Duration,
    /// The longest silence on an event stream.
    pub sse_read: Duration,
    /// The largest single message, in bytes.
    pub message_bytes: usize,
    /// The largest result handed to a caller, in bytes of content; longer text is cut.
    pub result_bytes: usize,
    /// The most tools, prompts or resources kept of one server.
    pub list_items: usize,
    /// The most pages read of one list.
    pub list_pages: usize,
}

impl Default for Limits {
    /// 60 s a request, 30 s to connect, 60 s to start, 300 s of silence on a stream, 64 MiB a message, 256 KiB a
    /// result, 20,000 items and 1,000 pages a list.
    fn default() -> Limits {
        Limits {
            request: Duration::from_secs(60),
            idle: None,
            connect: Duration::from_secs(30),
            startup: Duration::from_secs(60),
            sse_read: Duration::from_secs(300),
            message_bytes: 64 << 20,
            result_bytes: 256 << 10,
            list_items: 20_000,
            list_pages: 1_000,
        }
    }
}
