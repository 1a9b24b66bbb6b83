//! `stop`: ends a host. Running calls may finish, as after a signal.

use super::{RunningHost, connection_failure, selected_hosts};
use crate::args::StopArgs;
use crate::config::context::Context;
use crate::control::protocol::ControlRequest;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};

/// Runs the command.
pub(crate) async fn run(context: &Context, args: StopArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let report = run_until_signal(signals, stop(args.host.as_deref())).await??;
    Ok(context.print(report).await)
}

async fn stop(selector: Option<&str>) -> Result<Report, Failure> {
    let hosts = selected_hosts(selector).await?;
    if selector.is_none() && hosts.len() > 1 {
        let names: Vec<String> = hosts.iter().map(RunningHost::name).collect();
        let failure = Failure::usage(format!("several hosts run: {}", names.join(", ")));
        return Err(failure.help(Some("name one, by its process id or its file")));
    }
    let mut out = String::new();
    for mut host in hosts {
        host.client.send(&ControlRequest::Stop).await.map_err(|error| connection_failure(&error))?;
        host.client.wait_until_ended().await.map_err(|_| {
            Failure::new(format!("the host {} has not ended in time", host.name()))
                .help(Some("`kill -KILL` ends it at once; its servers end with it"))
        })?;
        out.push_str(&format!("stopped {}\n", host.name()));
    }
    Ok(Report::out(out))
}
