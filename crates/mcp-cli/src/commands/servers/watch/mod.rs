//! `watch`: runs the configured servers, follows the configuration, and shows every change.
//!
//! On a terminal it shows a full-screen view, otherwise one line per event.

mod draw;
mod screen;
mod view;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_runtime::{DesiredServers, FollowHandle, Host, HostSnapshot, Supervision};
use tokio::time::Instant;

use crate::args::{Format, WatchArgs};
use crate::config::context::Context;
use crate::config::follow::{FollowedConfig, follow};
use crate::config::refusal::StartRefusal;
use crate::host;
use crate::output::console::WriteOutcome;
use crate::output::failure::Failure;
use crate::output::json;
use crate::render::events::{EventLine, change_lines, file_event_lines};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};

/// How long new generations are collected before they are printed as one change. After a save, the new state is
/// published shortly before the event of the save. This delay makes the event appear first.
const COALESCE_DELAY: Duration = Duration::from_millis(20);

/// Follows the configuration until a signal arrives or the reader closes standard output.
pub(crate) async fn run(context: &Context, args: WatchArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let WatchArgs { file, plain } = args;
    let finding = FollowedConfig::find(context, file.as_deref());
    let found = run_until_signal(signals, finding).await?.map_err(StartRefusal::from)?;
    let FollowedConfig { request, approval } = found;
    if !plain && context.format == Format::Text && supports_full_screen() {
        let mut options = host::options(Supervision::default());
        options.catalog.approval = approval;
        let (options, logs) = screen::with_log_listener(options);
        let exit = host::with_host(Host::start(options), DesiredServers::default(), signals, async |host| {
            screen::run(context, host, request, logs).await
        });
        return Ok(exit.await);
    }
    let (none, supervision) = (DesiredServers::default(), Supervision::default());
    let exit = host::with_servers(none, supervision, approval, signals, async |host| {
        let published = host.snapshot();
        let follow_handle = follow(context, host, request).await;
        print_events(context, host, follow_handle, published).await
    });
    Ok(exit.await)
}

fn supports_full_screen() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
}

/// Prints events until the reader closes standard output.
async fn print_events(
    context: &Context,
    host: &Host,
    mut follow_handle: FollowHandle,
    before: Arc<HostSnapshot>,
) -> Exit {
    let mut published = before;
    let mut changes = host.subscribe();
    // The servers were applied by this command before it subscribed, so print the current state as a change too.
    changes.mark_changed();
    let mut print_due: Option<Instant> = None;
    loop {
        let lines = tokio::select! {
            biased;
            event = follow_handle.next() => match event {
                Some(event) => file_event_lines(event),
                // The host is shut down only by this command, so it has failed.
                None => {
                    print_lines(context, &change_lines(&published, &host.snapshot())).await;
                    return Exit::Failure;
                }
            },
            _ = changes.changed(), if print_due.is_none() => {
                print_due = Some(Instant::now() + COALESCE_DELAY);
                continue;
            }
            () = tokio::time::sleep_until(print_due.unwrap_or_else(Instant::now)), if print_due.is_some() => {
                print_due = None;
                let now = host.snapshot();
                let lines = change_lines(&published, &now);
                published = now;
                lines
            }
        };
        match print_lines(context, &lines).await {
            WriteOutcome::Complete => {}
            WriteOutcome::BrokenPipe => return Exit::Success,
            WriteOutcome::Failed => return Exit::Failure,
        }
    }
}

async fn print_lines(context: &Context, lines: &[EventLine]) -> WriteOutcome {
    let text = |line: &EventLine| match context.format {
        Format::Text => line.text(context.console.out_colour),
        Format::Json => json::line(line),
    };
    let (console, text) = (context.console, lines.iter().map(text).collect::<String>());
    run_blocking(move || console.write(&text)).await
}
