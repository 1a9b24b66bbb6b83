//! The program of a child process, and the status of the child.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Where a program is searched without `PATH`.
pub(super) const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A program with its arguments and environment. The command is a path, or a name that is searched in `PATH` of `env`.
/// Contains secrets, so it does not implement `Debug`.
pub(crate) struct ChildCommand {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    /// The complete environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The working directory; `None` means ours.
    pub(crate) cwd: Option<PathBuf>,
}

/// The status of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildStatus {
    /// The child has not exited.
    Running,
    /// The child has exited; `None` if another part of the process waited for it.
    Exited(Option<ExitStatus>),
}
