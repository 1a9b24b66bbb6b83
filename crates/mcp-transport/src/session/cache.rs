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

/// Maximum number of cached resources, and their maximum total size.
const MAX_RESOURCES: usize = 64;
const MAX_RESOURCE_BYTES: usize = 8 << 20;

/// The cached results of one session.
#[derive(Default)]
pub(crate) struct ResultCache {
    pub(crate) tools: CachedList<Tool>,
    pub(crate) prompts: CachedList<Prompt>,
    pub(crate) resources: CachedList<Resource>,
    pub(crate) templates: CachedList<ResourceTemplate>,
    pub(crate) read_results: Arc<ResourceCache>,
}

/// A cached list.
pub(crate) struct CachedList<T>(Mutex<Option<CachedListing<T>>>);

struct CachedListing<T> {
    listing: ListResult<T>,
    expires_at: Instant,
    /// The number of announced changes when it was requested.
    change_count: u64,
}

impl<T> Default for CachedList<T> {
    fn default() -> CachedList<T> {
        CachedList(Mutex::new(None))
    }
}

impl<T: Clone> CachedList<T> {
    /// Returns the list if it has not expired and no further change was announced.
    pub(crate) fn get(&self, change_count: u64, now: Instant) -> Option<ListResult<T>> {
        let mut entry = self.0.lock();
        if entry.as_ref().is_some_and(|it| it.change_count != change_count || now >= it.expires_at) {
            *entry = None;
        }
        entry.as_ref().map(|it| it.listing.clone())
    }

    /// Removes the list.
    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }

    /// Stores a list that was requested after `change_count` changes, until `expires_at`.
    pub(crate) fn insert(&self, listing: &ListResult<T>, change_count: u64, expires_at: Option<Instant>) {
        *self.0.lock() =
            expires_at.map(|expires_at| CachedListing { listing: listing.clone(), expires_at, change_count });
    }
}

/// The expiry of a result received at `now`; `None` if it must not be cached.
pub(crate) fn expiry(freshness: Freshness, now: Instant) -> Option<Instant> {
    let ttl = freshness.ttl.min(MAX_TTL);
    (!ttl.is_zero()).then(|| now + ttl)
}

/// The cached contents of resources.
#[derive(Default)]
pub(crate) struct ResourceCache(Mutex<ResourceTable>);

#[derive(Default)]
struct ResourceTable {
    resources: HashMap<String, CachedResource>,
    bytes: usize,
    /// Counts changes, so that a result requested before a change is not cached after it.
    generation: u64,
}

struct CachedResource {
    result: ResourceResult,
    expires_at: Instant,
    /// The number of announced changes of the resource list.
    change_count: u64,
}

impl ResourceCache {
    /// Removes a resource that has changed.
    pub(crate) fn remove_changed(&self, uri: &str) {
        let mut table = self.0.lock();
        table.generation += 1;
        table.remove(uri);
    }

    /// Returns the content of a resource if it is still valid.
    pub(crate) fn get(&self, uri: &str, changes: ListChangeCounts, now: Instant) -> Option<ResourceResult> {
        let mut table = self.0.lock();
        let cached = table.resources.get(uri)?;
        if cached.change_count == changes.resources && now < cached.expires_at {
            return Some(cached.result.clone());
        }
        table.remove(uri);
        None
    }

    /// The number of changes so far; read it before requesting a resource.
    pub(crate) fn generation(&self) -> u64 {
        self.0.lock().generation
    }

    /// Stores a resource unless something has changed since `generation`.
    pub(crate) fn insert(
        &self,
        uri: &str,
        result: &ResourceResult,
        requested_at: (u64, ListChangeCounts),
        now: Instant,
    ) {
        let (generation, changes) = requested_at;
        let Some(expires_at) = expiry(result.freshness, now) else { return };
        let size = result.raw.as_bytes().len();
        let mut table = self.0.lock();
        if table.generation != generation || size > MAX_RESOURCE_BYTES {
            return;
        }
        table.remove(uri);
        table.resources.retain(|_, it| now < it.expires_at);
        table.bytes = table.resources.values().map(|it| it.result.raw.as_bytes().len()).sum();
        while table.resources.len() >= MAX_RESOURCES || table.bytes + size > MAX_RESOURCE_BYTES {
            // Evict the entry that expires first.
            let oldest =
                table.resources.iter().min_by_key(|(_, it)| it.expires_at).map(|(uri, _)| uri.clone());
            let Some(oldest) = oldest else { break };
            table.remove(&oldest);
        }
        table.bytes += size;
        let resource = CachedResource { result: result.clone(), expires_at, change_count: changes.resources };
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

    fn read(ttl: u64, size: usize) -> ResourceResult {
        let text = "x".repeat(size);
        let json = format!(r#"{{"contents":[{{"uri":"a:b","text":"{text}"}}],"ttlMs":{ttl}}}"#);
        read_resource_result(&RawJson::parse(json.into()).unwrap()).unwrap()
    }

    #[test]
    fn list_is_cached_until_it_expires_or_changes() {
        let now = Instant::now();
        let slot = CachedList::<u8>::default();
        let listing = ListResult { items: vec![1], rejected: Vec::new(), freshness: Freshness::default() };
        slot.insert(&listing, 3, None);
        assert_eq!(slot.get(3, now), None, "no time was given");
        let second = Duration::from_secs(1);
        let mut freshness = Freshness::default();
        freshness.ttl = second;
        slot.insert(&listing, 3, expiry(freshness, now));
        assert!(slot.get(3, now + second / 2).is_some());
        assert_eq!(slot.get(3, now + second), None);
        slot.insert(&listing, 3, expiry(freshness, now));
        assert_eq!(slot.get(4, now), None, "it has changed");
        assert_eq!(slot.get(3, now), None, "and stays removed");
        let mut unlimited = Freshness::default();
        unlimited.ttl = Duration::MAX;
        assert_eq!(expiry(unlimited, now), Some(now + MAX_TTL));
    }

    #[test]
    fn resource_is_cached_until_it_changes() {
        let now = Instant::now();
        let changes = ListChangeCounts::default();
        let reads = Arc::new(ResourceCache::default());
        let put = |uri: &str, ttl, size| {
            reads.insert(uri, &read(ttl, size), (reads.generation(), changes), now);
        };
        let has = |uri: &str, changes| reads.get(uri, changes, now).is_some();
        put("a:1", 1000, 1);
        put("a:2", 0, 1);
        assert_eq!((has("a:1", changes), has("a:2", changes)), (true, false));
        reads.remove_changed("a:1");
        assert!(!has("a:1", changes));
        let generation = reads.generation();
        reads.remove_changed("a:9");
        reads.insert("a:1", &read(1000, 1), (generation, changes), now);
        assert!(!has("a:1", changes), "it may have been read before the change");
        put("a:1", 1000, 1);
        assert!(!has("a:1", ListChangeCounts { resources: 1, ..changes }));
    }

    #[test]
    fn resource_cache_is_bounded_in_number_and_bytes() {
        let now = Instant::now();
        let reads = ResourceCache::default();
        let put = |uri: String, ttl, size| {
            reads.insert(&uri, &read(ttl, size), (0, ListChangeCounts::default()), now)
        };
        for number in 0..2 * MAX_RESOURCES {
            put(format!("a:{number}"), 1000 + number as u64, 10);
        }
        assert_eq!(reads.0.lock().resources.len(), MAX_RESOURCES);
        assert!(
            reads.get("a:127", ListChangeCounts::default(), now).is_some(),
            "the entry that expires last stays"
        );
        for number in 0..20 {
            put(format!("b:{number}"), 1000, 1 << 20);
        }
        put("c:1".to_owned(), 1000, MAX_RESOURCE_BYTES);
        let table = reads.0.lock();
        assert!(table.bytes <= MAX_RESOURCE_BYTES);
        assert_eq!(
            table.bytes,
            table.resources.values().map(|it| it.result.raw.as_bytes().len()).sum::<usize>()
        );
    }
}
