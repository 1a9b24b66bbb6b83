//! Commands about the hosts of this user that run: `ps`, `stop`, `restart` and `logs`. They use the control sockets.

pub(crate) mod logs;
pub(crate) mod ps;
mod resource_use;
pub(crate) mod restart;
pub(crate) mod stop;

use std::io;
use std::path::Path;

use crate::config::locate::locate_config;
use crate::control::client::ControlClient;
use crate::control::protocol::{ControlReply, ControlRequest, HostStatus};
use crate::host::unknown_server;
use crate::output::failure::Failure;
use crate::output::sanitize;

/// A host that runs.
struct RunningHost {
    client: ControlClient,
    status: HostStatus,
}

impl RunningHost {
    /// All hosts of this user. A host that does not reply, for example because it ends, is left out.
    async fn find_all() -> Result<Vec<RunningHost>, Failure> {
        let mut res = Vec::new();
        for mut client in ControlClient::connect_all().await.map_err(|error| connection_failure(&error))? {
            if let Ok(ControlReply::Status(status)) = client.request(&ControlRequest::Status).await {
                res.push(RunningHost { client, status: *status });
            }
        }
        Ok(res)
    }

    /// Whether a process id or a configuration file selects it.
    fn is_selected_by(&self, selector: &str) -> bool {
        match selector.parse::<u32>() {
            Ok(process) => self.client.process == process,
            Err(_) => is_same_file(Path::new(selector), Path::new(&self.status.file)),
        }
    }

    /// Its process id and its file.
    fn name(&self) -> String {
        format!("{} ({})", self.client.process, sanitize::line(&self.status.file))
    }
}

/// The hosts that the selector selects, by default all. Fails if there is none.
async fn selected_hosts(selector: Option<&str>) -> Result<Vec<RunningHost>, Failure> {
    let mut hosts = RunningHost::find_all().await?;
    hosts.retain(|host| selector.is_none_or(|selector| host.is_selected_by(selector)));
    if hosts.is_empty() {
        let message = match selector {
            Some(selector) => format!("no host runs for `{}`", sanitize::line(selector)),
            None => "no host runs".to_owned(),
        };
        return Err(Failure::new(message).help(Some("`mcp-host ps` lists the hosts of this user")));
    }
    Ok(hosts)
}

/// The hosts that have a server, of those that the selector selects. Fails if there is none.
async fn hosts_with_server(server: &str, selector: Option<&str>) -> Result<Vec<RunningHost>, Failure> {
    let mut hosts = selected_hosts(selector).await?;
    let names = hosts.iter().flat_map(|host| host.status.servers.iter().map(|hosted| hosted.name.clone()));
    let names: Vec<String> = names.collect();
    hosts.retain(|host| host.status.servers.iter().any(|hosted| hosted.name == server));
    if hosts.is_empty() { Err(Failure::new(unknown_server(server, &names))) } else { Ok(hosts) }
}

/// The failure if a host does not speak this protocol.
fn other_reply() -> Failure {
    Failure::new("the host sent another reply than expected").help(Some("it may run another version"))
}

fn connection_failure(error: &io::Error) -> Failure {
    Failure::new(format!("the running hosts cannot be reached: {error}"))
}

/// Whether a configuration file, or a folder with one, is the file of a host. It may be missing. Reads the disk.
fn is_same_file(selector: &Path, file: &Path) -> bool {
    let selected = locate_config(selector).map_or_else(|_| selector.to_owned(), |config| config.path);
    let canonical = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    canonical(&selected).is_some_and(|selected| canonical(file) == Some(selected))
}
