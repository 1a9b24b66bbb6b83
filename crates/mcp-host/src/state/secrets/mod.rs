//! The secrets that the user has stored, and the sources that configurations read them from.

pub(crate) mod command;
#[cfg(feature = "keyring")]
pub(crate) mod keyring;
pub(crate) mod private_files;
pub(crate) mod store;
#[cfg(feature = "keyring")]
mod system;

use std::fmt;
use std::sync::Arc;

use mcp_host_config::SecretSource;
use mcp_host_model::Secret;

/// The maximum size of a secret, in bytes.
pub const MAX_SECRET_BYTES: usize = 64 << 10;

/// The sources of the user's secrets, which are asked in order. Equal only to its clones.
#[derive(Clone)]
pub struct SecretSources(Arc<[Box<dyn SecretSource>]>);

impl SecretSources {
    /// Combines sources. The first one that has a secret decides.
    pub fn new(sources: Vec<Box<dyn SecretSource>>) -> SecretSources {
        SecretSources(sources.into())
    }
}

impl SecretSource for SecretSources {
    fn secret(&self, name: &str) -> Result<Option<Secret>, String> {
        for source in &*self.0 {
            if let Some(found) = source.secret(name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl PartialEq for SecretSources {
    fn eq(&self, other: &SecretSources) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SecretSources {}

impl fmt::Debug for SecretSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretSources({})", self.0.len())
    }
}

/// Why a secret cannot be stored or read; a message without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SecretError {
    /// What failed.
    pub message: String,
}

impl SecretError {
    pub(crate) fn new(message: impl Into<String>) -> SecretError {
        SecretError { message: message.into() }
    }
}

/// Checks the text of a secret: it must be non-empty, without NUL, and at most [`MAX_SECRET_BYTES`] long.
pub(crate) fn check_secret(value: &str) -> Result<(), SecretError> {
    match value {
        "" => Err(SecretError::new("the secret is empty")),
        _ if value.len() > MAX_SECRET_BYTES => {
            Err(SecretError::new(format!("the secret is longer than {MAX_SECRET_BYTES} bytes")))
        }
        _ if value.contains('\0') => Err(SecretError::new("the secret contains a NUL character")),
        _ => Ok(()),
    }
}
