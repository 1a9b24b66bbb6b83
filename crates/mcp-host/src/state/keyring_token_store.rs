//! A store of OAuth grants in the keyring of the system, and in private files where there is none.
//!
//! The keyring has one item for each resource, with its grants. Grants in files are read too, and are moved
//! to the keyring by the next save. Locks are files in any case.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;

use mcp_host_oauth::{Grant, RefreshLock, TokenStore, TokenStoreError};
use serde_json::value::RawValue;
use url::Url;

use crate::state::secrets::SecretError;
use crate::state::secrets::keyring::Keyring;
use crate::state::token_store::{FileTokenStore, next_save_time, parse, short_hash, text};

/// The service under which the keyring has the grants.
const SERVICE: &str = "mcp-host login";

/// The maximum number of grants of a resource: the latest of that many issuers.
const MAX_GRANTS: usize = 8;

/// A store of grants in the keyring. It is opened with the first grant.
pub struct KeyringTokenStore {
    files: FileTokenStore,
    keyring: OnceLock<Option<Keyring>>,
}

impl KeyringTokenStore {
    /// Creates a store. `files` has the locks, and the grants if there is no keyring.
    pub fn new(files: FileTokenStore) -> KeyringTokenStore {
        KeyringTokenStore { files, keyring: OnceLock::new() }
    }

    /// Returns whether grants are saved in the keyring. Blocks.
    pub fn has_keyring(&self) -> bool {
        self.keyring().is_some()
    }

    fn keyring(&self) -> Option<&Keyring> {
        let open = || match Keyring::open(SERVICE) {
            Ok(keyring) => Some(keyring),
            Err(error) => {
                tracing::info!("logins are stored in private files, because there is no keyring: {error}");
                None
            }
        };
        self.keyring.get_or_init(open).as_ref()
    }

    /// The grants of a resource with the times at which they were saved, one of each issuer.
    fn entries(&self, resource: &Url) -> Result<Vec<(u64, Grant)>, TokenStoreError> {
        let mut entries = self.files.entries(resource)?;
        if let Some(keyring) = self.keyring() {
            let value = keyring.get(&item_name(resource)).map_err(store_error)?.unwrap_or_default();
            entries
                .extend(parse_entries(&value).into_iter().filter(|(_, grant)| grant.resource == *resource));
        }
        entries.sort_by_key(|(saved, _)| Reverse(*saved));
        let mut issuers = HashSet::new();
        entries.retain(|(_, grant)| issuers.insert(grant.issuer.clone()));
        Ok(entries)
    }
}

impl TokenStore for KeyringTokenStore {
    fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError> {
        Ok(self.entries(resource)?.into_iter().next().map(|(_, grant)| grant))
    }

    fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError> {
        let mut entries = self.entries(resource)?.into_iter();
        Ok(entries.find_map(|(_, grant)| (grant.issuer == issuer).then_some(grant)))
    }

    fn save(&self, grant: &Grant) -> Result<(), TokenStoreError> {
        let Some(keyring) = self.keyring() else { return self.files.save(grant) };
        let mut entries = self.entries(&grant.resource)?;
        let saved = next_save_time(entries.iter().map(|(saved, _)| *saved));
        entries.retain(|(_, it)| it.issuer != grant.issuer);
        entries.insert(0, (saved, grant.clone()));
        entries.truncate(MAX_GRANTS);
        let name = item_name(&grant.resource);
        match keyring.set(&name, entries_text(&entries).as_bytes()) {
            // All are in the keyring now.
            Ok(()) => self.files.remove(&grant.resource).map(drop),
            Err(error) => {
                // For example, a grant may be larger than an item of the credential manager of Windows.
                tracing::warn!("a login is stored in a private file, and not in the keyring: {error}");
                entries.iter().try_for_each(|(saved, grant)| self.files.save_at(*saved, grant))?;
                keyring.remove(&name).map(drop).map_err(store_error)
            }
        }
    }

    fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError> {
        let count = self.entries(resource)?.len();
        self.files.remove(resource)?;
        if let Some(keyring) = self.keyring() {
            keyring.remove(&item_name(resource)).map_err(store_error)?;
        }
        Ok(count)
    }

    fn lock_refresh(&self, resource: &Url) -> Result<Option<RefreshLock>, TokenStoreError> {
        self.files.lock_refresh(resource)
    }
}

impl fmt::Debug for KeyringTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringTokenStore").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The name of the item for a resource: a hash, because a URL may contain a secret.
fn item_name(resource: &Url) -> String {
    short_hash(resource.as_str())
}

/// Parses an item. An invalid entry counts as absent: the next login replaces it.
fn parse_entries(value: &[u8]) -> Vec<(u64, Grant)> {
    let entries: Vec<&RawValue> = serde_json::from_slice(value).unwrap_or_default();
    entries.into_iter().filter_map(|it| parse(it.get())).collect()
}

fn entries_text(entries: &[(u64, Grant)]) -> String {
    let entries: Vec<String> = entries.iter().map(|(saved, grant)| text(*saved, grant)).collect();
    format!("[{}]", entries.join(","))
}

fn store_error(error: SecretError) -> TokenStoreError {
    TokenStoreError::new(format!("cannot use the stored logins: {error}"))
}

#[cfg(test)]
mod tests {
    use mcp_host_model::Secret;
    use mcp_host_oauth::RegisteredClient;

    use super::*;

    #[test]
    fn grants_of_an_item_are_read_as_they_were_written() {
        let grant = |issuer: &str| {
            let resource = "https://a.example/mcp".parse().unwrap();
            Grant::new(resource, issuer.to_owned(), RegisteredClient::new("c"), Secret::from("t"))
        };
        let entries = vec![(2, grant("one")), (1, grant("two"))];
        assert_eq!(parse_entries(entries_text(&entries).as_bytes()), entries);
        assert_eq!(parse_entries(b""), []);
        let partly_valid = format!("[{{}},{}]", text(3, &grant("one")));
        assert_eq!(parse_entries(partly_valid.as_bytes()), [(3, grant("one"))]);
    }
}
