//! A cache of the lists of a generation, by scope.
//!
//! Nothing is built under the lock, and concurrent requests build a listing once. A client that requests many scopes
//! delays only itself.

use std::sync::{Arc, OnceLock};

use mcp_host_model::{ServerId, Sharing};
use mcp_host_registry::CatalogHash;
use mcp_host_runtime::HostSnapshot;
use parking_lot::Mutex;

use crate::access::scope::Scope;
use crate::lists::definitions::Definitions;
use crate::lists::gateway_resources::GatewayResource;
use crate::lists::listing::{Audience, ListFilter, Listing};

/// Maximum number of cached scopes.
const MAX_SCOPES: usize = 64;

/// A value that is built by the first thread that needs it.
type Lazy<T> = Arc<OnceLock<Arc<T>>>;

/// The cache of the lists of a generation.
#[derive(Debug, Default)]
pub(crate) struct ListingCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    /// The catalog hash and the generation that the entries belong to.
    version: Option<(CatalogHash, u64)>,
    /// The definitions by the style of their names.
    definitions: [Lazy<Definitions>; 2],
    /// The definitions of the previous version, until those of this one are built.
    before: [Option<Arc<Definitions>>; 2],
    /// The scopes with their lists for each audience, the most recently used one last.
    listings: Vec<(Arc<Scope>, [Lazy<Listing>; 2])>,
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
        let (definitions, listing) = self.entry(snapshot, scope, audience);
        let catalog = &snapshot.catalog;
        let listing = listing.get_or_init(|| {
            let definitions = definitions.get_or_init(|| {
                let before = self.0.lock().before[scope.names as usize].take();
                Arc::new(Definitions::of(catalog, scope.names, gateway_resources, before.as_deref()))
            });
            let leased = snapshot.servers.iter().filter(|status| status.sharing == Some(Sharing::PerOwner));
            let leased = leased.filter_map(|status| ServerId::parse(&status.id).ok()).collect();
            Arc::new(Listing::build(Arc::clone(definitions), filter, leased))
        });
        Arc::clone(listing)
    }

    /// The cache entry of a scope, which is added if it is missing.
    fn entry(
        &self,
        snapshot: &HostSnapshot,
        scope: &Arc<Scope>,
        audience: Audience,
    ) -> (Lazy<Definitions>, Lazy<Listing>) {
        // Whether a server is shared can change without its lists, so the generation counts too.
        let version = Some((snapshot.catalog.hash(), snapshot.generation));
        let mut state = self.0.lock();
        if state.version != version {
            let before = std::mem::take(&mut *state);
            let last =
                |style: usize| before.definitions[style].get().or(before.before[style].as_ref()).cloned();
            *state = CacheState { version, before: [last(0), last(1)], ..CacheState::default() };
        }
        let definitions = Arc::clone(&state.definitions[scope.names as usize]);
        let listings = &mut state.listings;
        let by_pointer = listings.iter().rposition(|(cached, _)| Arc::ptr_eq(cached, scope));
        let entry = match by_pointer.or_else(|| listings.iter().position(|(cached, _)| cached == scope)) {
            Some(at) => listings.remove(at),
            None => (Arc::clone(scope), Default::default()),
        };
        if listings.len() >= MAX_SCOPES {
            listings.remove(0);
        }
        let listing = Arc::clone(&entry.1[audience as usize]);
        listings.push(entry);
        (definitions, listing)
    }
}
