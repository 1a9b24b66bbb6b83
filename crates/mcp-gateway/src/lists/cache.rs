//! Caches the lists of a generation by scope.
//!
//! Nothing is built under the lock, and concurrent requests build a listing once. A client that requests many
//! scopes delays only itself.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_host::HostSnapshot;
use mcp_model::ServerId;
use mcp_registry::CatalogHash;

use crate::access::scope::NameStyle;
use crate::access::scope::Scope;
use crate::lists::definitions::Definitions;
use crate::lists::gateway_resources::GatewayResource;
use crate::lists::listing::Listing;

/// Maximum number of cached scopes.
const MAX_SCOPES: usize = 64;

/// A value that the first user builds.
type Lazy<T> = Arc<OnceLock<Arc<T>>>;

/// The cache.
#[derive(Debug, Default)]
pub(crate) struct ListingCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    /// The catalog hash and the generation that the entries belong to.
    of: Option<(CatalogHash, u64)>,
    exposed: Lazy<Definitions>,
    original: Lazy<Definitions>,
    entries: Vec<CacheEntry>,
    /// Counts lookups, for the least recently used entry.
    last_used: u64,
}

#[derive(Debug)]
struct CacheEntry {
    scope: Arc<Scope>,
    listing: Lazy<Listing>,
    /// The lookup that last used it.
    last_used: u64,
}

impl ListingCache {
    /// The listing of a scope in this generation.
    pub(crate) fn listing(
        &self,
        published: &HostSnapshot,
        scope: &Arc<Scope>,
        own: &[GatewayResource],
        is_shared: impl Fn(&ServerId) -> bool,
    ) -> Arc<Listing> {
        let (definitions, listing) = self.entry(published, scope);
        let made = listing.get_or_init(|| {
            let definitions =
                definitions.get_or_init(|| Arc::new(Definitions::of(&published.catalog, scope.names, own)));
            Arc::new(Listing::build(Arc::clone(definitions), &published.catalog, scope, is_shared))
        });
        Arc::clone(made)
    }

    /// The cache entry of a scope, which is added if it is missing.
    fn entry(&self, published: &HostSnapshot, scope: &Arc<Scope>) -> (Lazy<Definitions>, Lazy<Listing>) {
        // Whether a server is shared can change without its lists, so the generation counts too.
        let of = (published.catalog.hash(), published.generation);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.of.is_none_or(|it| it != of) {
            *state = CacheState { of: Some(of), ..CacheState::default() };
        }
        let definitions = match scope.names {
            NameStyle::Exposed => Arc::clone(&state.exposed),
            NameStyle::Original => Arc::clone(&state.original),
        };
        state.last_used += 1;
        let last_used = state.last_used;
        let all = &state.entries;
        let same = all.iter().position(|it| Arc::ptr_eq(&it.scope, scope));
        if let Some(at) = same.or_else(|| all.iter().position(|it| it.scope == *scope)) {
            state.entries[at].last_used = last_used;
            return (definitions, Arc::clone(&state.entries[at].listing));
        }
        if state.entries.len() >= MAX_SCOPES {
            let oldest = (0..state.entries.len()).min_by_key(|at| state.entries[*at].last_used);
            oldest.map(|at| state.entries.swap_remove(at));
        }
        let listing = Arc::default();
        state.entries.push(CacheEntry { scope: Arc::clone(scope), listing: Arc::clone(&listing), last_used });
        (definitions, listing)
    }
}
