//! Waits beside a running server for what it does on its own: announce other lists, or end.

use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::ErrorKind;
use mcp_registry::ListKind;
use mcp_transport::{Disconnect, ListChangeCounts};
use tokio::time::Instant;

use crate::failure::HostError;
use crate::metrics::Meter;
use crate::supervisor::connector::{about, kinds, read_within};
use crate::supervisor::instance::Instance;
use crate::supervisor::lists::{Listed, changed};
use crate::supervisor::machine::{Event, Ticket, later};

/// How long a server must keep quiet before its lists are read again.
const QUIET: Duration = Duration::from_millis(100);

/// How long a server that does not keep quiet is waited for.
const LONGEST: Duration = Duration::from_secs(1);

/// Resolves with the server's next news: other lists, or its end. Dropping it ends the wait, and nothing else.
pub(crate) async fn follow(
    ticket: Ticket,
    instance: &Instance,
    listed: Listed,
    meter: &Meter,
) -> Event<Arc<Instance>> {
    tokio::select! {
        biased;
        ended = instance.session.closed() => {
            tracing::warn!(server = %ticket.server, reason = %ended, "connection over");
            Event::Died(ticket, lost(&instance.server(), &ended))
        }
        listed = next_lists(instance, listed, meter) => Event::Lists(ticket, listed),
    }
}

/// Waits until lists were announced anew, or it is time to try again those that could not be read; reads just these.
async fn next_lists(instance: &Instance, mut listed: Listed, meter: &Meter) -> Listed {
    let (kinds, asked) = tokio::select! {
        biased;
        announced = announced(instance, &listed) => {
            let Announced { kinds, seen, asked } = announced;
            listed.seen = seen;
            (kinds, Some(asked))
        }
        () = retry(&listed) => (listed.unread(), None),
    };
    let server = &instance.server();
    let deadline = later(Instant::now(), server.spec.limits.startup);
    for kind in &kinds {
        // Boxed, for it is rare, and each server's task would be as large all the time.
        let read = Box::pin(read_within(&instance.session, server, *kind, deadline, meter)).await;
        listed = listed.with(read);
    }
    let now = Instant::now();
    if let Some(asked) = asked {
        listed.pace = listed.pace.answered(asked, now);
    }
    listed.after(&kinds, now)
}

/// Lists that a server has announced, of those that are shown.
struct Announced {
    kinds: Vec<ListKind>,
    seen: ListChangeCounts,
    asked: Instant,
}

/// Waits for announcements, and then for the pause after the last reading.
async fn announced(instance: &Instance, listed: &Listed) -> Announced {
    let shown = kinds(&instance.server());
    let anew =
        |now| changed(listed.seen, now).into_iter().filter(|it| shown.contains(it)).collect::<Vec<_>>();
    let mut seen = listed.seen;
    loop {
        seen = settled(instance, seen).await;
        // A list that is not shown may change as often as it likes.
        if anew(seen).is_empty() {
            continue;
        }
        let asked = Instant::now();
        tokio::time::sleep_until(listed.pace.begin(asked)).await;
        // What was announced during the pause belongs to the same reading.
        let seen = *instance.session.list_changes().borrow();
        return Announced { kinds: anew(seen), seen, asked };
    }
}

/// Waits until it is time to try again what could not be read; for ever, where everything could be.
async fn retry(listed: &Listed) {
    match listed.pace.retry() {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Waits for an announcement after `seen`, and then for a pause, so that a storm of them costs one reading.
async fn settled(instance: &Instance, seen: ListChangeCounts) -> ListChangeCounts {
    let mut changes = instance.session.list_changes();
    if changes.wait_for(|it| *it != seen).await.is_err() {
        // The connection is over, and its end is told by another way.
        std::future::pending::<()>().await;
    }
    let deadline = Instant::now() + LONGEST;
    loop {
        let quiet = deadline.min(Instant::now() + QUIET);
        match tokio::time::timeout_at(quiet, changes.changed()).await {
            Ok(Ok(())) if Instant::now() < deadline => {}
            Ok(Err(_)) | Ok(Ok(())) | Err(_) => return *changes.borrow(),
        }
    }
}

/// A connection that was lost, for its user (HD-117, HD-FR023).
fn lost(server: &ResolvedServer, ended: &Disconnect) -> HostError {
    about(server, ErrorKind::Connection, format!("the server is no longer available: {ended}"))
}
