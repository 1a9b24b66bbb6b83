//! Access to the files of a project.

use std::path::{Component, Path, PathBuf};

use mcp_host_transport::open_regular_file;

/// Access to files, which tests replace.
pub(crate) struct FileAccess<'a> {
    /// The folder of the host.
    pub(crate) current: &'a Path,
    /// The hash of a regular file.
    pub(crate) hash: &'a dyn Fn(&Path) -> Option<blake3::Hash>,
    /// The path without links.
    pub(crate) resolve: &'a dyn Fn(&Path) -> PathBuf,
    /// The file of a command, by a `PATH` and from a folder.
    pub(crate) find: &'a dyn Fn(&str, &str, &Path) -> Option<PathBuf>,
}

/// The hash of a regular file; `None` for anything else.
pub(super) fn hash_file(path: &Path) -> Option<blake3::Hash> {
    let file = open_regular_file(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).ok()?;
    Some(hasher.finalize())
}

/// A path without `.` and `..`. Links are not resolved, so that one in the project counts as a file of the project.
pub(super) fn normalized(path: &Path) -> PathBuf {
    let mut res = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                res.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => res.push(component),
        }
    }
    res
}
