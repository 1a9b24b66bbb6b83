//! Concurrency limits by client: running requests and open streams.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::server::AppState;
use crate::access::principal::Principal;

/// The number of permits that each client holds.
#[derive(Debug, Default)]
pub(super) struct ClientPermits(Mutex<HashMap<Principal, usize>>);

/// A permit for a running request or an open stream.
#[derive(Debug)]
pub(super) struct ClientPermit {
    /// The number of permits that the client had with this one.
    count: usize,
    permits: Arc<ClientPermits>,
    principal: Principal,
}

/// Acquires a permit for a running request of all clients. A client with a permit of its own gets none if it runs more
/// requests than remain for the others.
pub(super) fn running_request(app: &AppState, client: Option<&ClientPermit>) -> Option<OwnedSemaphorePermit> {
    if client.is_some_and(|client| client.count > app.requests.available_permits()) {
        return None;
    }
    Arc::clone(&app.requests).try_acquire_owned().ok()
}

impl ClientPermit {
    /// Acquires a permit for a request without a session.
    pub(super) fn stateless_request(app: &AppState, principal: &Principal) -> Option<ClientPermit> {
        let per_client = app.bounds().requests_per_client;
        ClientPermit::acquire(&app.stateless_requests, principal, per_client, usize::MAX)
    }

    /// Acquires a permit for a request in a session. All sessions of a client share its permits. Returns `None` if
    /// all are in use, and for clients without tokens, which need none.
    pub(super) fn session_request(app: &AppState, principal: &Principal) -> Option<ClientPermit> {
        if principal.is_anonymous() {
            return None;
        }
        let per_client = app.bounds().requests_per_client.saturating_mul(2);
        ClientPermit::acquire(&app.session_requests, principal, per_client, usize::MAX)
    }

    /// Acquires a permit for a stream that stays open. Half of the connections remain for other requests.
    pub(super) fn stream(app: &AppState, principal: &Principal) -> Option<ClientPermit> {
        let total = (app.bounds().connections / 2).max(1);
        ClientPermit::acquire(&app.streams, principal, (total / 2).max(1), total)
    }

    fn acquire(
        permits: &Arc<ClientPermits>,
        principal: &Principal,
        per_client: usize,
        total: usize,
    ) -> Option<ClientPermit> {
        let mut table = permits.0.lock();
        if total < usize::MAX && table.values().sum::<usize>() >= total {
            return None;
        }
        let count = table.entry(principal.clone()).or_default();
        if *count >= per_client {
            return None;
        }
        *count += 1;
        let count = *count;
        Some(ClientPermit { count, permits: Arc::clone(permits), principal: principal.clone() })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut table = self.permits.0.lock();
        if let Some(count) = table.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                table.remove(&self.principal);
            }
        }
    }
}
