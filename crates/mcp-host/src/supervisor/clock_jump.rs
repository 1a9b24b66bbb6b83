//! Detects that the computer was suspended, because only the wall clock advances meanwhile.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::supervisor::machine::sleep_duration;

/// The maximum time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The wall clock, usually [`SystemTime::now`]. Used for timestamps and to detect suspends.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Both clocks at the last check.
pub(crate) struct ClockMonitor {
    wall: WallClock,
    last: (Instant, SystemTime),
}

impl ClockMonitor {
    /// Starts with the current time.
    pub(crate) fn new(wall: WallClock) -> ClockMonitor {
        let last = (Instant::now(), wall());
        ClockMonitor { wall, last }
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> SystemTime {
        (self.wall)()
    }

    /// The time of the next check.
    pub(crate) fn next_check(&self) -> Instant {
        self.last.0 + CHECK_INTERVAL
    }

    /// Checks both clocks; returns how long the computer was suspended since the last check.
    pub(crate) fn check(&mut self) -> Option<Duration> {
        let (instant, wall) = self.last;
        self.last = (Instant::now(), self.wall());
        // A wall clock that was set back is not a suspend.
        let passed = self.last.1.duration_since(wall).unwrap_or_default();
        sleep_duration(passed, self.last.0 - instant)
    }
}
