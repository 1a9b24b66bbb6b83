//! What a child is to run, and what becomes of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

/// A program with all that it is given. The command is a path, or a name that is looked for in the `PATH` of `env`.
/// There may be secrets in it, so that it is not shown.
pub(crate) struct Program {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    /// All of its environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The folder that it runs in; ours where there is none.
    pub(crate) cwd: Option<PathBuf>,
}

/// What became of a child, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// It has not ended.
    Runs,
    /// `None` where somebody else has waited for it.
    Ended(Option<ExitStatus>),
}
