//! The running requests of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The running requests of a connection: their number, whether a write to the client is blocked, and whether the end of
/// a request is ambiguous. A request runs until its whole response was passed to hyper. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveRequests(Arc<Activity>);

/// The state of a connection that clones of [`ActiveRequests`] share.
#[derive(Debug, Default)]
struct Activity {
    /// The number of running requests.
    requests: AtomicUsize,
    is_write_blocked: AtomicBool,
    is_framing_ambiguous: AtomicBool,
}

impl ActiveRequests {
    /// Whether no request is running.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.requests.load(Ordering::Relaxed) == 0
    }

    /// Whether no request is running and no response waits for its client.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_empty() && !self.0.is_write_blocked.load(Ordering::Relaxed)
    }

    /// Records whether the client does not read a response, so that a write to it is blocked.
    pub(crate) fn set_write_blocked(&self, is_blocked: bool) {
        self.0.is_write_blocked.store(is_blocked, Ordering::Relaxed);
    }

    /// Whether parsers could disagree about the end of a request. The connection must then be closed.
    pub(crate) fn is_framing_ambiguous(&self) -> bool {
        self.0.is_framing_ambiguous.load(Ordering::Relaxed)
    }

    pub(crate) fn set_framing_ambiguous(&self) {
        self.0.is_framing_ambiguous.store(true, Ordering::Relaxed);
    }

    /// Counts a request until the result is dropped.
    pub(crate) fn start(&self) -> ActiveRequest {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(Arc::clone(&self.0))
    }
}

/// A running request. Counted until it is dropped.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Activity>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}
