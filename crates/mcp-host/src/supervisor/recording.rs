//! Recording of a host's sessions, for tests that replay them.

use std::sync::Arc;

use mcp_host_recording::{Recorder, endpoint_secrets, json_secrets};

use crate::supervisor::connector::{Dialer, default_dialer};

/// Creates a dialer for [`Host::with_dialer`](crate::host::Host::with_dialer) that records all messages under the
/// servers' names. Secrets of the configuration are removed.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use mcp_host_runtime::{Host, HostOptions, recording_dialer};
/// use mcp_host_recording::Recorder;
///
/// let recorder = Recorder::default();
/// let host = Host::with_dialer(HostOptions::default(), recording_dialer(&recorder));
/// // … apply and call servers …
/// host.shutdown().await;
/// println!("{}", recorder.recording().to_text());
/// # }
/// ```
pub fn recording_dialer(recorder: &Recorder) -> Dialer {
    let (recorder, dialer) = (recorder.clone(), default_dialer());
    Arc::new(move |server, options| {
        let mut secrets = endpoint_secrets(&server.endpoint);
        secrets.extend(server.config.iter().flat_map(json_secrets));
        Ok(recorder.wrap(server.spec.id.as_str(), dialer(server, options)?, &secrets))
    })
}
