//! Reading of the lock file of a configuration.

use std::path::{Path, PathBuf};

use mcp_host_registry::{LockFile, LockParseError};

use super::files::{FileError, read_regular_file};

/// The name of the lock file, which is in the folder of the configuration.
const LOCK_FILE_NAME: &str = "mcp.lock";

/// The error of a lock file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: FileError,
    },
    /// It is not a lock file.
    #[error("{path}: {error}")]
    Invalid {
        /// The file.
        path: String,
        /// What is wrong.
        error: LockParseError,
    },
}

/// Returns the path of the lock file of a configuration file: `mcp.lock` in the same folder.
pub fn lock_path(configuration: &Path) -> PathBuf {
    configuration.with_file_name(LOCK_FILE_NAME)
}

/// A lock file and its text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoadedLock {
    /// The content.
    pub lock: LockFile,
    /// The text, for a comparison with a new one.
    pub text: String,
}

/// Reads a lock file; `None` if it does not exist. Blocks. Fails if an existing file cannot be used, because ignoring
/// it would approve everything.
pub fn read_lock(path: &Path) -> Result<Option<LoadedLock>, LockFileError> {
    let Some(text) = read_lock_text(path)? else { return Ok(None) };
    Ok(Some(LoadedLock { lock: parse_lock(path, &text)?, text }))
}

/// Parses a lock file.
pub(crate) fn parse_lock(path: &Path, text: &str) -> Result<LockFile, LockFileError> {
    LockFile::parse(text).map_err(|error| LockFileError::Invalid { path: path.display().to_string(), error })
}

/// Reads the text of a lock file; `None` if it does not exist. Blocks.
pub(crate) fn read_lock_text(path: &Path) -> Result<Option<String>, LockFileError> {
    match read_regular_file(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_absent() => Ok(None),
        Err(source) => Err(LockFileError::File { path: path.display().to_string(), source }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lock_file_is_in_folder_of_configuration() {
        assert_eq!(lock_path(Path::new("a/.minds/mcp.yaml")), Path::new("a/.minds/mcp.lock"));
        assert_eq!(lock_path(Path::new("agent.yaml")), Path::new("mcp.lock"));
    }

    #[test]
    fn existing_lock_file_must_be_valid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.lock");
        let read = || read_lock(&path).map_err(|it| it.to_string().replace(&path.display().to_string(), "F"));
        assert_eq!(read(), Ok(None));
        let text = LockFile::default().to_text();
        fs::write(&path, &text).unwrap();
        assert_eq!(read(), Ok(Some(LoadedLock { lock: LockFile::default(), text })));
        fs::write(&path, "{}").unwrap();
        assert_eq!(read(), Err("F: line 1, column 2: missing field `format`".to_owned()));
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(), Err("cannot read F: line 1 is not UTF-8; save the file as UTF-8 text".to_owned()));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(read(), Err("cannot read F: it is a directory".to_owned()));
    }
}
