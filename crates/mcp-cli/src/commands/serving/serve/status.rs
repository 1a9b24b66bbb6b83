//! The status of this host for `ps`.

use std::path::absolute;
use std::sync::Arc;
use std::time::SystemTime;

use mcp_host_runtime::{FollowRequest, Host, InstanceSnapshot, PendingQuestions, ServerStatus};

use super::shared::{SharedClients, SharedHost};
use crate::control::protocol::{HostStatus, HostedClient, HostedServer, ServerInstance};
use crate::control::server::ControlledHost;

/// What the status of this host is made of, besides the host.
pub(super) struct StatusSource {
    /// The part that stays as it is.
    base: HostStatus,
    clients: SharedClients,
    since: SystemTime,
}

impl StatusSource {
    /// The source for a host that starts now. `kind` is how its clients connect.
    pub(super) fn new(kind: &str, shared: Option<&SharedHost>, request: &FollowRequest) -> StatusSource {
        let clients = shared.map(SharedHost::clients).unwrap_or_default();
        let log = shared.and_then(SharedHost::log_path);
        let paths =
            request.files.iter().map(|file| absolute(&file.path).unwrap_or_else(|_| file.path.clone()));
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        let base = HostStatus {
            kind: kind.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            file: paths.join(", "),
            log,
            ..HostStatus::default()
        };
        StatusSource { base, clients, since: SystemTime::now() }
    }

    /// What the control socket serves.
    pub(super) fn controlled_host(self, host: &Arc<Host>, questions: PendingQuestions) -> ControlledHost {
        let subject = Arc::clone(host);
        let status = Arc::new(move || self.status(&subject));
        ControlledHost { host: Arc::clone(host), questions, status }
    }

    fn status(&self, host: &Host) -> HostStatus {
        let instances = host.instances();
        let servers =
            host.snapshot().servers.iter().map(|server| hosted_server(server, &instances)).collect();
        let clients = self.clients.lock();
        let clients = clients.values().map(|client| HostedClient {
            process: client.greeting.process,
            folder: client.greeting.folder.display().to_string(),
            seconds: seconds_since(client.since),
        });
        HostStatus {
            seconds: seconds_since(self.since),
            servers,
            clients: clients.collect(),
            ..self.base.clone()
        }
    }
}

fn hosted_server(server: &ServerStatus, instances: &[InstanceSnapshot]) -> HostedServer {
    let own = instances.iter().filter(|instance| server.id.id() == Some(&instance.server));
    let instances = own.map(|instance| ServerInstance {
        process: instance.pid,
        seconds: seconds_since(instance.started),
        leased: instance.dialog.is_some(),
    });
    HostedServer {
        name: server.id.to_string(),
        state: server.state.as_str().to_owned(),
        error: server.error.as_ref().map(ToString::to_string),
        instances: instances.collect(),
    }
}

fn seconds_since(time: SystemTime) -> u64 {
    SystemTime::now().duration_since(time).unwrap_or_default().as_secs()
}
