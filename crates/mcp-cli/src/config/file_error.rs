//! The error for a file that could not be read.

use crate::output::failure::Failure;

/// The error for a file that could not be read.
#[derive(Debug)]
pub(crate) struct FileError {
    /// The file or folder, as the user named it.
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        Failure::new(error.message).help(error.help)
    }
}
