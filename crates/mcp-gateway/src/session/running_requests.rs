//! The running requests of one client, so that it can cancel them.
//!
//! An id is in the table at most once. It can be used again when the guard of its request is dropped.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use mcp_host_model::{RawJson, RpcError, code};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The running requests of one client.
#[derive(Debug, Default)]
pub(crate) struct RunningRequests(Mutex<RequestTable>);

/// The table of the running requests of one client.
#[derive(Debug, Default)]
struct RequestTable {
    /// The requests, each with the sender that cancels it; `None` once it was used.
    requests: ahash::HashMap<RequestKey, Option<oneshot::Sender<()>>>,
    /// Whether the client has disconnected, so that no further request starts.
    is_closed: bool,
}

/// A request id that is compared by value: `1` and `1.0` are the same number, `"a"` and `"\u0061"` the same string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RequestKey {
    Text(String),
    Integer(i128),
    /// Any other JSON text, unchanged.
    Other(String),
}

impl RequestKey {
    fn of(id: &RawJson) -> RequestKey {
        if let Some(text) = id.to_text() {
            return RequestKey::Text(text.into_owned());
        }
        let integer = id.as_str().parse::<i128>().ok().or_else(|| {
            let number = id.as_str().parse::<f64>().ok()?;
            // Up to this limit, 2^53, every integer has an exact `f64`.
            let is_exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
            is_exact.then_some(number as i128)
        });
        integer.map_or_else(|| RequestKey::Other(id.as_str().to_owned()), RequestKey::Integer)
    }
}

/// A running request. Dropping it removes the request.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    running: Arc<RunningRequests>,
    id: RequestKey,
    /// Receives the cancellation.
    cancelled: oneshot::Receiver<()>,
}

impl RunningRequests {
    /// Adds a request; at most `max_requests` may run.
    pub(crate) fn start(
        self: &Arc<RunningRequests>,
        id: &RawJson,
        max_requests: usize,
    ) -> Result<RequestGuard, RpcError> {
        let id = RequestKey::of(id);
        let mut table = self.0.lock();
        if table.is_closed {
            return Err(RpcError::new(
                code::SERVER_ERROR,
                "this session has ended: start a new one with `initialize`",
            ));
        }
        if table.requests.len() >= max_requests {
            let message = format!("more than {max_requests} requests at once: wait until some of them end");
            return Err(RpcError::new(code::SERVER_ERROR, message));
        }
        let Entry::Vacant(entry) = table.requests.entry(id.clone()) else {
            return Err(RpcError::new(
                code::INVALID_REQUEST,
                "a request with this id is still running: use another id",
            ));
        };
        let (cancel, cancelled) = oneshot::channel();
        entry.insert(Some(cancel));
        drop(table);
        Ok(RequestGuard { running: Arc::clone(self), id, cancelled })
    }

    /// Cancels a request, if it is running.
    pub(crate) fn cancel(&self, id: &RawJson) {
        let mut table = self.0.lock();
        if let Some(cancel) = table.requests.get_mut(&RequestKey::of(id)).and_then(Option::take) {
            // The request may just be ending.
            let _ = cancel.send(());
        }
    }

    /// Cancels all requests, and refuses new ones.
    pub(crate) fn cancel_all(&self) {
        let mut table = self.0.lock();
        table.is_closed = true;
        for cancel in table.requests.values_mut().filter_map(Option::take) {
            let _ = cancel.send(());
        }
    }

    /// Whether no request is running.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.lock().requests.is_empty()
    }
}

impl RequestGuard {
    /// Resolves when the request is cancelled. Cancel-safe.
    pub(crate) async fn cancelled(&mut self) {
        if (&mut self.cancelled).await.is_err() {
            // The request can no longer be cancelled.
            std::future::pending().await
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.running.0.lock().requests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    impl RequestGuard {
        fn is_cancelled(&mut self) -> bool {
            self.cancelled.try_recv().is_ok()
        }
    }

    fn id(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[test]
    fn request_id_is_unique_while_it_runs() {
        let running = Arc::new(RunningRequests::default());
        let mut first = running.start(&id("1"), 2).unwrap();
        assert_eq!(running.start(&id("1"), 2).unwrap_err().code, code::INVALID_REQUEST);
        let mut text = running.start(&id("\"1\""), 2).unwrap();
        assert_eq!(running.start(&id("3"), 2).unwrap_err().code, code::SERVER_ERROR);
        running.cancel(&id("1"));
        assert!(first.is_cancelled() && !text.is_cancelled());
        drop((first, text));
        assert!(running.is_idle());
        let mut restarted = running.start(&id("1"), 2).unwrap();
        running.cancel_all();
        assert!(restarted.is_cancelled());
        // A request that found the session before its end is refused.
        assert_eq!(running.start(&id("2"), 2).unwrap_err().code, code::SERVER_ERROR);
    }

    #[track_caller]
    fn check_same(one: &'static str, other: &'static str, want: bool) {
        let running = Arc::new(RunningRequests::default());
        let mut request = running.start(&id(one), 2).unwrap();
        running.cancel(&id(other));
        assert_eq!(request.is_cancelled(), want, "{one} {other}");
    }

    #[test]
    fn request_ids_compare_by_value() {
        check_same("1", "1.0", true);
        check_same("1e2", "100", true);
        check_same("-0", "0", true);
        check_same("\"a\"", "\"\\u0061\"", true);
        check_same("1", "\"1\"", false);
        check_same("1", "1.5", false);
        check_same("9007199254740993", "9007199254740992.0", false);
        check_same("1e400", "1e400", true);
        check_same("1e400", "1e401", false);
    }
}
