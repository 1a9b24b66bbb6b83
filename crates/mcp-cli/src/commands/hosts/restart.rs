//! `restart`: restarts a server in the hosts that run.

use super::{connection_failure, hosts_with_server, other_reply};
use crate::args::RestartArgs;
use crate::config::context::Context;
use crate::control::protocol::{ControlReply, ControlRequest};
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
    let RestartArgs { server, host } = args;
    let hosts = hosts_with_server(server, host.as_deref()).await?;
    let mut out = String::new();
    for mut host in hosts {
        let request = ControlRequest::Restart { server: server.clone() };
        let reply = host.client.request_slowly(&request).await.map_err(|error| connection_failure(&error))?;
        match reply {
            ControlReply::Done => {
                out.push_str(&format!("restarted {} in the host {}\n", sanitize::line(server), host.name()));
            }
            ControlReply::Error { message } => return Err(Failure::new(message)),
            ControlReply::Approvals { .. }
            | ControlReply::Answered { .. }
            | ControlReply::Logs { .. }
            | ControlReply::Status(_) => return Err(other_reply()),
        }
    }
    Ok(Report::out(out))
}
