//! Secrets in files of mode 0600, one each, for systems without a keyring.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mcp_host_config::is_secret_name;
use mcp_host_model::Secret;
use mcp_host_transport::open_regular_file;

use crate::fs::atomic_write::replace_private_file;
use crate::state::secrets::{MAX_SECRET_BYTES, SecretError};

/// The end of the names of the files.
const SUFFIX: &str = ".secret";

/// The maximum number of files that are listed.
const MAX_FILES: usize = 4096;

/// A folder with secrets. Blocks.
#[derive(Debug, Clone)]
pub(crate) struct PrivateFiles {
    folder: PathBuf,
}

impl PrivateFiles {
    /// Names the folder, which may be missing.
    pub(crate) fn new(folder: PathBuf) -> PrivateFiles {
        PrivateFiles { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The secret with this name.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Secret>, SecretError> {
        let path = self.path(name);
        let file = match open_regular_file(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error("read", &path, &error)),
        };
        let mut text = String::new();
        let limit = u64::try_from(MAX_SECRET_BYTES).unwrap_or(u64::MAX);
        file.take(limit).read_to_string(&mut text).map_err(|it| file_error("read", &path, &it))?;
        Ok(Some(Secret::new(text)))
    }

    /// Stores a secret, and replaces the earlier one.
    pub(crate) fn set(&self, name: &str, value: &Secret) -> Result<(), SecretError> {
        let path = self.path(name);
        let written = replace_private_file(&path, value.expose().as_bytes());
        written.map_err(|it| file_error("write", &path, &it))
    }

    /// Removes a secret. Returns whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, SecretError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(file_error("remove", &path, &error)),
        }
    }

    /// The names of all secrets, unsorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, SecretError> {
        let listed = match fs::read_dir(&self.folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(file_error("read", &self.folder, &error)),
        };
        let names = listed.take(MAX_FILES).flatten().filter_map(|it| {
            let name = it.file_name().into_string().ok()?;
            name.strip_suffix(SUFFIX).filter(|it| is_secret_name(it)).map(str::to_owned)
        });
        Ok(names.collect())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{SUFFIX}"))
    }
}

/// The error of a file operation; `operation` is its verb.
fn file_error(operation: &str, path: &Path, error: &io::Error) -> SecretError {
    SecretError::new(format!("cannot {operation} {}: {error}", path.display()))
}
