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

/// What the machine lets this process use. What is unknown is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProcessResources {
    /// The maximum number of open file descriptors.
    pub descriptors: Option<u64>,
    /// The memory that the process can still get, in bytes.
    pub memory_bytes: Option<u64>,
}

/// The memory of a connection, with its buffers and a request, in bytes.
const CONNECTION_MEMORY: u64 = 256 << 10;

/// The memory of a session, with the messages that it keeps for a client, in bytes.
const SESSION_MEMORY: u64 = 1 << 20;

/// Maximum number of connections, and of sessions, that [`Bounds::for_resources`] sets.
const MAX_BY_RESOURCES: u64 = 16_384;

/// Minimum number of connections, and of sessions, that [`Bounds::for_resources`] sets.
const MIN_BY_RESOURCES: u64 = 64;

/// Minimum of [`Bounds::held_bytes`] that [`Bounds::for_resources`] sets.
const MIN_HELD_BYTES: u64 = 16 << 20;

impl Bounds {
    /// Limits for a process with these resources. Connections use at most half of the descriptors, since servers need
    /// some, and 256 KiB of memory each; a session needs 1 MiB; an eighth of the memory is for messages and responses.
    /// What is unknown has the default.
    pub fn for_resources(resources: &ProcessResources) -> Bounds {
        let mut bounds = Bounds::default();
        let ProcessResources { descriptors, memory_bytes } = *resources;
        let number = |number: u64| number.clamp(MIN_BY_RESOURCES, MAX_BY_RESOURCES) as usize;
        let by_descriptors = descriptors.map(|descriptors| descriptors / 2);
        let by_memory = memory_bytes.map(|bytes| bytes / CONNECTION_MEMORY);
        if let Some(connections) = by_descriptors.into_iter().chain(by_memory).min() {
            bounds.set_connections(number(connections));
        }
        if let Some(bytes) = memory_bytes {
            bounds.set_sessions(number(bytes / SESSION_MEMORY));
            let held_bytes = usize::try_from((bytes / 8).max(MIN_HELD_BYTES)).unwrap_or(usize::MAX);
            bounds.held_bytes = bounds.held_bytes.min(held_bytes);
        }
        bounds
    }

    /// Sets the number of connections. Half of them may be streams.
    pub fn set_connections(&mut self, connections: usize) {
        self.connections = connections;
        self.streams = (connections / 2).max(1);
    }

    /// Sets the number of sessions. A quarter of them may belong to one token.
    pub fn set_sessions(&mut self, sessions: usize) {
        self.sessions = sessions;
        self.sessions_per_client = (sessions / 4).max(1);
    }

    /// Sets the number of concurrent requests. A sixteenth of them may belong to one session.
    pub fn set_requests(&mut self, requests: usize) {
        self.requests = requests;
        self.requests_per_client = (requests / 16).max(1);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections, streams, sessions, sessions of a token, and MiB of messages in memory.
    #[track_caller]
    fn check(descriptors: Option<u64>, mebibytes: Option<u64>, want: [usize; 5]) {
        let memory_bytes = mebibytes.map(|number| number << 20);
        let bounds = Bounds::for_resources(&ProcessResources { descriptors, memory_bytes });
        let Bounds { connections, streams, sessions, sessions_per_client, held_bytes, .. } = bounds;
        assert_eq!([connections, streams, sessions, sessions_per_client, held_bytes >> 20], want);
    }

    // RPT-477
    #[test]
    fn limits_follow_the_resources_of_the_process() {
        check(None, None, [1024, 512, 1024, 256, 256]);
        check(Some(1024), None, [512, 256, 1024, 256, 256]);
        check(Some(1 << 20), None, [16_384, 8192, 1024, 256, 256]);
        check(None, Some(512), [2048, 1024, 512, 128, 64]);
        check(Some(4096), Some(512), [2048, 1024, 512, 128, 64]);
        check(Some(1024), Some(512), [512, 256, 512, 128, 64]);
        check(Some(1 << 20), Some(64 << 10), [16_384, 8192, 16_384, 4096, 256]);
        check(Some(16), Some(1), [64, 32, 64, 16, 16]);
    }
}
