//! Where grants are kept between requests, and between processes.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::Url;

use crate::grant::Grant;

/// Keeps grants, each under its resource and its issuer. Asked rarely: once for each connection, and at each renewal; it
/// may block for as long as a small file takes.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// The grant for a resource that was saved last, whoever issued it.
    fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError>;

    /// The grant of this issuer for a resource.
    fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError>;

    /// Keeps a grant, in the place of an older one of the same resource and issuer.
    fn save(&self, grant: &Grant) -> Result<(), TokenStoreError>;

    /// Forgets all grants for a resource; how many there were.
    fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError>;

    /// The turn to exchange what is kept for a resource: many authorization servers take a renewal token once, and end
    /// the login of who shows it twice. `None` while somebody else has it, in this process or in another one that keeps
    /// grants in the same place. Does not wait.
    fn lock_refresh(&self, resource: &Url) -> Result<Option<RefreshLock>, TokenStoreError>;
}

/// One's turn at renewing a grant. It ends when this is dropped, and with the process that has it.
pub struct RefreshLock {
    /// Whatever lets the next one in when it goes.
    _held: Box<dyn Send + Sync>,
}

impl RefreshLock {
    /// A turn that lasts as long as `held` lives.
    pub fn new(held: impl Send + Sync + 'static) -> RefreshLock {
        RefreshLock { _held: Box::new(held) }
    }
}

impl fmt::Debug for RefreshLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

/// Why grants could not be read or kept; in words, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenStoreError(pub String);

/// Keeps grants for as long as it lives itself.
#[derive(Default)]
pub struct MemoryTokenStore {
    grants: Mutex<Vec<Grant>>,
    turns: Arc<Turns>,
}

/// The resources that somebody renews.
#[derive(Default)]
struct Turns(Mutex<HashSet<Url>>);

/// One of them, for as long as this lives.
struct Held(Arc<Turns>, Url);

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashSet<Url>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

impl MemoryTokenStore {
    fn lock(&self) -> MutexGuard<'_, Vec<Grant>> {
        // Every change under the lock is complete before anything can panic.
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenStore for MemoryTokenStore {
    fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError> {
        Ok(self.lock().iter().rfind(|it| it.resource == *resource).cloned())
    }

    fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError> {
        Ok(self.lock().iter().find(|it| it.resource == *resource && it.issuer == issuer).cloned())
    }

    fn save(&self, grant: &Grant) -> Result<(), TokenStoreError> {
        let mut grants = self.lock();
        grants.retain(|it| it.resource != grant.resource || it.issuer != grant.issuer);
        grants.push(grant.clone());
        Ok(())
    }

    fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError> {
        let mut grants = self.lock();
        let before = grants.len();
        grants.retain(|it| it.resource != *resource);
        Ok(before - grants.len())
    }

    fn lock_refresh(&self, resource: &Url) -> Result<Option<RefreshLock>, TokenStoreError> {
        let is_mine = self.turns.lock().insert(resource.clone());
        Ok(is_mine.then(|| RefreshLock::new(Held(Arc::clone(&self.turns), resource.clone()))))
    }
}

impl fmt::Debug for MemoryTokenStore {
    /// How many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryTokens({})", self.lock().len())
    }
}
