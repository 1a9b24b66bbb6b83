//! The user's state folder.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::fs::folder_ownership::shared_reason;

/// Returns a path in the user's state folder, for example `mcp-host/receipts`. `variable` reads an environment
/// variable.
///
/// The folder is `XDG_STATE_HOME`, else `.local/state` in `HOME`. A variable that is not an absolute path is
/// ignored: it would name another folder in each working directory. `None` if neither is one, or if another user could
/// replace what is in the folder, which is logged. Reads the disk.
pub fn state_path(path: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let path = state.join(path);
    match shared_reason(&path) {
        None => Some(path),
        Some(reason) => {
            tracing::error!(
                "nothing is stored in the state folder: {reason}; set XDG_STATE_HOME to a private folder"
            );
            None
        }
    }
}
