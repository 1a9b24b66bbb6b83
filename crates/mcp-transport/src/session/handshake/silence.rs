//! Timeouts for a server that does not answer the handshake's probe.
//!
//! Silence during a login does not count, because requests are sent only after the login.

use std::time::Duration;

use crate::transport::Dial;

/// How long to wait for an answer to the probe before `initialize` is sent too.
pub(crate) const PROBE_SILENCE: Duration = Duration::from_secs(2);

/// How long to wait for that answer after the one to `initialize`. A server that runs answers both at once.
pub(crate) const PROBE_GRACE: Duration = Duration::from_secs(1);

/// How long to wait for an answer to the probe if the server spoke the modern era on its last connection. Longer than
/// [`PROBE_SILENCE`]: such a server probably only starts slowly, and starting it again would take longer.
pub(crate) fn known_modern_probe_timeout(startup: Duration) -> Duration {
    (startup / 2).max(Duration::from_secs(10))
}

/// Resolves after `timeout` without a login in progress. The caller drops it when the server responds.
pub(crate) async fn wait_for_silence(dial: &dyn Dial, timeout: Duration) {
    loop {
        let was_authorizing = dial.is_authorizing();
        tokio::time::sleep(timeout).await;
        if !was_authorizing && !dial.is_authorizing() {
            return;
        }
    }
}
