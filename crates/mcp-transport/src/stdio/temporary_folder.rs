//! The temporary folder of a server in a sandbox. It is deleted with the process.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use super::system;

/// The variable that names the folder to the process.
pub(super) const TEMPORARY_FOLDER_VARIABLE: &str = "TMPDIR";

/// A folder that only the user can read. Dropping it deletes it with its content.
pub(super) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder. `token` is not guessable, so no other user can create it first.
    pub(super) fn create(token: &str) -> io::Result<TemporaryFolder> {
        let path = env::temp_dir().join(format!("mcp-host-{token}"));
        system::create_private_folder(&path)?;
        Ok(TemporaryFolder(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What is left is deleted with the temporary files of the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}
