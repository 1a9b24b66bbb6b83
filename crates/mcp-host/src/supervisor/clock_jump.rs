//! Notices that this machine has slept: only the wall's clock goes on meanwhile.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::supervisor::machine::slept;

/// How often the clocks are looked at when nothing else happens.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Where moments that people read come from, and sleeps of the machine are seen: usually [`SystemTime::now`].
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Both clocks as they were last looked at.
pub(crate) struct Clocks {
    wall: WallClock,
    last: (Instant, SystemTime),
}

impl Clocks {
    /// Looks for the first time.
    pub(crate) fn new(wall: WallClock) -> Clocks {
        let last = (Instant::now(), wall());
        Clocks { wall, last }
    }

    /// The wall's clock.
    pub(crate) fn wall(&self) -> SystemTime {
        (self.wall)()
    }

    /// When to look again at the latest.
    pub(crate) fn next(&self) -> Instant {
        self.last.0 + HEARTBEAT
    }

    /// Looks again: how long has the machine slept since?
    pub(crate) fn look(&mut self) -> Option<Duration> {
        let (instant, wall) = self.last;
        self.last = (Instant::now(), self.wall());
        // A wall's clock that was put back is no sleep.
        let passed = self.last.1.duration_since(wall).unwrap_or_default();
        slept(passed, self.last.0 - instant)
    }
}
