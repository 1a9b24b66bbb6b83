//! The operation of `lock` on the lock file.

/// The operation on the lock file.
pub(super) enum LockAction {
    /// Create it.
    Create,
    /// Show the changes.
    Show,
    /// Approve everything.
    ApproveAll,
    /// Approve these servers and items.
    Approve(Vec<String>),
}
