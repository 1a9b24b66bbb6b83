//! The user's state folder.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::fs::folder_ownership::{FolderOwner, UnsafeFolder, shared_reason};

/// Why there is no state folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateFolderError {
    /// No variable names one.
    #[error("neither XDG_STATE_HOME nor HOME is set")]
    NotSet,
    /// A variable names a path that depends on the working directory.
    #[error("{name} is not an absolute path: {}", .value.display())]
    Relative {
        /// The name of the variable.
        name: &'static str,
        /// Its value.
        value: PathBuf,
    },
    /// Another user could replace what is in it.
    #[error("{0}")]
    Unsafe(UnsafeFolder),
}

impl StateFolderError {
    /// What to do.
    pub fn help(&self) -> String {
        match self {
            StateFolderError::NotSet => "set HOME or XDG_STATE_HOME".to_owned(),
            StateFolderError::Relative { name, value: _ } => format!("set {name} to an absolute path"),
            StateFolderError::Unsafe(UnsafeFolder::Writable { path, owner: FolderOwner::User, mode: _ }) => {
                format!("run `chmod 700 {}`", path.display())
            }
            StateFolderError::Unsafe(UnsafeFolder::Writable { .. } | UnsafeFolder::OtherOwner { .. }) => {
                "set XDG_STATE_HOME to a folder of your own".to_owned()
            }
        }
    }
}

/// Returns a path in the user's state folder, for example `mcp-host/receipts`. `variable` reads an environment
/// variable. Reads the disk.
///
/// The folder is `XDG_STATE_HOME`, else `LOCALAPPDATA` (Windows), else `.local/state` in `HOME`. A variable that is not
/// an absolute path is ignored: it would name another folder in each working directory.
///
/// # Errors
///
/// Neither variable is an absolute path, or another user could replace what is in the folder.
pub fn state_path(
    path: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, StateFolderError> {
    let value = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| value(name).filter(|path| path.is_absolute());
    let home = || Some(absolute("HOME")?.join(".local/state"));
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("LOCALAPPDATA")).or_else(home);
    let Some(state) = state else {
        let relative = ["HOME", "XDG_STATE_HOME"].into_iter().find_map(|name| Some((name, value(name)?)));
        let relative = relative.map(|(name, value)| StateFolderError::Relative { name, value });
        return Err(relative.unwrap_or(StateFolderError::NotSet));
    };
    let path = state.join(path);
    match shared_reason(&path) {
        None => Ok(path),
        Some(reason) => Err(StateFolderError::Unsafe(reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Checks the error and its help; expects `ERROR: HELP`.
    #[track_caller]
    fn check(state: Option<&str>, home: Option<&str>, want: &str) {
        let variable = |name: &str| if name == "HOME" { home } else { state }.map(OsString::from);
        let error = state_path("mcp-host/logins", &variable).unwrap_err();
        assert_eq!(format!("{error}: {}", error.help()), want);
    }

    // RPT-255
    #[test]
    fn error_names_the_folder_or_variable_and_what_to_do() {
        check(None, None, "neither XDG_STATE_HOME nor HOME is set: set HOME or XDG_STATE_HOME");
        check(Some(""), Some(""), "neither XDG_STATE_HOME nor HOME is set: set HOME or XDG_STATE_HOME");
        check(None, Some("me"), "HOME is not an absolute path: me: set HOME to an absolute path");
        let want = "XDG_STATE_HOME is not an absolute path: s: set XDG_STATE_HOME to an absolute path";
        check(Some("s"), None, want);
        let folder = tempfile::tempdir().unwrap();
        let logins = folder.path().join("mcp-host/logins");
        fs::create_dir_all(&logins).unwrap();
        fs::set_permissions(&logins, fs::Permissions::from_mode(0o777)).unwrap();
        let shown = logins.canonicalize().unwrap().display().to_string();
        let want =
            format!("other users may replace what is in {shown} (its mode is 777): run `chmod 700 {shown}`");
        check(folder.path().to_str(), None, &want);
    }

    #[test]
    fn folder_of_root_or_another_user_is_replaced() {
        let other = UnsafeFolder::OtherOwner { path: "/a".into(), owner: 8 };
        let root = UnsafeFolder::Writable { path: "/a".into(), mode: 0o777, owner: FolderOwner::Root };
        for unsafe_folder in [other, root] {
            let help = StateFolderError::Unsafe(unsafe_folder).help();
            assert_eq!(help, "set XDG_STATE_HOME to a folder of your own");
        }
    }
}
