//! The lists that were prepared for a generation, by scope.
//!
//! Nothing is made under the lock, and what is asked for by several at once is made once: a client who makes up scopes
//! waits for them alone.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_host::HostSnapshot;
use mcp_model::ServerId;
use mcp_registry::CatalogHash;

use crate::access::scope::Names;
use crate::access::scope::Scope;
use crate::lists::definitions::Shown;
use crate::lists::gateway_resources::OwnResource;
use crate::lists::listing::Listing;

/// How many scopes are kept prepared at once: more than anybody needs, and no more than a client can make up.
const MOST_SCOPES: usize = 64;

/// Something that is made once, by the first who wants it.
type Once<T> = Arc<OnceLock<Arc<T>>>;

/// What was prepared.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Of which catalog, and which servers.
    of: Option<(CatalogHash, u64)>,
    exposed: Once<Shown>,
    original: Once<Shown>,
    prepared: Vec<Prepared>,
    /// How often something was taken.
    taken: u64,
}

#[derive(Debug)]
struct Prepared {
    scope: Arc<Scope>,
    listing: Once<Listing>,
    /// When it was taken last.
    taken: u64,
}

impl Shelf {
    /// The lists of a scope in this generation.
    pub(crate) fn listing(
        &self,
        published: &HostSnapshot,
        scope: &Arc<Scope>,
        own: &[OwnResource],
        is_shared: impl Fn(&ServerId) -> bool,
    ) -> Arc<Listing> {
        let (shown, listing) = self.place(published, scope);
        let made = listing.get_or_init(|| {
            let shown = shown.get_or_init(|| Arc::new(Shown::of(&published.catalog, scope.names, own)));
            Arc::new(Listing::build(Arc::clone(shown), &published.catalog, scope, is_shared))
        });
        Arc::clone(made)
    }

    /// Where it stands, or is to stand.
    fn place(&self, published: &HostSnapshot, scope: &Arc<Scope>) -> (Once<Shown>, Once<Listing>) {
        // Whether a server is shared may change without its lists, so that a newer generation counts as well.
        let of = (published.catalog.hash(), published.generation);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.of.is_none_or(|it| it != of) {
            *kept = Kept { of: Some(of), ..Kept::default() };
        }
        let shown = match scope.names {
            Names::Exposed => Arc::clone(&kept.exposed),
            Names::Original => Arc::clone(&kept.original),
        };
        kept.taken += 1;
        let taken = kept.taken;
        let all = &kept.prepared;
        let same = all.iter().position(|it| Arc::ptr_eq(&it.scope, scope));
        if let Some(at) = same.or_else(|| all.iter().position(|it| it.scope == *scope)) {
            kept.prepared[at].taken = taken;
            return (shown, Arc::clone(&kept.prepared[at].listing));
        }
        if kept.prepared.len() >= MOST_SCOPES {
            let oldest = (0..kept.prepared.len()).min_by_key(|at| kept.prepared[*at].taken);
            oldest.map(|at| kept.prepared.swap_remove(at));
        }
        let listing = Arc::default();
        kept.prepared.push(Prepared { scope: Arc::clone(scope), listing: Arc::clone(&listing), taken });
        (shown, listing)
    }
}
