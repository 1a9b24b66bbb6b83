//! Caches results for the time that the server allows.
//!
//! A cache belongs to one session, hence to one authorization, so private results are never shared. An announced change
//! invalidates a result at once. The current time is an argument.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Freshness, Prompt, Resource, ResourceResult, ResourceTemplate, Tool};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::session::list_changes::ListChangeCounts;
use crate::session::list_result::ListResult;

/// The maximum lifetime of a result, whatever the server allows.
const MAX_TTL: Duration = Duration::from_secs(60 * 60 * 24);

/// Maximum number of cached resources.
const MAX_RESOURCES: usize = 64;
/// Maximum total size of the cached resources.
const MAX_RESOURCE_BYTES: usize = 8 << 20;

/// The cached results of one session.
#[derive(Default)]
pub(crate) struct ResultCache {
    pub(crate) tools: ListCache<Tool>,
    pub(crate) prompts: ListCache<Prompt>,
    pub(crate) resources: ListCache<Resource>,
    pub(crate) templates: ListCache<ResourceTemplate>,
    pub(crate) read_results: Arc<ResourceCache>,
}

/// The cache of one list.
pub(crate) struct ListCache<T>(Mutex<Option<CachedList<T>>>);

/// A cached list, with what decides whether it is still valid.
struct CachedList<T> {
    list: ListResult<T>,
    expires_at: Instant,
    /// The number of announced changes when the list was requested.
    change_count: u64,
}

impl<T> Default for ListCache<T> {
    fn default() -> ListCache<T> {
        ListCache(Mutex::new(None))
    }
}

impl<T: Clone> ListCache<T> {
    /// Returns the list if it has not expired and the number of announced changes is still `change_count`.
    pub(crate) fn get(&self, change_count: u64, now: Instant) -> Option<ListResult<T>> {
        let mut cached = self.0.lock();
        cached.take_if(|cached| cached.change_count != change_count || now >= cached.expires_at);
        cached.as_ref().map(|cached| cached.list.clone())
    }

    /// Removes the list.
    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }

    /// Stores a list that was requested after `change_count` changes, until `expires_at`. Without an expiry, the cache
    /// is cleared.
    pub(crate) fn insert(&self, list: &ListResult<T>, change_count: u64, expires_at: Option<Instant>) {
        *self.0.lock() =
            expires_at.map(|expires_at| CachedList { list: list.clone(), expires_at, change_count });
    }
}

/// The time at which a result received at `now` expires; `None` if it must not be cached.
pub(crate) fn expires_at(freshness: Freshness, now: Instant) -> Option<Instant> {
    let ttl = freshness.ttl.min(MAX_TTL);
    (!ttl.is_zero()).then(|| now + ttl)
}

/// The cached contents of resources.
#[derive(Default)]
pub(crate) struct ResourceCache(Mutex<ResourceTable>);

/// The cached resources, bounded in number and size.
#[derive(Default)]
struct ResourceTable {
    /// The cached resources by URI.
    resources: HashMap<String, CachedResource>,
    /// The total size of the resources.
    bytes: usize,
    /// The number of announced changes of single resources.
    update_count: u64,
}

/// The numbers of announced changes when a resource was requested. A later change invalidates its content.
#[derive(Clone, Copy)]
pub(crate) struct ResourceVersion {
    update_count: u64,
    list_change_count: u64,
}

/// The content of a resource, with what decides whether it is still valid.
struct CachedResource {
    result: ResourceResult,
    expires_at: Instant,
    /// The number of announced changes of the resource list when the resource was requested.
    list_change_count: u64,
}

impl ResourceCache {
    /// Removes a resource that has changed.
    pub(crate) fn remove_changed(&self, uri: &str) {
        let mut table = self.0.lock();
        table.update_count += 1;
        table.remove(uri);
    }

    /// Returns the content of a resource if it is still valid.
    pub(crate) fn get(&self, uri: &str, changes: ListChangeCounts, now: Instant) -> Option<ResourceResult> {
        let mut table = self.0.lock();
        let cached = table.resources.get(uri)?;
        if cached.list_change_count == changes.resources && now < cached.expires_at {
            return Some(cached.result.clone());
        }
        table.remove(uri);
        None
    }

    /// The current version. Call it before a resource is requested.
    pub(crate) fn version(&self, changes: ListChangeCounts) -> ResourceVersion {
        ResourceVersion { update_count: self.0.lock().update_count, list_change_count: changes.resources }
    }

    /// Stores a resource that was requested at `version`, unless any resource has changed since.
    pub(crate) fn insert(&self, uri: &str, result: &ResourceResult, version: ResourceVersion, now: Instant) {
        let Some(expires_at) = expires_at(result.freshness, now) else { return };
        let size = result.raw.as_bytes().len();
        let mut table = self.0.lock();
        if table.update_count != version.update_count || size > MAX_RESOURCE_BYTES {
            return;
        }
        table.remove(uri);
        table.resources.retain(|_, cached| now < cached.expires_at);
        table.bytes = table.resources.values().map(|it| it.result.raw.as_bytes().len()).sum();
        while table.resources.len() >= MAX_RESOURCES || table.bytes + size > MAX_RESOURCE_BYTES {
            let first = table.resources.iter().min_by_key(|(_, cached)| cached.expires_at);
            let Some((first_to_expire, _)) = first else { break };
            let first_to_expire = first_to_expire.clone();
            table.remove(&first_to_expire);
        }
        table.bytes += size;
        let list_change_count = version.list_change_count;
        let resource = CachedResource { result: result.clone(), expires_at, list_change_count };
        table.resources.insert(uri.to_owned(), resource);
    }
}

impl ResourceTable {
    fn remove(&mut self, uri: &str) {
        if let Some(resource) = self.resources.remove(uri) {
            self.bytes -= resource.result.raw.as_bytes().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_model::{RawJson, read_resource_result};

    /// A result with a text of this size, valid for `ttl` milliseconds.
    fn read_result(ttl: u64, size: usize) -> ResourceResult {
        let text = "x".repeat(size);
        let json = format!(r#"{{"contents":[{{"uri":"a:b","text":"{text}"}}],"ttlMs":{ttl}}}"#);
        read_resource_result(&RawJson::parse(json.into()).unwrap()).unwrap()
    }

    #[test]
    fn list_is_cached_until_it_expires_or_changes() {
        let now = Instant::now();
        let cache = ListCache::<u8>::default();
        let list = ListResult::new(vec![1]);
        cache.insert(&list, 3, None);
        assert_eq!(cache.get(3, now), None, "no time was given");
        let second = Duration::from_secs(1);
        let mut freshness = Freshness::default();
        freshness.ttl = second;
        cache.insert(&list, 3, expires_at(freshness, now));
        assert!(cache.get(3, now + second / 2).is_some());
        assert_eq!(cache.get(3, now + second), None);
        cache.insert(&list, 3, expires_at(freshness, now));
        assert_eq!(cache.get(4, now), None, "it has changed");
        assert_eq!(cache.get(3, now), None, "and stays removed");
        let mut unlimited = Freshness::default();
        unlimited.ttl = Duration::MAX;
        assert_eq!(expires_at(unlimited, now), Some(now + MAX_TTL));
    }

    #[test]
    fn resource_is_cached_until_it_changes() {
        let now = Instant::now();
        let changes = ListChangeCounts::default();
        let cache = ResourceCache::default();
        let insert = |uri: &str, ttl, size| {
            cache.insert(uri, &read_result(ttl, size), cache.version(changes), now);
        };
        let has = |uri: &str, changes| cache.get(uri, changes, now).is_some();
        insert("a:1", 1000, 1);
        insert("a:2", 0, 1);
        assert_eq!((has("a:1", changes), has("a:2", changes)), (true, false));
        cache.remove_changed("a:1");
        assert!(!has("a:1", changes));
        let version = cache.version(changes);
        cache.remove_changed("a:9");
        cache.insert("a:1", &read_result(1000, 1), version, now);
        assert!(!has("a:1", changes), "it may have been read before the change");
        insert("a:1", 1000, 1);
        assert!(!has("a:1", ListChangeCounts { resources: 1, ..changes }));
    }

    #[test]
    fn resource_cache_is_bounded_in_number_and_bytes() {
        let now = Instant::now();
        let cache = ResourceCache::default();
        let version = cache.version(ListChangeCounts::default());
        let insert = |uri: String, ttl, size| cache.insert(&uri, &read_result(ttl, size), version, now);
        for number in 0..2 * MAX_RESOURCES {
            insert(format!("a:{number}"), 1000 + number as u64, 10);
        }
        assert_eq!(cache.0.lock().resources.len(), MAX_RESOURCES);
        assert!(
            cache.get("a:127", ListChangeCounts::default(), now).is_some(),
            "the entry that expires last stays"
        );
        for number in 0..20 {
            insert(format!("b:{number}"), 1000, 1 << 20);
        }
        insert("c:1".to_owned(), 1000, MAX_RESOURCE_BYTES);
        let table = cache.0.lock();
        assert!(table.bytes <= MAX_RESOURCE_BYTES);
        assert_eq!(
            table.bytes,
            table.resources.values().map(|it| it.result.raw.as_bytes().len()).sum::<usize>()
        );
    }
}
