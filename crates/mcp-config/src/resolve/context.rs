//! The environment and files for resolving a spec, and the reason why it cannot be resolved.

use std::path::Path;

use mcp_host_model::{ErrorKind, Secret};

use crate::diagnostic::Code;

/// The environment, files and secrets for resolving a spec.
#[derive(Clone, Copy)]
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
    /// The secrets of the user.
    pub secrets: SecretAccess<'a>,
}

/// A source of the user's secrets, for `${secret:NAME}` and for inputs without another value.
pub trait SecretSource: Send + Sync {
    /// Returns the secret with this name (see [`is_secret_name`](crate::is_secret_name)), if the source has it. The
    /// error is the reason why the source cannot be used, without a secret. May block.
    fn secret(&self, name: &str) -> Result<Option<Secret>, String>;
}

/// Whether a configuration receives the user's secrets.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum SecretAccess<'a> {
    /// It receives none: a reference resolves to its own text. For a configuration that waits for an approval.
    Withheld,
    /// It receives those that it names.
    Granted(&'a dyn SecretSource),
}

/// A source without secrets.
pub(super) struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret(&self, _: &str) -> Result<Option<Secret>, String> {
        Ok(None)
    }
}

impl<'a> ResolveContext<'a> {
    /// A context without secrets, in which no variable name is suggested.
    pub fn new(
        variable: &'a dyn Fn(&str) -> Option<String>,
        directory: &'a Path,
        read_file: &'a dyn Fn(&Path) -> Result<String, String>,
    ) -> ResolveContext<'a> {
        let secrets = SecretAccess::Granted(&NoSecrets);
        ResolveContext { variable, names: &Vec::new, directory, read_file, secrets }
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
