//! Waiting for a condition. A wait that reaches its time limit panics.

use std::thread;
use std::time::{Duration, Instant};

/// The time limit of a wait, for slow machines.
pub const TIMEOUT: Duration = Duration::from_secs(90);

/// Waits in a task until the condition holds.
pub async fn wait_until(condition: &str, holds: impl Fn() -> bool) {
    let polling = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, polling).await.is_ok(), "timed out: {condition}");
}

/// Blocks the thread until the condition holds.
#[track_caller]
pub fn block_until(condition: &str, mut holds: impl FnMut() -> bool) {
    block_for(condition, || holds().then_some(()));
}

/// Blocks the thread until there is a value.
#[track_caller]
pub fn block_for<T>(description: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(start.elapsed() < TIMEOUT, "timed out: {description}");
        thread::sleep(Duration::from_millis(5));
    }
}
