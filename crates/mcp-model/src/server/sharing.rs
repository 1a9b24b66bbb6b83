//! Who may use one running instance of a server.

/// Who may use one running instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every value, so that none is forgotten"
)]
pub enum Sharing {
    /// All callers at the same time. In a host that leases servers that send requests, each dialog has its own instance
    /// from the first such request on.
    Auto,
    /// All callers at the same time.
    Shared,
    /// One owner (a dialog) per instance (DM-074).
    PerOwner,
}
