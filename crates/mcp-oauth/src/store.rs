//! Stores of grants.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;

use crate::grant::Grant;

/// Stores grants by resource and issuer. It is called once for each connection, at each login and at each
/// refresh, and may block as long as reading a small file takes. Neither an error nor `Debug` contains a
/// secret.
///
/// [`MemoryTokenStore`] forgets its grants with the process. A store of your own keeps [`Grant::to_json`],
/// here in one file of a folder that only the user can read:
///
/// ```
/// use std::fmt::Display;
/// use std::fs;
/// use std::io::ErrorKind;
/// use std::path::PathBuf;
/// use std::sync::{Arc, Mutex, MutexGuard};
///
/// use mcp_host_oauth::{Grant, RefreshLock, TokenStore, TokenStoreError, Url};
///
/// #[derive(Debug)]
/// struct FileStore {
///     folder: PathBuf,
///     /// One change at a time.
///     changes: Mutex<()>,
///     /// The resources whose refresh is locked. Programs that share a store lock a file instead:
///     /// `RefreshLock::new(file)`
///     /// after `File::try_lock` releases it when it is dropped.
///     refreshes: Arc<Mutex<Vec<Url>>>,
/// }
///
/// impl FileStore {
///     fn new(folder: PathBuf) -> FileStore {
///         FileStore { folder, changes: Mutex::default(), refreshes: Arc::default() }
///     }
///
///     fn read(&self) -> Result<Vec<Grant>, TokenStoreError> {
///         let text = match fs::read(self.folder.join("grants.json")) {
///             Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
///             text => text.map_err(failed)?,
///         };
///         let grants: Vec<serde_json::Value> = serde_json::from_slice(&text).map_err(failed)?;
///         // Nothing is dropped: the next `save` would delete it.
///         let grants: Option<Vec<_>> = grants.iter().map(Grant::from_json).collect();
///         grants.ok_or_else(|| failed("a login has another format"))
///     }
///
///     fn write(&self, grants: &[Grant]) -> Result<(), TokenStoreError> {
///         let grants: Vec<_> = grants.iter().map(Grant::to_json).collect();
///         let text = serde_json::to_string(&grants).map_err(failed)?;
///         // A crash must not leave half a file.
///         let new_file = self.folder.join("grants.json.new");
///         fs::write(&new_file, text).map_err(failed)?;
///         fs::rename(&new_file, self.folder.join("grants.json")).map_err(failed)
///     }
/// }
///
/// fn failed(error: impl Display) -> TokenStoreError {
///     TokenStoreError::new(format!("the stored logins cannot be used: {error}"))
/// }
///
/// fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
///     mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
/// }
///
/// impl TokenStore for FileStore {
///     fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError> {
///         Ok(self.read()?.into_iter().rfind(|grant| grant.resource == *resource))
///     }
///
///     fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError> {
///         Ok(self.read()?.into_iter().find(|grant| grant.resource == *resource && grant.issuer == issuer))
///     }
///
///     fn save(&self, grant: &Grant) -> Result<(), TokenStoreError> {
///         let _change = lock(&self.changes);
///         let mut grants = self.read()?;
///         grants.retain(|it| it.resource != grant.resource || it.issuer != grant.issuer);
///         grants.push(grant.clone());
///         self.write(&grants)
///     }
///
///     fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError> {
///         let _change = lock(&self.changes);
///         let mut grants = self.read()?;
///         let count = grants.len();
///         grants.retain(|grant| grant.resource != *resource);
///         self.write(&grants)?;
///         Ok(count - grants.len())
///     }
///
///     fn lock_refresh(&self, resource: &Url) -> Result<Option<RefreshLock>, TokenStoreError> {
///         let mut refreshes = lock(&self.refreshes);
///         if refreshes.contains(resource) {
///             return Ok(None);
///         }
///         refreshes.push(resource.clone());
///         Ok(Some(RefreshLock::new(Refresh(Arc::clone(&self.refreshes), resource.clone()))))
///     }
/// }
///
/// /// Unlocks the refresh of a resource when it is dropped.
/// struct Refresh(Arc<Mutex<Vec<Url>>>, Url);
///
/// impl Drop for Refresh {
///     fn drop(&mut self) {
///         lock(&self.0).retain(|resource| *resource != self.1);
///     }
/// }
/// # use mcp_host_oauth::RegisteredClient;
/// # let folder = std::env::temp_dir().join(format!("token-store-example-{}", std::process::id()));
/// # fs::create_dir_all(&folder)?;
/// # let store = FileStore::new(folder.clone());
/// # let resource = Url::parse("https://example.com/mcp")?;
/// # let grant = |issuer, token: &str| Grant::new(resource.clone(), issuer, RegisteredClient::new("id"), token.into());
/// # assert_eq!(store.latest(&resource)?, None);
/// # for (issuer, token) in [("a", "first"), ("b", "second"), ("a", "third")] {
/// #     store.save(&grant(issuer, token))?;
/// # }
/// # let store = FileStore::new(folder.clone());
/// # assert_eq!(store.latest(&resource)?, Some(grant("a", "third")));
/// # assert_eq!(store.get(&resource, "b")?, Some(grant("b", "second")));
/// # let first = store.lock_refresh(&resource)?;
/// # assert!(first.is_some() && store.lock_refresh(&resource)?.is_none());
/// # drop(first);
/// # assert!(store.lock_refresh(&resource)?.is_some());
/// # assert_eq!(store.remove(&resource)?, 2);
/// # assert_eq!(store.get(&resource, "b")?, None);
/// # fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// The grant for a resource that was saved last, from any issuer.
    fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError>;

    /// The grant of this issuer for a resource.
    fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError>;

    /// Stores a grant and replaces one with the same resource and issuer.
    fn save(&self, grant: &Grant) -> Result<(), TokenStoreError>;

    /// Removes all grants for a resource; returns their number.
    fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError>;

    /// Locks the refresh of a resource's grant: many authorization servers accept a refresh token once and end the
    /// login if it is used twice. It is also called before a login. `None` while another task or process that
    /// shares the store holds the lock. Does not wait.
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
