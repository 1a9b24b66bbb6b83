//! The error for a file that could not be read.

use crate::output::failure::Failure;

/// The error for a file that could not be read.
#[derive(Debug)]
pub(crate) struct ConfigFileError {
    /// The file or folder, as the user named it.
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl From<ConfigFileError> for Failure {
    fn from(error: ConfigFileError) -> Failure {
        Failure::new(error.message).help(error.help)
    }
}
