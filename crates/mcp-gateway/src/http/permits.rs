//! Concurrency limits by client: running requests and open streams.

use std::sync::Arc;

use ahash::HashMap;
use parking_lot::Mutex;

use crate::access::principal::Principal;

/// The number of permits that each client holds.
#[derive(Debug, Default)]
pub(crate) struct ClientPermits(Mutex<HashMap<Principal, usize>>);

/// A permit for a running request or an open stream.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    /// The number of permits that the client held when this one was acquired, including this one.
    client_permits: usize,
    permits: Arc<ClientPermits>,
    principal: Principal,
}

/// Maximum numbers of permits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PermitLimit {
    pub(crate) per_client: usize,
    /// For all clients together.
    pub(crate) total: usize,
}

impl ClientPermits {
    /// The number of clients that hold permits.
    pub(crate) fn clients(&self) -> usize {
        self.0.lock().len()
    }
}

impl ClientPermit {
    /// Acquires a permit. `None` if all are in use.
    pub(crate) fn acquire(
        permits: &Arc<ClientPermits>,
        principal: &Principal,
        PermitLimit { per_client, total }: PermitLimit,
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
        let client_permits = *count;
        Some(ClientPermit { client_permits, permits: Arc::clone(permits), principal: principal.clone() })
    }

    /// The number of permits that the client held when this one was acquired, including this one.
    pub(crate) fn client_permits(&self) -> usize {
        self.client_permits
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
