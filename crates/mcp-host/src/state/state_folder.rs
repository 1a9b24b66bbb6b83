//! The user's state folder.

use std::ffi::OsString;
use std::path::PathBuf;

/// Returns a path in the user's state folder, for example `mcp-host/receipts`. `variable` reads an environment
/// variable.
///
/// The folder is `XDG_STATE_HOME`, else `.local/state` in `HOME`. A variable that is not an absolute path is
/// ignored: it would name another folder in each working directory. `None` if neither is one.
pub fn state_path(path: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join(path))
}
