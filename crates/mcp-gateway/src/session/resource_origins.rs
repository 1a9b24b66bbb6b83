//! The servers that sent URIs to clients, so that a client can read what a result links to.
//!
//! Bounded: the most recently used URIs of each client are kept, for the most recently active clients. The host
//! searches the server of a URI that was forgotten.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use mcp_host_model::ServerId;
use mcp_host_runtime::DialogId;
use parking_lot::Mutex;

use crate::access::principal::Principal;
use crate::session::request_client::RequestClient;

/// Maximum number of clients.
const MAX_CLIENTS: usize = 1024;

/// Maximum number of URIs of a client.
const MAX_URIS: NonZeroUsize = NonZeroUsize::new(512).expect("it is not zero");

/// The servers that sent URIs, for all clients.
#[derive(Debug)]
pub(crate) struct ResourceOrigins {
    clients: Mutex<LruCache<OriginKey, Arc<ClientOrigins>>>,
    /// URIs are stored as hashes with a random key, which no client can make collide.
    hasher: ahash::RandomState,
}

/// The key of a client's URIs: its session, or its principal for all requests without a session. Some of these have a
/// dialog, and a URI must mean the same in all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum OriginKey {
    Session(DialogId),
    Principal(Principal),
}

/// The server of each URI, by the URI's hash.
type ClientOrigins = Mutex<LruCache<u64, ServerId>>;

impl Default for ResourceOrigins {
    fn default() -> ResourceOrigins {
        ResourceOrigins { clients: Mutex::new(LruCache::unbounded()), hasher: ahash::RandomState::new() }
    }
}

impl ResourceOrigins {
    /// Remembers that a server sent this URI, unless another one did. Returns the first server.
    pub(crate) fn claim(&self, client: &OriginKey, uri: &str, server: &ServerId) -> ServerId {
        let client = self.client_origins(client);
        let mut origins = client.lock();
        let owner = origins.get_or_insert(self.hasher.hash_one(uri), || server.clone()).clone();
        if origins.len() > MAX_URIS.get() {
            origins.pop_lru();
        }
        owner
    }

    /// The server that sent this URI first.
    pub(crate) fn get(&self, client: &OriginKey, uri: &str) -> Option<ServerId> {
        let client = self.clients.lock().get(client).cloned()?;
        client.lock().get(&self.hasher.hash_one(uri)).cloned()
    }

    fn client_origins(&self, key: &OriginKey) -> Arc<ClientOrigins> {
        let mut clients = self.clients.lock();
        // Unbounded caches allocate no table in advance.
        let client = clients.get_or_insert(key.clone(), || Arc::new(Mutex::new(LruCache::unbounded())));
        let client = Arc::clone(client);
        if clients.len() > MAX_CLIENTS {
            clients.pop_lru();
        }
        client
    }
}

impl OriginKey {
    /// The key of a request's client.
    pub(crate) fn of(client: &RequestClient) -> OriginKey {
        match &client.session {
            Some(session) => OriginKey::Session(session.dialog.id().clone()),
            None => OriginKey::Principal(client.principal.clone()),
        }
    }
}
