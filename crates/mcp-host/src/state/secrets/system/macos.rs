//! The login keychain of macOS.

use std::sync::Arc;

use apple_native_keyring_store::keychain::Store;
use keyring_core::{CredentialStore, Result};

/// Opens the keychain.
pub(crate) fn open_store() -> Result<Arc<CredentialStore>> {
    Ok(Store::new()?)
}

/// The key and value that find the items of a service.
pub(crate) fn search_key(service: &str) -> (&'static str, String) {
    ("service", service.to_owned())
}
