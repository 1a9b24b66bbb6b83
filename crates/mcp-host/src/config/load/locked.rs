//! The file in which a lock stands: read within bounds, written whole.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mcp_registry::{LockFile, LockParseError};

use super::files::io_text;

/// What the file is called that lies beside a configuration.
const NAME: &str = "mcp.lock";

/// The most that is read, in bytes. A lock of that size is refused.
const MOST: u64 = (8 << 20) + 1;

/// Why a file with a lock cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockFileError {
    /// The system says no.
    #[error("cannot read {path}: {}", io_text(.source))]
    Io {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is no text.
    #[error("{path} is no UTF-8")]
    NotUtf8 {
        /// The file.
        path: String,
    },
    /// It is no lock.
    #[error("{path}: {error}")]
    Invalid {
        /// The file.
        path: String,
        /// What is wrong.
        error: LockParseError,
    },
}

/// Where the lock of a configuration file lies: `mcp.lock`, beside it.
pub fn lock_path(configuration: &Path) -> PathBuf {
    configuration.with_file_name(NAME)
}

/// Reads a lock, and gives its text besides; `None` where there is no such file. Blocks. A file that is there and cannot
/// be used is an error, for whoever wrote it wanted something.
pub fn read_lock(path: &Path) -> Result<Option<(LockFile, String)>, LockFileError> {
    let Some(text) = lock_text(path)? else { return Ok(None) };
    Ok(Some((parse_lock(path, &text)?, text)))
}

/// What a lock's text means.
pub(crate) fn parse_lock(path: &Path, text: &str) -> Result<LockFile, LockFileError> {
    LockFile::parse(text).map_err(|error| LockFileError::Invalid { path: path.display().to_string(), error })
}

/// The text of a lock; `None` where there is no such file. Blocks.
pub(crate) fn lock_text(path: &Path) -> Result<Option<String>, LockFileError> {
    let shown = || path.display().to_string();
    let refused = |source| LockFileError::Io { path: shown(), source };
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        // It might be waited for without end.
        Ok(_) => return Err(refused(io::Error::other("it is no file"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(error)),
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refused)?;
    file.take(MOST).read_to_end(&mut bytes).map_err(refused)?;
    String::from_utf8(bytes).map(Some).map_err(|_| LockFileError::NotUtf8 { path: shown() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_lies_beside_its_configuration() {
        assert_eq!(lock_path(Path::new("a/.minds/mcp.yaml")), Path::new("a/.minds/mcp.lock"));
        assert_eq!(lock_path(Path::new("agent.yaml")), Path::new("mcp.lock"));
    }

    #[test]
    fn what_is_there_must_be_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.lock");
        let read = || read_lock(&path).map_err(|it| it.to_string().replace(&path.display().to_string(), "F"));
        assert_eq!(read(), Ok(None));
        let text = LockFile::default().to_text();
        fs::write(&path, &text).unwrap();
        assert_eq!(read(), Ok(Some((LockFile::default(), text))));
        fs::write(&path, "{}").unwrap();
        assert_eq!(read(), Err("F: line 1, column 2: missing field `format`".to_owned()));
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(), Err("F is no UTF-8".to_owned()));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(read(), Err("cannot read F: it is no file".to_owned()));
    }
}
