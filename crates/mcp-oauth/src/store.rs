//! Stores of grants.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;

use crate::grant::Grant;

/// Stores grants by resource and issuer. It is called once for each connection and at each refresh, and may block as
/// long as reading a small file takes.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// The latest grant for a resource, from any issuer.
    fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError>;

    /// The grant of this issuer for a resource.
    fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError>;

    /// Stores a grant and replaces one with the same resource and issuer.
    fn save(&self, grant: &Grant) -> Result<(), TokenStoreError>;

    /// Removes all grants for a resource; returns their number.
    fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError>;

    /// Locks the refresh of a resource's grant: many authorization servers accept a refresh token once and end the
    /// login if it is used twice. `None` while another task or process that shares the store holds the lock. Does not
    /// wait.
    fn lock_refresh(&self, resource: &Url) -> Result<Option<RefreshLock>, TokenStoreError>;
}

/// Permission to refresh a grant. Released when dropped, or when the process ends.
pub struct RefreshLock {
    /// Released on drop.
    _guard: Box<dyn Send + Sync>,
}

impl RefreshLock {
    /// A lock that is released when `guard` is dropped.
    pub fn new(guard: impl Send + Sync + 'static) -> RefreshLock {
        RefreshLock { _guard: Box::new(guard) }
    }
}

impl fmt::Debug for RefreshLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefreshLock").finish_non_exhaustive()
    }
}

/// Why a store failed; a message without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct TokenStoreError {
    /// What failed.
    pub message: String,
}

impl TokenStoreError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> TokenStoreError {
        TokenStoreError { message: message.into() }
    }
}

/// A store in memory.
#[derive(Default)]
pub struct MemoryTokenStore {
    grants: Mutex<Vec<Grant>>,
    refresh_locks: Arc<RefreshLocks>,
}

/// The resources that are being refreshed.
#[derive(Default)]
struct RefreshLocks(Mutex<HashSet<Url>>);

/// Removes a resource from that set on drop.
struct RefreshGuard(Arc<RefreshLocks>, Url);

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

impl TokenStore for MemoryTokenStore {
    fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError> {
        Ok(self.grants.lock().iter().rfind(|it| it.resource == *resource).cloned())
    }

    fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError> {
        Ok(self.grants.lock().iter().find(|it| it.resource == *resource && it.issuer == issuer).cloned())
    }

    fn save(&self, grant: &Grant) -> Result<(), TokenStoreError> {
        let mut grants = self.grants.lock();
        grants.retain(|it| it.resource != grant.resource || it.issuer != grant.issuer);
        grants.push(grant.clone());
        Ok(())
    }

    fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError> {
        let mut grants = self.grants.lock();
        let count = grants.len();
        grants.retain(|it| it.resource != *resource);
        Ok(count - grants.len())
    }

    fn lock_refresh(&self, resource: &Url) -> Result<Option<RefreshLock>, TokenStoreError> {
        let is_new = self.refresh_locks.0.lock().insert(resource.clone());
        Ok(is_new.then(|| RefreshLock::new(RefreshGuard(Arc::clone(&self.refresh_locks), resource.clone()))))
    }
}

impl fmt::Debug for MemoryTokenStore {
    /// Prints the number of grants only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryTokenStore({})", self.grants.lock().len())
    }
}
