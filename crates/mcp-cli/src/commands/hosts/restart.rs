//! `restart`: restarts a server in the hosts that run.

use super::{RunningHost, connection_failure, no_host};
use crate::args::RestartArgs;
use crate::config::context::Context;
use crate::control::protocol::{ControlReply, ControlRequest};
use crate::host::unknown_server;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::sanitize;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};

/// Runs the command.
pub(crate) async fn run(
    context: &Context,
    args: RestartArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let report = run_until_signal(signals, restart(&args)).await??;
    Ok(context.print(report).await)
}

async fn restart(args: &RestartArgs) -> Result<Report, Failure> {
    let RestartArgs { server, host: selector } = args;
    let mut hosts = RunningHost::find_all().await?;
    hosts.retain(|host| selector.as_ref().is_none_or(|selector| host.is_selected_by(selector)));
    if hosts.is_empty() {
        return Err(no_host(selector.as_deref()));
    }
    let names = hosts.iter().flat_map(|host| host.status.servers.iter().map(|server| server.name.clone()));
    let names: Vec<String> = names.collect();
    hosts.retain(|host| host.status.servers.iter().any(|hosted| hosted.name == *server));
    if hosts.is_empty() {
        return Err(Failure::new(unknown_server(server, &names)));
    }
    let mut out = String::new();
    for mut host in hosts {
        let request = ControlRequest::Restart { server: server.clone() };
        let reply = host.client.request_slowly(&request).await.map_err(|error| connection_failure(&error))?;
        match reply {
            ControlReply::Done => {
                out.push_str(&format!("restarted {} in the host {}\n", sanitize::line(server), host.name()));
            }
            ControlReply::Error { message } => return Err(Failure::new(message)),
            ControlReply::Approvals { .. } | ControlReply::Answered { .. } | ControlReply::Status(_) => {
                return Err(Failure::new("the host sent another reply than expected"));
            }
        }
    }
    Ok(Report::out(out))
}
