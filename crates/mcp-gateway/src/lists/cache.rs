//! A cache of the lists of a generation, by scope.
//!
//! Nothing is built under the lock, and concurrent requests build a listing once. A client that requests many scopes
//! delays only itself.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use lru::LruCache;
use mcp_host_model::Sharing;
use mcp_host_registry::CatalogHash;
use mcp_host_runtime::HostSnapshot;
use parking_lot::Mutex;

use crate::access::scope::Scope;
use crate::lists::definitions::Definitions;
use crate::lists::gateway_resources::GatewayResource;
use crate::lists::listing::{Audience, ListFilter, Listing};

/// The number of scopes that are cached at least.
const MIN_SCOPES: usize = 64;
/// Maximum number of cached scopes: one for each token, and some for the paths and queries of clients.
const MAX_SCOPES: usize = 2048;
/// The size in bytes that cached scopes may have together beyond [`MIN_SCOPES`]. A listing has a byte for each
/// definition.
const MAX_LISTING_BYTES: usize = 32 * 1024 * 1024;

/// A value that is built by the first thread that needs it.
type Lazy<T> = Arc<OnceLock<Arc<T>>>;

/// The cache of the lists of a generation.
#[derive(Debug, Default)]
pub(crate) struct ListingCache(Mutex<CacheState>);

/// The cached lists of one version of the catalog.
#[derive(Debug)]
struct CacheState {
    /// The catalog hash and the generation that the entries belong to.
    version: Option<(CatalogHash, u64)>,
    /// The definitions by the style of their names.
    definitions: [Lazy<Definitions>; 2],
    /// The definitions of the previous version, until those of this one are built.
    before: [Option<Arc<Definitions>>; 2],
    /// The scopes with their lists for each audience.
    listings: LruCache<Arc<Scope>, [Lazy<Listing>; 2]>,
    /// The entry that was used last. Most clients have one scope, so most requests need no lookup.
    latest: Option<LatestListing>,
}

/// A listing that was built.
#[derive(Debug)]
struct LatestListing {
    scope: Arc<Scope>,
    audience: Audience,
    listing: Arc<Listing>,
}

impl Default for CacheState {
    fn default() -> CacheState {
        CacheState {
            version: None,
            definitions: Default::default(),
            before: Default::default(),
            listings: LruCache::new(max_scopes(0)),
            latest: None,
        }
    }
}

/// The number of scopes that are cached for a catalog with this number of definitions.
fn max_scopes(definitions: usize) -> NonZeroUsize {
    let fitting = MAX_LISTING_BYTES / definitions.max(1);
    NonZeroUsize::new(fitting.clamp(MIN_SCOPES, MAX_SCOPES)).unwrap_or(NonZeroUsize::MIN)
}

impl ListingCache {
    /// The listing of the definitions that pass `filter` in this generation.
    pub(crate) fn listing(
        &self,
        snapshot: &HostSnapshot,
        filter: ListFilter<'_>,
        gateway_resources: &[GatewayResource],
    ) -> Arc<Listing> {
        let ListFilter { scope, audience, .. } = filter;
        let (definitions, listing) = match self.entry(snapshot, scope, audience) {
            CacheEntry::Built(listing) => return listing,
            CacheEntry::Lazy(definitions, listing) => (definitions, listing),
        };
        let catalog = &snapshot.catalog;
        let listing = listing.get_or_init(|| {
            let definitions = definitions.get_or_init(|| {
                let before = self.0.lock().before[scope.names as usize].take();
                Arc::new(Definitions::of(catalog, scope.names, gateway_resources, before.as_deref()))
            });
            let leased = snapshot.servers.iter().filter(|status| status.sharing == Some(Sharing::PerOwner));
            let leased = leased.filter_map(|status| status.id.id().cloned()).collect();
            Arc::new(Listing::build(Arc::clone(definitions), filter, leased))
        });
        Arc::clone(listing)
    }

    /// The cache entry of a scope, which is added if it is missing.
    fn entry(&self, snapshot: &HostSnapshot, scope: &Arc<Scope>, audience: Audience) -> CacheEntry {
        let version = Some(version_of(snapshot));
        let mut state = self.0.lock();
        if state.version == version
            && let Some(latest) = &state.latest
            && Arc::ptr_eq(&latest.scope, scope)
            && latest.audience == audience
        {
            return CacheEntry::Built(Arc::clone(&latest.listing));
        }
        if state.version != version {
            let before = std::mem::take(&mut *state);
            let last =
                |style: usize| before.definitions[style].get().or(before.before[style].as_ref()).cloned();
            let catalog = &snapshot.catalog;
            let definitions = catalog.tools().len()
                + catalog.prompts().len()
                + catalog.resources().len()
                + catalog.templates().len();
            *state = CacheState {
                version,
                definitions: Default::default(),
                before: [last(0), last(1)],
                listings: LruCache::new(max_scopes(definitions)),
                latest: None,
            };
        }
        let definitions = Arc::clone(&state.definitions[scope.names as usize]);
        let listings = state.listings.get_or_insert(Arc::clone(scope), Default::default);
        let entry = Arc::clone(&listings[audience as usize]);
        let Some(listing) = entry.get().cloned() else { return CacheEntry::Lazy(definitions, entry) };
        let (scope, latest) = (Arc::clone(scope), Arc::clone(&listing));
        state.latest = Some(LatestListing { scope, audience, listing: latest });
        CacheEntry::Built(listing)
    }
}

/// What the cache has for a scope.
enum CacheEntry {
    /// The listing, which is the one that was used last from now on.
    Built(Arc<Listing>),
    /// The definitions and the listing, which have to be built.
    Lazy(Lazy<Definitions>, Lazy<Listing>),
}

/// The version of the lists of a snapshot. Whether a server is shared can change without its lists, so the generation
/// counts too.
fn version_of(snapshot: &HostSnapshot) -> (CatalogHash, u64) {
    (snapshot.catalog.hash(), snapshot.generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RPT-475
    #[test]
    fn scopes_of_all_tokens_are_cached_unless_the_catalog_is_huge() {
        assert_eq!(
            [0, 1_000, 10_000, 100_000, 10_000_000].map(|count| max_scopes(count).get()),
            [2048, 2048, 2048, 335, 64]
        );
    }
}
