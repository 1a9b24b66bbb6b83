//! The watch of a running instance, for changed lists and for its end.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::ErrorKind;
use mcp_host_registry::ListKind;
use mcp_host_transport::{CallError, Disconnect, DisconnectReason, ListChangeCounts, SessionCounters};
use tokio::time::Instant;

use crate::error::HostError;
use crate::supervisor::instance::Instance;
use crate::supervisor::list_reads::ListReads;
use crate::supervisor::lists::{ListSnapshot, changed_lists, enabled_lists};
use crate::supervisor::machine::{ConnectionLoss, LossMoment, MachineEvent, StartTicket, saturating_after};
use crate::supervisor::server_error::server_error;
use crate::telemetry::metrics::HostMetrics;

/// The time without announcements after which the lists are read.
const QUIET_PERIOD: Duration = Duration::from_millis(100);

/// The maximum wait for a quiet period.
const MAX_QUIET_WAIT: Duration = Duration::from_secs(1);

/// Waits for the next event of an instance: changed lists, the first server request, or the end of the connection. An
/// outage ends it only if the host is supervised. Dropping the future ends only the wait.
pub(crate) async fn watch(
    ticket: StartTicket,
    instance: &Instance,
    listing: ListSnapshot,
    metrics: &HostMetrics,
    is_supervised: bool,
) -> MachineEvent<Arc<Instance>> {
    tokio::select! {
        biased;
        ended = instance.session.closed() => {
            let moment = loss_moment(&ended, instance.session.counters());
            match moment {
                LossMoment::BetweenCalls => {
                    tracing::info!(server = %ticket.server, reason = %ended, "the connection ended between two calls");
                }
                LossMoment::Other => {
                    tracing::warn!(server = %ticket.server, reason = %ended, "the connection ended");
                }
            }
            let error = disconnect_error(&instance.server(), &ended);
            MachineEvent::Disconnected(ticket, ConnectionLoss { error, moment })
        }
        // A server that nothing restarts stays connected, because a later call may reach it.
        error = instance.wait_for_outage(), if is_supervised => {
            tracing::warn!(server = %ticket.server, reason = %error, "the server cannot be reached");
            let error = disconnect_error(&instance.server(), &error);
            MachineEvent::outage(ticket, error)
        }
        method = instance.wait_for_server_request() => MachineEvent::ServerRequest(ticket, method),
        listing = next_lists(instance, listing, metrics) => MachineEvent::ListsRead(ticket, listing),
    }
}

/// Waits for an announcement or a due retry, then reads the affected lists. Returns all lists.
async fn next_lists(instance: &Instance, mut listing: ListSnapshot, metrics: &HostMetrics) -> ListSnapshot {
    tokio::select! {
        biased;
        announced = wait_for_announcement(instance, &listing) => {
            let ListAnnouncement { kinds, seen, requested } = announced;
            listing.seen = seen;
            let mut listing = read_kinds(instance, listing, &kinds, metrics).await;
            let now = Instant::now();
            listing.pacing = listing.pacing.record_announced_read(requested, now);
            listing.finish_read(&kinds, now)
        }
        // An announcement ends a retry that takes long: a hanging list does not delay the others.
        (kinds, updated) = retry_lists(instance, &listing, metrics) => {
            updated.finish_read(&kinds, Instant::now())
        }
    }
}

/// Waits until failed lists are to be read again, and reads them. Waits forever if there are none.
async fn retry_lists(
    instance: &Instance,
    listing: &ListSnapshot,
    metrics: &HostMetrics,
) -> (Vec<ListKind>, ListSnapshot) {
    wait_for_retry(listing).await;
    let kinds = listing.lists_to_retry();
    let updated = read_kinds(instance, listing.clone(), &kinds, metrics).await;
    (kinds, updated)
}

/// Reads these lists of an instance.
async fn read_kinds(
    instance: &Instance,
    listing: ListSnapshot,
    kinds: &[ListKind],
    metrics: &HostMetrics,
) -> ListSnapshot {
    let server = &instance.server();
    let deadline = saturating_after(Instant::now(), server.spec.limits.startup);
    let reads = ListReads { session: &instance.session, server, kinds, deadline, metrics };
    // Boxed, because it is rare and would enlarge the task of every server.
    Box::pin(reads.run()).await.into_iter().fold(listing, ListSnapshot::with_update)
}

/// An announcement of changed lists.
struct ListAnnouncement {
    /// The changed lists that are enabled.
    kinds: Vec<ListKind>,
    /// The announcements so far.
    seen: ListChangeCounts,
    /// The time of the announcement.
    requested: Instant,
}

/// Waits for an announcement and then for the delay since the last read.
async fn wait_for_announcement(instance: &Instance, listing: &ListSnapshot) -> ListAnnouncement {
    let enabled = enabled_lists(&instance.server());
    let changed = |now| {
        changed_lists(listing.seen, now).into_iter().filter(|it| enabled.contains(it)).collect::<Vec<_>>()
    };
    let mut seen = listing.seen;
    loop {
        seen = wait_until_quiet(instance, seen).await;
        // A disabled list may change without a read.
        if changed(seen).is_empty() {
            continue;
        }
        let requested = Instant::now();
        tokio::time::sleep_until(listing.pacing.earliest_read(requested)).await;
        // List changes during the delay belong to the same read.
        let seen = *instance.session.list_changes().borrow();
        return ListAnnouncement { kinds: changed(seen), seen, requested };
    }
}

/// Waits until failed lists are to be read again. Waits forever if there are none.
async fn wait_for_retry(listing: &ListSnapshot) {
    match listing.pacing.retry_at() {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Waits for a change after `seen` and then for a quiet period, so that a burst costs one read.
async fn wait_until_quiet(instance: &Instance, seen: ListChangeCounts) -> ListChangeCounts {
    let mut changes = instance.session.list_changes();
    if changes.wait_for(|it| *it != seen).await.is_err() {
        // The end of the connection is reported elsewhere.
        std::future::pending::<()>().await;
    }
    let deadline = Instant::now() + MAX_QUIET_WAIT;
    loop {
        let quiet = deadline.min(Instant::now() + QUIET_PERIOD);
        match tokio::time::timeout_at(quiet, changes.changed()).await {
            Ok(Ok(())) if Instant::now() < deadline => {}
            Ok(Err(_)) | Ok(Ok(())) | Err(_) => return *changes.borrow(),
        }
    }
}

/// Returns when a connection ended, as its callers see it.
fn loss_moment(ended: &Disconnect, counters: SessionCounters) -> LossMoment {
    let is_by_server = ended.reason == DisconnectReason::PeerClosed;
    // A call may be sent while the process exits.
    let was_busy = counters.lost_requests > 0 && !ended.is_clean_exit();
    if is_by_server && counters.answered_requests > 0 && !was_busy {
        LossMoment::BetweenCalls
    } else {
        LossMoment::Other
    }
}

/// Returns the error of a lost connection (HD-117, HD-FR023).
fn disconnect_error(server: &ResolvedServer, ended: &dyn std::fmt::Display) -> HostError {
    let opening = CallError::UNAVAILABLE;
    server_error(server, ErrorKind::Connection, format!("{opening}{ended}")).with_opening(opening)
}
