//! Where overflow files are written, how large they may be, and how long they exist.

use std::path::PathBuf;

/// The folder and the size limit of overflow files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpillPolicy {
    /// The folder in which each host creates its own subfolder for its first overflow file. It is created if missing,
    /// and refused if other users could replace the subfolder. Subfolders of killed hosts are removed at the next
    /// start.
    pub directory: PathBuf,
    /// The maximum size of all files of the host in bytes. The oldest files are removed first. A larger part is cut.
    pub max_bytes: u64,
    /// How long the files exist; as long as the host unless set.
    pub lifetime: SpillLifetime,
}

/// How long overflow files exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpillLifetime {
    /// As long as the host.
    Host,
    /// Until the user removes them.
    Kept,
}

impl SpillPolicy {
    /// Creates a policy for files in `directory`, with a limit of 256 MiB.
    pub fn in_directory(directory: impl Into<PathBuf>) -> SpillPolicy {
        SpillPolicy { directory: directory.into(), max_bytes: 256 << 20, lifetime: SpillLifetime::Host }
    }
}
