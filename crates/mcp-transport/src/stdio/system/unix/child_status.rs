//! The status of a child.

use std::process::ExitStatus;

/// The status of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildStatus {
    /// The child has not exited.
    Running,
    /// The child has exited; `None` if another part of the process waited for it.
    Exited(Option<ExitStatus>),
}
