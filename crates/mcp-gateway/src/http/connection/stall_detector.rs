//! Detects an HTTP/2 client that grants no window for its responses.
//!
//! hyper requests the next part of a body only while the window has room. If it does not request a part in time,
//! the client does not read. `TimedStream` detects a blocked TCP connection, for both versions of HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// How long an event stream may be silent before a comment is sent.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Detects response bodies of one connection whose next part hyper does not request in time.
#[derive(Debug)]
pub(crate) struct StallDetector {
    limit: Duration,
    bodies: Mutex<Bodies>,
}

/// The watched response bodies.
#[derive(Debug, Default)]
struct Bodies {
    /// When hyper must have requested the next part of each body.
    deadlines: HashMap<u64, Instant>,
    next_id: u64,
}

/// A guard: a response body is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct BodyWatch {
    detector: Arc<StallDetector>,
    id: u64,
}

impl StallDetector {
    /// Creates the detector of a connection. `limit` is the time that a client may read nothing.
    pub(crate) fn new(limit: Duration) -> StallDetector {
        StallDetector { limit, bodies: Mutex::default() }
    }

    /// Watches a response body until the result is dropped.
    pub(crate) fn watch(self: &Arc<StallDetector>) -> BodyWatch {
        let mut bodies = self.bodies.lock();
        let id = bodies.next_id;
        bodies.next_id += 1;
        bodies.deadlines.insert(id, Instant::now() + self.limit);
        BodyWatch { detector: Arc::clone(self), id }
    }

    /// Resolves when a body is past its deadline.
    pub(crate) async fn wait_for_stall(&self) {
        while !self.bodies.lock().deadlines.values().any(|deadline| *deadline <= Instant::now()) {
            sleep(self.limit / 4).await;
        }
    }
}

impl BodyWatch {
    /// Restarts the deadline. If hyper has a part to send, it requests the next one when the window has room.
    /// If not, the deadline is extended by the keep-alive interval: an event stream sends something by then.
    pub(crate) fn record_poll(&self, has_part: bool) {
        let extension = if has_part { Duration::ZERO } else { KEEP_ALIVE };
        let deadline = Instant::now() + self.detector.limit + extension;
        self.detector.bodies.lock().deadlines.insert(self.id, deadline);
    }
}

impl Drop for BodyWatch {
    fn drop(&mut self) {
        self.detector.bodies.lock().deadlines.remove(&self.id);
    }
}
