//! Waits beside a running server for what it does on its own: announce other lists, or end.

use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::Kind;
use mcp_transport::{Changes, Ended};
use tokio::time::Instant;

use crate::Failure;
use crate::connector::{about, kinds, read_within};
use crate::instance::Instance;
use crate::listed::{Listed, changed};
use crate::machine::{Event, Ticket};

/// How long a server must keep quiet before its lists are read again.
const QUIET: Duration = Duration::from_millis(100);

/// How long a server that does not keep quiet is waited for.
const LONGEST: Duration = Duration::from_secs(1);

/// Resolves with the server's next news: other lists, or its end. Dropping it ends the wait, and nothing else.
pub(crate) async fn follow(
    ticket: Ticket,
    instance: &Instance,
    server: &ResolvedServer,
    listed: Listed,
) -> Event<Arc<Instance>> {
    tokio::select! {
        biased;
        ended = instance.session.closed() => {
            tracing::warn!(server = %ticket.server, reason = %ended, "connection over");
            Event::Died(ticket, lost(server, &ended))
        }
        listed = next_lists(instance, server, listed) => Event::Lists(ticket, listed),
    }
}

async fn next_lists(instance: &Instance, server: &ResolvedServer, mut listed: Listed) -> Listed {
    loop {
        let now = settled(instance, listed.seen).await;
        let wanted = kinds(server);
        let again: Vec<_> = changed(listed.seen, now).into_iter().filter(|it| wanted.contains(it)).collect();
        listed.seen = now;
        // A list that is not shown may change as often as it likes.
        if again.is_empty() {
            continue;
        }
        let deadline = Instant::now() + server.spec.limits.startup;
        for kind in again {
            listed = listed.with(read_within(&instance.session, server, kind, deadline).await);
        }
        return listed;
    }
}

/// Waits for an announcement after `seen`, and then for a pause, so that a storm of them costs one reading.
async fn settled(instance: &Instance, seen: Changes) -> Changes {
    let mut changes = instance.session.changes();
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
fn lost(server: &ResolvedServer, ended: &Ended) -> Failure {
    about(server, Kind::Connection, format!("the server is no longer available: {ended}"))
}
