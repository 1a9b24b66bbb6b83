//! Watches for notifications that belong to no request: changed lists, changed resources, and messages of leased
//! servers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_host_model::{Method, MethodName, RawJson, ServerId};
use mcp_host_runtime::{
    HostSnapshot, NotificationStream, NotificationStreamItem, ServerNotification, ServerState,
};
use mcp_host_transport::ServerEvent;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::access::scope::Scope;
use crate::gateway::GatewayInner;
use crate::lists::definitions::CatalogList;
use crate::lists::listing::Audience;
use crate::protocol::message_writer::{json_string, write_notification};
use crate::protocol::task_ids::task_id;
use crate::session::client_session::ClientSession;
use crate::session::known_lists::KnownLists;
use crate::session::resource_origins::OriginKey;
use crate::session::resource_subscriptions::ResourceSubscriptions;

/// How long the lists must be unchanged before a client is notified.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// How long a client is not notified at most, while a server restarts or the lists keep changing.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(5);

/// Watches the host for changes that concern one client.
pub(crate) struct ChangeWatcher {
    gateway: Arc<GatewayInner>,
    scope: Arc<Scope>,
    audience: Audience,
    /// The snapshots of the host.
    snapshots: watch::Receiver<Arc<HostSnapshot>>,
    /// The notifications of servers; `None` once the host has ended.
    events: Option<NotificationStream>,
    /// The snapshots that the client was not notified of, if any.
    pending: Option<PendingChange>,
}

/// Snapshots that are compared with the client's lists once they have settled: a restart of a server removes its items
/// and lists them again.
#[derive(Debug, Clone, Copy)]
struct PendingChange {
    /// The time of the first one.
    first: Instant,
    /// When the lists are compared.
    due: Instant,
}

impl PendingChange {
    /// A further snapshot. While a server restarts, its items are expected back.
    fn extend(pending: Option<PendingChange>, is_restarting: bool, now: Instant) -> PendingChange {
        let first = pending.map_or(now, |pending| pending.first);
        let due = if is_restarting { first + MAX_SETTLE_TIME } else { now + SETTLE_TIME };
        PendingChange { first, due: due.min(first + MAX_SETTLE_TIME) }
    }
}

/// A change that a client may have to be notified of.
pub(crate) enum WatchedChange {
    /// Lists have changed.
    Lists(Vec<CatalogList>),
    /// A server has sent a notification.
    Notification(Arc<ServerNotification>),
}

impl ChangeWatcher {
    /// A watcher that begins with the current generation.
    pub(crate) fn new(gateway: &Arc<GatewayInner>, scope: &Arc<Scope>, audience: Audience) -> ChangeWatcher {
        let mut snapshots = gateway.host.subscribe();
        // The client may know an earlier generation, so the current one is compared first.
        snapshots.mark_changed();
        let events = Some(gateway.host.notifications());
        let (gateway, scope) = (Arc::clone(gateway), Arc::clone(scope));
        ChangeWatcher { gateway, scope, audience, snapshots, events, pending: None }
    }

    /// The next change. `known` is updated. Never resolves once the host has ended. Cancel-safe.
    pub(crate) async fn next(&mut self, known: &Mutex<KnownLists>) -> WatchedChange {
        loop {
            let due = self.pending.map(|pending| pending.due);
            let settled = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let events = async {
                match &mut self.events {
                    Some(events) => events.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Ok(()) = self.snapshots.changed() => {
                    let snapshot = Arc::clone(&self.snapshots.borrow_and_update());
                    let is_restarting = self.is_restarting(&snapshot);
                    self.pending = Some(PendingChange::extend(self.pending, is_restarting, Instant::now()));
                }
                () = settled => {
                    self.pending = None;
                    let listing = self.gateway.listing(&self.scope, self.audience);
                    let changed = known.lock().update(&listing);
                    if !changed.is_empty() {
                        return WatchedChange::Lists(changed);
                    }
                }
                event = events => match event {
                    Some(NotificationStreamItem::Notification(event)) => return WatchedChange::Notification(event),
                    // Missed resource updates cannot be recovered.
                    Some(NotificationStreamItem::Lagged(count)) => {
                        tracing::warn!(count, "a client is too slow and misses notifications of servers");
                    },
                    None => self.events = None,
                },
                else => std::future::pending().await,
            }
        }
    }

    /// Whether a server of the scope restarts.
    fn is_restarting(&self, snapshot: &HostSnapshot) -> bool {
        snapshot.servers.iter().any(|status| {
            status.state == ServerState::Restarting
                && status.id.id().is_some_and(|id| self.scope.may_show(id, |_| true))
        })
    }

    /// The exposed URI of a changed resource, if a subscription covers it. Its server is remembered.
    pub(crate) fn updated_uri<'a>(
        &self,
        subscriptions: &ResourceSubscriptions,
        client: &OriginKey,
        event: &'a ServerNotification,
    ) -> Option<Cow<'a, str>> {
        let uri = subscriptions.updated_uri(event)?;
        self.gateway.resource_origins.claim(client, &uri, &event.server);
        Some(uri)
    }

    /// The notifications that a session gets about a change. Updates of subscribed resources are always sent. Of other
    /// events, those with an owner belong to a call, which sends them itself. Those without an owner are sent if they
    /// are from an instance of the session's dialog. Others may concern another client: log messages of shared
    /// instances are sent if there is none, and if the client has set a level.
    pub(crate) fn session_notifications(
        &self,
        session: &ClientSession,
        change: &WatchedChange,
    ) -> Vec<Bytes> {
        match change {
            WatchedChange::Lists(changed) => changed
                .iter()
                .map(|list| write_notification(list.change_notification().as_str(), "{}"))
                .collect(),
            WatchedChange::Notification(event) => {
                self.convert_notification(session, event).into_iter().collect()
            }
        }
    }

    /// Converts a server's notification into one for a session, if the session gets it.
    fn convert_notification(&self, session: &ClientSession, event: &ServerNotification) -> Option<Bytes> {
        let client = OriginKey::Session(session.dialog.id().clone());
        if let Some(uri) = self.updated_uri(&session.subscriptions, &client, event) {
            let params = format!(r#"{{"uri":{}}}"#, json_string(&uri));
            return Some(write_notification(Method::ResourceUpdated.as_str(), &params));
        }
        if let Some((server, status)) = find_task_status(event, session) {
            let sealed = self.gateway.task_id_sealer.seal_ids_in(&session.principal, server, status)?;
            return Some(write_notification(Method::TaskStatus.as_str(), sealed.as_str()));
        }
        let is_own_instance = event.dialog.as_ref() == Some(session.dialog.id());
        if event.owner.is_some() || !(is_own_instance || self.is_shared_log(session, event)) {
            return None;
        }
        match &event.event {
            ServerEvent::Log(log) => {
                let threshold = session.log_level();
                let is_wanted =
                    threshold.is_none_or(|threshold| log.level.is_none_or(|level| level >= threshold));
                is_wanted.then(|| write_notification(Method::LogMessage.as_str(), log.raw.as_str()))
            }
            ServerEvent::Notification { method, params } => {
                let params = params.clone().unwrap_or_else(RawJson::empty_object);
                is_forwarded(method, &params).then(|| write_notification(method.as_str(), params.as_str()))
            }
            _ => None,
        }
    }
}

impl ChangeWatcher {
    /// Whether this is a log message of a shared instance that the session may get.
    fn is_shared_log(&self, session: &ClientSession, event: &ServerNotification) -> bool {
        event.dialog.is_none()
            && matches!(event.event, ServerEvent::Log(_))
            && session.log_level().is_some()
            && session.principal.may_see_shared_activity()
            && session.scope.may_show(&event.server, |_| true)
    }
}

/// Returns the server and the parameters of a notification, if it is about a task of this session. A server may send it
/// on the stream of any call, so its owner does not matter.
fn find_task_status<'a>(
    event: &'a ServerNotification,
    session: &ClientSession,
) -> Option<(&'a ServerId, &'a RawJson)> {
    let ServerEvent::Notification { method, params: Some(params) } = &event.event else { return None };
    let is_own_dialog = event.dialog.is_none() || event.dialog.as_ref() == Some(session.dialog.id());
    if *method != Method::TaskStatus || !is_own_dialog || !params.is_object() {
        return None;
    }
    session.known_tasks.contains(&event.server, &task_id(params)?).then_some((&event.server, params))
}

/// Whether a server's notification is forwarded unchanged. Those that the gateway and its client exchange
/// themselves, such as progress and changed lists, are not, and neither are those that contain a server's id of a task.
pub(crate) fn is_forwarded(method: &MethodName, params: &RawJson) -> bool {
    let is_forwarded = match method {
        MethodName::Known(method) => *method == Method::ElicitationComplete,
        MethodName::Other(name) => name.strip_prefix("notifications/").is_some_and(|name| !name.is_empty()),
    };
    is_forwarded && params.is_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    // RPT-207
    #[test]
    fn change_is_due_when_the_lists_have_settled() {
        let begin = Instant::now();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        // Snapshots as the time, and whether a server restarts.
        let check = |snapshots: &[(u64, bool)], want: u64| {
            let change = |pending, snapshot: &(u64, bool)| {
                Some(PendingChange::extend(pending, snapshot.1, at(snapshot.0)))
            };
            assert_eq!(snapshots.iter().fold(None, change).unwrap().due, at(want), "{snapshots:?}");
        };
        check(&[(0, false)], 50);
        check(&[(0, false), (40, false)], 90);
        check(&[(0, true)], 5000);
        check(&[(0, true), (1200, false)], 1250);
        check(&[(0, true), (1200, false), (1210, true)], 5000);
        check(&[(0, false), (4980, false)], 5000);
    }
}
