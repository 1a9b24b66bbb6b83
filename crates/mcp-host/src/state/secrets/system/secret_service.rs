//! The Secret Service, on the session bus of the user.

use std::sync::Arc;

use keyring_core::{CredentialStore, Result};
use zbus_secret_service_keyring_store::Store;

/// Connects to the service.
pub(crate) fn open_store() -> Result<Arc<CredentialStore>> {
    Ok(Store::new()?)
}

/// The key and value that find the items of a service.
pub(crate) fn search_key(service: &str) -> (&'static str, String) {
    ("service", service.to_owned())
}
