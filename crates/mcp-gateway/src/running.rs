//! The requests of one client that run now, so that he can take them back.
//!
//! Invariant: an id stands here once; it is free again when its guard is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcp_model::{RawJson, RpcError, code};
use tokio_util::sync::CancellationToken;

/// The requests of one client.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<Bytes, CancellationToken>>);

/// A request that runs. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct Guard {
    running: Arc<Running>,
    id: Bytes,
    /// Cancelled when the client takes the request back.
    pub(crate) taken_back: CancellationToken,
}

impl Running {
    /// Enters a request, of `most` at once.
    pub(crate) fn begin(self: &Arc<Running>, id: &RawJson, most: usize) -> Result<Guard, RpcError> {
        let id = id.clone().into_bytes();
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= most {
            let message = format!("more than {most} requests at once: wait for some of them");
            return Err(RpcError::new(code::SERVER_ERROR, message));
        }
        if table.contains_key(&id) {
            return Err(RpcError::new(code::INVALID_REQUEST, "a request with this id still runs"));
        }
        let taken_back = CancellationToken::new();
        // The id may be a slice of a large message, which is not to be kept for it.
        let id = Bytes::copy_from_slice(&id);
        table.insert(id.clone(), taken_back.clone());
        Ok(Guard { running: Arc::clone(self), id, taken_back })
    }

    /// Takes a request back, if it still runs.
    pub(crate) fn take_back(&self, id: &RawJson) {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = table.get(id.as_bytes()) {
            token.cancel();
        }
    }

    /// Takes all of them back.
    pub(crate) fn take_all_back(&self) {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.values().for_each(CancellationToken::cancel);
    }

    /// Does nothing run?
    pub(crate) fn is_idle(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[test]
    fn an_id_stands_once_and_is_free_again() {
        let running = Arc::new(Running::default());
        let first = running.begin(&id("1"), 2).unwrap();
        assert_eq!(running.begin(&id("1"), 2).unwrap_err().code, code::INVALID_REQUEST);
        let text = running.begin(&id("\"1\""), 2).unwrap();
        assert_eq!(running.begin(&id("3"), 2).unwrap_err().code, code::SERVER_ERROR);
        running.take_back(&id("1"));
        assert!(first.taken_back.is_cancelled() && !text.taken_back.is_cancelled());
        drop((first, text));
        assert!(running.is_idle());
        let again = running.begin(&id("1"), 2).unwrap();
        running.take_all_back();
        assert!(again.taken_back.is_cancelled());
    }
}
