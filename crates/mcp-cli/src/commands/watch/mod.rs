//! `watch`: runs the configured servers, follows the configuration, and shows every change.
//!
//! On a terminal it shows a full-screen view, otherwise one line per event.

mod draw;
mod screen;
mod view;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_host::{DesiredServers, FollowHandle, FollowRequest, Host, HostSnapshot, LoadRequest, Supervision};
use tokio::time::Instant;

use crate::args::{DialectOptions, Format, WatchArgs};
use crate::config::context::Context;
use crate::config::file::FileError;
use crate::config::locate::{ConfigPath, locate_config};
use crate::config::lock::{load_approval, lock_to_watch};
use crate::config::refusal::StartRefusal;
use crate::host;
use crate::output::console::{Report, Verbosity, WriteOutcome};
use crate::output::{json, sanitize};
use crate::render::events::{EventLine, change_lines, file_event_lines};
use crate::runtime::blocking;
use crate::runtime::exit::Exit;
use crate::runtime::signals::Signals;

/// How long new generations are collected before they are printed as one change. After a save, the new state is
/// published shortly before the event of the save. This delay makes the event appear first.
const COLLECT_TIME: Duration = Duration::from_millis(20);

/// Follows the configuration until a signal arrives or the reader closes standard output.
pub(crate) async fn run(context: &Context, args: WatchArgs, signals: &mut Signals) -> Exit {
    let WatchArgs { file, plain } = args;
    let file = file.unwrap_or_default();
    let ConfigPath { path, is_discovered } = match locate_config(&file) {
        Ok(found) => found,
        Err(message) => return refuse(context, &file, message).await,
    };
    if is_discovered && context.console.verbosity == Verbosity::Normal {
        let note = context.console.note(&format!("reading {}", path.display()));
        context.print(Report::err(note)).await;
    }
    let DialectOptions { dialect, profile } = context.dialect;
    let approval = match load_approval(context, &path).await {
        Ok(approval) => approval,
        Err(error) => return refuse(context, &file, error.message).await,
    };
    let lock = lock_to_watch(context, &path);
    let request = LoadRequest { path, dialect, profile, env_file: context.env_file.clone() };
    let request = FollowRequest { lock, ..FollowRequest::new(vec![request]) };
    if !plain && context.format == Format::Text && has_full_terminal() {
        let mut options = host::options(Supervision::default());
        options.catalog.approval = approval;
        let (options, logs) = screen::with_log_listener(options);
        return host::with_host(Host::start(options), DesiredServers::default(), signals, async |host| {
            screen::run(context, host, request, logs).await
        })
        .await;
    }
    host::with_servers(DesiredServers::default(), (Supervision::default(), approval), signals, async |host| {
        let published = host.snapshot();
        let following = host.follow(request).await;
        print_events(context, host, following, published).await
    })
    .await
}

fn has_full_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
}

/// Prints events until the reader closes standard output.
async fn print_events(
    context: &Context,
    host: &Host,
    mut following: FollowHandle,
    before: Arc<HostSnapshot>,
) -> Exit {
    let mut published = before;
    let mut changes = host.subscribe();
    // The servers were applied by this command before it subscribed, so print the current state as a change too.
    changes.mark_changed();
    let mut due: Option<Instant> = None;
    loop {
        let lines = tokio::select! {
            biased;
            event = following.next() => match event {
                Some(event) => file_event_lines(event),
                // The host is shut down only by this command, so it has failed.
                None => {
                    print(context, &change_lines(&published, &host.snapshot())).await;
                    return Exit::Failure;
                }
            },
            _ = changes.changed(), if due.is_none() => {
                due = Some(Instant::now() + COLLECT_TIME);
                continue;
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                let now = host.snapshot();
                let lines = change_lines(&published, &now);
                published = now;
                lines
            }
        };
        match print(context, &lines).await {
            WriteOutcome::Complete => {}
            WriteOutcome::ReaderGone => return Exit::Success,
            WriteOutcome::Failed => return Exit::Failure,
        }
    }
}

async fn print(context: &Context, lines: &[EventLine]) -> WriteOutcome {
    let text = |line: &EventLine| match context.format {
        Format::Text => line.text(context.console.out_colour),
        Format::Json => json::line(line),
    };
    let (console, text) = (context.console, lines.iter().map(text).collect::<String>());
    blocking(move || console.write(&text)).await
}

async fn refuse(context: &Context, file: &Path, message: String) -> Exit {
    let error = FileError { path: file.display().to_string(), message, help: None };
    let failure = StartRefusal::for_unreadable(error).failure;
    context.fail(Exit::Failure, &sanitize::line(&failure.to_string()), failure.help.as_deref()).await
}
