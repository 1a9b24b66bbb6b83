//! `watch`: runs what a configuration says and shows what becomes of it, until somebody ends it: on a terminal as a
//! view that fills it, else line by line.

mod draw;
pub(super) mod lines;
mod screen;
mod view;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_host::{
    DesiredServers, FollowHandle, FollowRequest, Host, HostOptions, HostSnapshot, LoadRequest, Supervision,
};

use tokio::time::Instant;

use crate::args::{Format, Reader};
use crate::commands::refused::Refusal;
use crate::context::{Context, blocking};
use crate::exit::Exit;
use crate::hosted;
use crate::locked::{approval, followed};
use crate::output::console::{Chatter, Report, Written};
use crate::output::{json, paint, plain};
use crate::signals::Signals;
use crate::source::Unreadable;
use crate::target::{Target, locate};
use lines::Line;

/// How long generations are gathered before they are told as one. What a save leads to is published a moment before
/// the save itself is told, and should be read after it.
const GATHERED: Duration = Duration::from_millis(20);

/// In which way it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// On a terminal so that it is filled.
    Any,
    /// Line by line.
    Plain,
}

/// Follows the file until a signal comes, or nobody reads any more.
pub(crate) async fn run(context: &Context, file: &Path, manner: Manner, signals: &mut Signals) -> Exit {
    let Target { path, found } = match locate(file) {
        Ok(target) => target,
        Err(message) => return refuse(context, file, message).await,
    };
    if found && context.console.chatter == Chatter::Usual {
        let note = paint::paint(context.console.err, paint::NOTE, "note");
        let err = format!("{note}: reading {}\n", plain::line(&path.display().to_string()));
        context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    }
    let Reader { dialect, profile } = context.reader;
    let approval = match approval(context, &path).await {
        Ok(approval) => approval,
        Err(unreadable) => return refuse(context, file, unreadable.message).await,
    };
    let lock = followed(context, &path);
    let request = LoadRequest { path, dialect, profile, env_file: context.env_file.clone() };
    let request = FollowRequest { lock, ..FollowRequest::new(vec![request]) };
    if fills(context, manner) {
        let (options, logs) =
            screen::listening(HostOptions { approval, ..hosted::options(Supervision::default()) });
        return hosted::around(Host::start(options), DesiredServers::default(), signals, async |host| {
            screen::run(context, host, request, logs).await
        })
        .await;
    }
    hosted::with(DesiredServers::default(), (Supervision::default(), approval), signals, async |host| {
        let published = host.snapshot();
        let following = host.follow(request).await;
        tell_all(context, host, following, published).await
    })
    .await
}

/// Is there a terminal to fill, and is that wanted?
fn fills(context: &Context, manner: Manner) -> bool {
    let is_able = std::env::var_os("TERM").is_some_and(|it| it != "dumb");
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match (manner, context.format) {
        (Manner::Any, Format::Text) => is_able && terminal,
        (Manner::Any, Format::Json) | (Manner::Plain, _) => false,
    }
}

/// Tells what happens until nobody reads any more.
async fn tell_all(
    context: &Context,
    host: &Host,
    mut following: FollowHandle,
    before: Arc<HostSnapshot>,
) -> Exit {
    let mut published = before;
    let mut changes = host.subscribe();
    // What there is already was published by what this has begun.
    changes.mark_changed();
    let mut due: Option<Instant> = None;
    loop {
        let lines = tokio::select! {
            biased;
            event = following.next() => match event {
                Some(event) => lines::of_event(event),
                // Nobody but us shuts the host down, so that it has failed.
                None => {
                    tell(context, &lines::between(&published, &host.snapshot())).await;
                    return Exit::Wrong;
                }
            },
            _ = changes.changed(), if due.is_none() => {
                due = Some(Instant::now() + GATHERED);
                continue;
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                let now = host.snapshot();
                let lines = lines::between(&published, &now);
                published = now;
                lines
            }
        };
        match tell(context, &lines).await {
            Written::All => {}
            Written::ReaderGone => return Exit::Done,
            Written::Failed => return Exit::Wrong,
        }
    }
}

async fn tell(context: &Context, lines: &[Line]) -> Written {
    let one = |it: &Line| match context.format {
        Format::Text => it.text(context.console.out),
        Format::Json => json::line(it),
    };
    let (console, text) = (context.console, lines.iter().map(one).collect::<String>());
    blocking(move || console.write(&text)).await
}

async fn refuse(context: &Context, file: &Path, message: String) -> Exit {
    let unreadable = Unreadable { path: file.display().to_string(), message, help: None };
    let failure = Refusal::unreadable(unreadable).failure;
    let err = paint::error(context.console.err, &plain::line(&failure.to_string()), failure.help.as_deref());
    context.tell(Report { out: String::new(), err, exit: Exit::Wrong, after: String::new() }).await
}
