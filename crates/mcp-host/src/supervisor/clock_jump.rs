//! Detection of a suspend of the computer, during which only the wall clock advances.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::supervisor::machine::suspend_duration;

/// The maximum time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A wall clock, usually [`SystemTime::now`]. It is used for timestamps and to detect suspends.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Compares the monotonic clock with the wall clock, to detect suspends.
pub(crate) struct ClockMonitor {
    wall: WallClock,
    /// The times of both clocks at the last check.
    last: (Instant, SystemTime),
}

impl ClockMonitor {
    /// Creates a monitor whose last check is now.
    pub(crate) fn new(wall: WallClock) -> ClockMonitor {
        let last = (Instant::now(), wall());
        ClockMonitor { wall, last }
    }

    /// Returns the time of the wall clock.
    pub(crate) fn wall(&self) -> SystemTime {
        (self.wall)()
    }

    /// Returns the time of the next check.
    pub(crate) fn next_check(&self) -> Instant {
        self.last.0 + CHECK_INTERVAL
    }

    /// Checks both clocks. Returns how long the computer was suspended since the last check, if it was.
    pub(crate) fn check(&mut self) -> Option<Duration> {
        let (instant, wall) = self.last;
        self.last = (Instant::now(), self.wall());
        // A wall clock that was set back is not a suspend.
        let passed = self.last.1.duration_since(wall).unwrap_or_default();
        suspend_duration(passed, self.last.0 - instant)
    }
}
