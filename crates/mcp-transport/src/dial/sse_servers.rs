//! A cache of the URLs of SSE servers.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;

/// Maximum number of cached URLs. Others are detected again.
pub(super) const MAX_CACHED_URLS: usize = 1024;

/// A cache of URLs that support only HTTP with SSE. Clones share it. With one cache in every
/// [`DialOptions`](crate::dial::options::DialOptions), a reconnect needs no second attempt.
#[derive(Clone, Default)]
pub struct SseServerCache(Arc<Mutex<HashSet<Url>>>);

impl SseServerCache {
    pub(super) fn contains(&self, url: &Url) -> bool {
        self.0.lock().contains(url)
    }

    pub(super) fn add(&self, url: &Url) {
        let mut urls = self.0.lock();
        if urls.len() < MAX_CACHED_URLS {
            urls.insert(url.clone());
        }
    }

    pub(super) fn remove(&self, url: &Url) {
        self.0.lock().remove(url);
    }
}

impl fmt::Debug for SseServerCache {
    /// Prints only the number of URLs: a URL may contain a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseServerCache").field("urls", &self.0.lock().len()).finish()
    }
}
