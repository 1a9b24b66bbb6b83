//! The state of a session.

/// The state of a session (HD-082 to HD-084).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// Not connected yet.
    Created,
    /// The server is being started or contacted, or the handshake is in progress.
    Connecting,
    /// Calls can be made.
    Connected,
    /// Closed on request.
    Disconnected,
    /// Failed to connect, or disconnected unexpectedly, with the reason.
    Error(String),
}
