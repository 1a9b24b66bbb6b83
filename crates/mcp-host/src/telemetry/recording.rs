
<<<<<<< /tmp/core/m2

=======
//! A host whose sessions are written down, for tests that play them again.

use std::sync::Arc;

use mcp_recording::{Recorder, endpoint_secrets, json_secrets};

use crate::supervisor::connector::{Dialer, own_wires};

/// The host's own wires, for [`Host::with_dialer`](crate::host::Host::with_dialer), with everything that crosses them written
/// down by `recorder` under the servers' names. What a server is given by its configuration is taken out of it.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use mcp_host::{Host, HostOptions, recording_dialer};
/// use mcp_recording::Recorder;
///
/// let recorder = Recorder::default();
/// let host = Host::with_dialer(HostOptions::default(), recording_dialer(&recorder));
/// // … servers are applied, and called …
/// host.shutdown().await;
/// println!("{}", recorder.recording().to_text());
/// # }
/// ```
pub fn recording_dialer(recorder: &Recorder) -> Dialer {
    let (recorder, wires) = (recorder.clone(), own_wires());
    Arc::new(move |server, options| {
        let mut secrets = endpoint_secrets(&server.endpoint);
        secrets.extend(server.config.iter().flat_map(json_secrets));
        Ok(recorder.wrap(server.spec.id.as_str(), wires(server, options)?, &secrets))
    })
}

>>>>>>> /tmp/core/m3
