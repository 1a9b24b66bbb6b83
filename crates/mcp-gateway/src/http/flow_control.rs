//! Detects an HTTP/2 client that grants no window for its responses.
//!
//! hyper asks for the next part of a body only while the window has room. A part that it does not ask for in time means
//! that the client does not read. A blocked TCP connection is detected by `TimedStream`, for both versions of HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::sse::KEEP_ALIVE;

/// The response bodies of a connection, each with the time at which hyper must have asked for its next part.
#[derive(Debug)]
pub(super) struct FlowControl {
    limit: Duration,
    bodies: Mutex<Bodies>,
}

#[derive(Debug, Default)]
struct Bodies {
    deadlines: HashMap<u64, Instant>,
    next_id: u64,
}

/// A response body that is watched until it is dropped.
#[derive(Debug)]
pub(super) struct WatchedBody {
    flow_control: Arc<FlowControl>,
    id: u64,
}

impl FlowControl {
    /// `limit` is how long a client may read nothing.
    pub(super) fn new(limit: Duration) -> FlowControl {
        FlowControl { limit, bodies: Mutex::default() }
    }

    pub(super) fn watch(self: &Arc<FlowControl>) -> WatchedBody {
        let mut bodies = self.bodies();
        let id = bodies.next_id;
        bodies.next_id += 1;
        bodies.deadlines.insert(id, Instant::now() + self.limit);
        WatchedBody { flow_control: Arc::clone(self), id }
    }

    /// Resolves when a body is past its deadline.
    pub(super) async fn stalled(&self) {
        while !self.bodies().deadlines.values().any(|deadline| *deadline <= Instant::now()) {
            sleep(self.limit / 4).await;
        }
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedBody {
    /// hyper has a part to send, and asks for the next one when there is room.
    pub(super) fn sending(&self) {
        self.extend(Duration::ZERO);
    }

    /// There is nothing to send. An event stream has something at each keep-alive at the latest.
    pub(super) fn waiting(&self) {
        self.extend(KEEP_ALIVE);
    }

    fn extend(&self, more: Duration) {
        let deadline = Instant::now() + self.flow_control.limit + more;
        self.flow_control.bodies().deadlines.insert(self.id, deadline);
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.flow_control.bodies().deadlines.remove(&self.id);
    }
}
