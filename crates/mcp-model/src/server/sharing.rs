//! Sharing of a running instance of a server between callers.

/// The callers that may use one running instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every value, so that none is forgotten"
)]
pub enum Sharing {
    /// All callers at the same time, until the server sends its first request to the client. From then on each dialog
    /// has its own instance, if the host leases servers that send requests.
    Auto,
    /// All callers at the same time.
    Shared,
    /// One dialog per instance, its owner (DM-074).
    PerOwner,
}
