//! The environment and files for resolving a spec, and the reason why it cannot be resolved.

use std::path::Path;

use mcp_host_model::ErrorKind;

use crate::diagnostic::Code;

/// The environment and files for resolving a spec.
#[non_exhaustive]
pub struct ResolveContext<'a> {
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The names of the environment variables. A name close to a missing one is suggested.
    pub names: &'a dyn Fn() -> Vec<String>,
    /// The folder of the configuration file.
    pub directory: &'a Path,
    /// Reads an env file; the error is the reason.
    pub read_file: &'a dyn Fn(&Path) -> Result<String, String>,
}

impl<'a> ResolveContext<'a> {
    /// A context in which no variable name is suggested.
    pub fn new(
        variable: &'a dyn Fn(&str) -> Option<String>,
        directory: &'a Path,
        read_file: &'a dyn Fn(&Path) -> Result<String, String>,
    ) -> ResolveContext<'a> {
        ResolveContext { variable, names: &Vec::new, directory, read_file }
    }
}

/// The reason why a spec cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
#[non_exhaustive]
pub struct ResolveError {
    /// The code of the mistake.
    pub code: Code,
    /// The word before the colon of the printed message.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// JSON pointer to the value in the file.
    pub pointer: String,
    /// How to fix it.
    pub help: Option<String>,
}

impl ResolveError {
    pub(super) fn new(
        code: Code,
        message: impl Into<String>,
        pointer: impl Into<String>,
        help: &str,
    ) -> ResolveError {
        ResolveError {
            code,
            kind: code.kind(),
            message: message.into(),
            pointer: pointer.into(),
            help: Some(help.to_owned()),
        }
    }
}
