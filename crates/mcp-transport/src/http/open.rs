//! The requests whose responses are being read, and the way to let go of one.
//!
//! An answer may come by another lane than its own: on the response to another request, or on the stream that listens.
//! The call has it then, and nobody needs the response that it was expected on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::RequestId;

/// The requests of one connection that wait for their response, or read it.
#[derive(Default)]
pub(super) struct Open(Mutex<BTreeMap<RequestId, Arc<Notify>>>);

/// A request that waits. Forgotten when it is dropped.
pub(super) struct Waiting<'a> {
    open: &'a Open,
    id: RequestId,
    released: Arc<Notify>,
}

impl Open {
    /// Request `id` begins to wait.
    pub(super) fn enter(&self, id: RequestId) -> Waiting<'_> {
        let released = Arc::new(Notify::new());
        self.lock().insert(id, Arc::clone(&released));
        Waiting { open: self, id, released }
    }

    /// Request `id` was answered elsewhere.
    pub(super) fn release(&self, id: RequestId) {
        if let Some(released) = self.lock().get(&id) {
            released.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RequestId, Arc<Notify>>> {
        // Every change under the lock is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting<'_> {
    /// Resolves when the request was answered elsewhere. Cancel-safe.
    pub(super) async fn released(&self) {
        self.released.notified().await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.open.lock().remove(&self.id);
    }
}
