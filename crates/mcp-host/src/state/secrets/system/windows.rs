//! The credential manager of Windows.

use std::sync::Arc;

use keyring_core::{CredentialStore, Result};
use windows_native_keyring_store::Store;

/// Opens the credential manager.
pub(crate) fn open_store() -> Result<Arc<CredentialStore>> {
    Ok(Store::new()?)
}

/// The key and value that find the items of a service: their names end with the name of the service.
pub(crate) fn search_key(service: &str) -> (&'static str, String) {
    ("pattern", format!("{}$", service.replace('.', "\\.")))
}
