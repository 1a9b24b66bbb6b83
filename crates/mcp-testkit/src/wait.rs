//! Waiting for a condition. A wait that reaches its time limit panics with its place in the test.

use std::panic::Location;
use std::thread;
use std::time::{Duration, Instant};

/// The time limit of a wait, for slow machines.
pub const TIMEOUT: Duration = Duration::from_secs(90);

/// Waits in a task until the condition holds.
#[track_caller]
pub fn wait_until(condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let polling = async {
            while !condition() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        assert!(tokio::time::timeout(TIMEOUT, polling).await.is_ok(), "timed out: {caller}");
    }
}

/// Blocks the thread until the condition holds.
#[track_caller]
pub fn block_until(mut condition: impl FnMut() -> bool) {
    block_for(|| condition().then_some(()));
}

/// Blocks the thread until there is a value.
#[track_caller]
pub fn block_for<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(start.elapsed() < TIMEOUT, "timed out");
        thread::sleep(Duration::from_millis(5));
    }
}
