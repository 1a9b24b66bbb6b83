//! Time and size limits of a server.

use std::time::Duration;

/// The limits of one server. Every duration is finite and positive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// The timeout of a request.
    pub request: Duration,
    /// The idle timeout of a request, which each progress notification restarts. `None`: only `request` applies.
    pub idle: Option<Duration>,
    /// The timeout of a connection attempt: TCP and TLS, for server-sent events also the `endpoint` event, for
    /// WebSocket the upgrade.
    pub connect: Duration,
    /// The timeout of a start, from the process or connection to the lists. By default longer than an `npx` that
    /// downloads its package.
    pub startup: Duration,
    /// The idle timeout of an event stream.
    pub sse_read: Duration,
    /// The maximum size of a message in bytes.
    pub message_bytes: usize,
    /// The maximum size of a result's content in bytes. Longer content is shortened.
    pub result_bytes: usize,
    /// The maximum number of items of a list.
    pub list_items: usize,
    /// The maximum number of pages of a list.
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
