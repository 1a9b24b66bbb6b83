//! `logs`: prints what a server wrote to standard error, in the hosts that run.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::sleep;

use super::{RunningHost, connection_failure, hosts_with_server, other_reply};
use crate::args::{Format, LogsArgs};
use crate::config::context::Context;
use crate::control::protocol::{ControlReply, ControlRequest, InstanceOutput};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{json, sanitize};
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};

/// How often new lines are requested. A host keeps the last 20 lines of each instance.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// A line with where it is from.
#[derive(serde::Serialize)]
struct LoggedLine {
    host: u32,
    process: Option<u32>,
    line: String,
}

/// The number of lines of an instance that were printed, by the process ids of its host and of itself.
type PrintedCounts = HashMap<(u32, Option<u32>), u64>;

/// Runs the command.
pub(crate) async fn run(context: &Context, args: LogsArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let report = run_until_signal(signals, print_lines(context, &args)).await??;
    Ok(context.print(report).await)
}

async fn print_lines(context: &Context, args: &LogsArgs) -> Result<Report, Failure> {
    let mut hosts = hosts_with_server(&args.server, args.host.as_deref()).await?;
    let mut printed = PrintedCounts::new();
    let mut errors = String::new();
    for host in &hosts {
        let hosted = host.status.servers.iter().find(|hosted| hosted.name == args.server);
        if let Some(error) = hosted.and_then(|hosted| hosted.error.as_ref()) {
            errors.push_str(&context.console.note(&format!("in the host {}: {error}", host.name())));
        }
    }
    context.print(Report::err(errors)).await;
    let is_alone = hosts.len() == 1;
    loop {
        let mut text = String::new();
        let mut running = Vec::new();
        for mut host in hosts {
            match new_lines(&mut host, &args.server, &mut printed).await {
                Ok(lines) => {
                    text.extend(lines.iter().map(|line| line.text(context.format, is_alone)));
                    running.push(host);
                }
                // The host has ended.
                Err(_) if args.follow => {}
                Err(failure) => return Err(failure),
            }
        }
        context.print(Report::out(text)).await;
        hosts = running;
        if !args.follow {
            return Ok(Report::default());
        }
        if hosts.is_empty() {
            return Ok(Report::err("the hosts have ended\n".to_owned()));
        }
        sleep(FOLLOW_INTERVAL).await;
    }
}

/// The lines of a host that were not printed.
async fn new_lines(
    host: &mut RunningHost,
    server: &str,
    printed: &mut PrintedCounts,
) -> Result<Vec<LoggedLine>, Failure> {
    let request = ControlRequest::Logs { server: server.to_owned() };
    let reply = host.client.request(&request).await.map_err(|error| connection_failure(&error))?;
    let ControlReply::Logs { instances } = reply else { return Err(other_reply()) };
    let mut res = Vec::new();
    for InstanceOutput { process, count, lines } in instances {
        let before = printed.insert((host.client.process, process), count).unwrap_or_default();
        let first = count.saturating_sub(lines.len() as u64);
        let known = before.saturating_sub(first);
        let line = |line| LoggedLine { host: host.client.process, process, line };
        if first > before && before > 0 {
            res.push(line(format!("... {} lines are left out", first - before)));
        }
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        res.extend(lines.into_iter().skip(known).map(line));
    }
    Ok(res)
}

impl LoggedLine {
    /// The line. `is_alone`: whether there is one host.
    fn text(&self, format: Format, is_alone: bool) -> String {
        match format {
            Format::Json => json::line(self),
            Format::Text if is_alone => format!("{}\n", sanitize::line(&self.line)),
            Format::Text => format!("{}: {}\n", self.host, sanitize::line(&self.line)),
        }
    }
}
