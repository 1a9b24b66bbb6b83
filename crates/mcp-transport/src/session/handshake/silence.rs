//! Timeouts for a server that does not answer the handshake's probe.
//!
//! Only the server's own silence counts. During a login, requests are held back, so the server has not received
//! them yet.

use std::time::Duration;

use crate::transport::Dial;

/// How long to wait for an answer to the probe before `initialize` is sent too.
pub(crate) const PROBE_SILENCE: Duration = Duration::from_secs(2);

/// How long to wait for that answer after the one to `initialize`. A server that runs answers both at once.
pub(crate) const PROBE_GRACE: Duration = Duration::from_secs(1);

/// How long to wait for an answer to the probe if the server spoke the modern era on its last connection. It probably
/// starts slowly, and a second start would take longer.
pub(crate) fn known_modern_silence(startup: Duration) -> Duration {
    (startup / 2).max(Duration::from_secs(10))
}

/// Resolves when the server was silent for this long without a login in progress.
pub(crate) async fn silence(dial: &dyn Dial, timeout: Duration) {
    loop {
        let was_authorizing = dial.is_authorizing();
        tokio::time::sleep(timeout).await;
        if !was_authorizing && !dial.is_authorizing() {
            return;
        }
    }
}
