//! Limits on clients, which may be hostile.

use std::time::Duration;

/// The limits of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Maximum size of a client's message in bytes.
    pub message_bytes: usize,
    /// Maximum number of sessions. The same limit applies to dialogs of clients without sessions.
    pub sessions: usize,
    /// Maximum number of sessions of one token.
    pub sessions_per_client: usize,
    /// How long a session or a dialog may be unused before it ends.
    pub idle_timeout: Duration,
    /// Maximum number of concurrent requests of a session, or of a token without sessions. All sessions of a token
    /// together may have twice as many.
    pub requests_per_client: usize,
    /// Maximum number of concurrent requests of all clients. A token may have as many as remain for the others.
    pub requests: usize,
    /// Maximum number of calls of one token that wait for input, in the modern era.
    pub pending_inputs_per_client: usize,
    /// Maximum number of HTTP connections. At the limit a new one replaces an idle one. A token may have as many busy
    /// ones as remain for the others. While all are busy, 16 more are accepted for health and metrics only.
    pub connections: usize,
    /// Maximum number of streams that stay open. A token may have half of them.
    pub streams: usize,
    /// The number of bytes of messages and responses in memory that is divided between the clients: the tokens or,
    /// without tokens, the connections. Messages under 16 KiB do not count. A client may use as much as remains for the
    /// others, and always a sixteenth. Above its share its requests over HTTP are refused, and stdio input
    /// waits. Unread responses to accepted requests may fill the whole limit; further ones become errors. All
    /// clients together never use more than three times the limit.
    pub held_bytes: usize,
    /// Maximum number of messages queued for a client that does not read. Beyond it, its stream ends.
    pub queue_messages: usize,
    /// Maximum size of the queued messages in bytes. Beyond it, the client's stream ends.
    pub queue_bytes: usize,
    /// Time limit for the head of a request, and for its body.
    pub receive_timeout: Duration,
    /// How long a client may read none of the data that is sent to it.
    pub send_timeout: Duration,
    /// How long a client may take to answer a server request.
    pub server_request_timeout: Duration,
    /// How long running requests may take after the shutdown of an HTTP server began.
    pub shutdown_grace: Duration,
}

impl Default for Bounds {
    /// Messages of 4 MiB; 1,024 sessions, 256 per client; 30 minutes idle; 256 requests per session, 4,096 in all; 16
    /// pending inputs per client; 1,024 connections, 512 streams; 256 MiB in memory; 1,024 queued messages of 16 MiB;
    /// 30 s to receive and to send; 10 minutes for a server request; 5 s at shutdown.
    fn default() -> Bounds {
        Bounds {
            message_bytes: 4 * 1024 * 1024,
            sessions: 1024,
            sessions_per_client: 256,
            idle_timeout: Duration::from_secs(30 * 60),
            requests_per_client: 256,
            requests: 4096,
            pending_inputs_per_client: 16,
            connections: 1024,
            streams: 512,
            held_bytes: 256 * 1024 * 1024,
            queue_messages: 1024,
            queue_bytes: 16 * 1024 * 1024,
            receive_timeout: Duration::from_secs(30),
            send_timeout: Duration::from_secs(30),
            server_request_timeout: Duration::from_secs(600),
            shutdown_grace: Duration::from_secs(5),
        }
    }
}
