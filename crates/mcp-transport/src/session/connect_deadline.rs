//! How long a server's silence is waited out before it is spoken to in another way.
//!
//! Only silence of the server's own counts: while a user logs in, requests wait for that, and the server has heard
//! nothing yet.

use std::time::Duration;

use crate::transport::Dial;

/// How long a server may keep silent about the probe before it is asked in the old way too.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// And how long a server that spoke the modern era the last time.
pub(super) const PATIENCE_WITH_A_FRIEND: Duration = Duration::from_secs(10);

/// Resolves when the server has kept silent for so long, and it was not we who kept it waiting.
pub(super) async fn silence(dial: &dyn Dial, patience: Duration) {
    loop {
        let kept = dial.is_authorizing();
        tokio::time::sleep(patience).await;
        if !kept && !dial.is_authorizing() {
            return;
        }
    }
}
