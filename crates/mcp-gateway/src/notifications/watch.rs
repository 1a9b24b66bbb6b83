//! Watches for notifications that belong to no request: changed lists, changed resources, and messages of leased
//! servers.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_host::{DialogId, HostSnapshot, NotificationStream, NotificationStreamItem, ServerNotification};
use mcp_model::LogLevel;
use mcp_transport::ServerEvent;
use tokio::sync::watch;

use crate::access::scope::Scope;
use crate::gateway::GatewayInner;
use crate::session::known_lists::{KnownLists, ListChange};
use crate::session::resource_subscriptions::ResourceSubscriptions;

/// Watches the host for one client.
pub(crate) struct ChangeWatcher {
    gateway: Arc<GatewayInner>,
    scope: Arc<Scope>,
    generations: watch::Receiver<Arc<HostSnapshot>>,
    events: Option<NotificationStream>,
}

/// A change that a client may have to be notified of.
pub(crate) enum Change {
    Lists(Vec<ListChange>),
    /// An event of a server.
    Server(Arc<ServerNotification>),
}

impl ChangeWatcher {
    /// A watcher that begins with the current generation.
    pub(crate) fn new(gateway: &Arc<GatewayInner>, scope: &Arc<Scope>) -> ChangeWatcher {
        let mut generations = gateway.host.subscribe();
        // The client may know an earlier generation, so the current one is compared first.
        generations.mark_changed();
        let events = Some(gateway.host.notifications());
        ChangeWatcher { gateway: Arc::clone(gateway), scope: Arc::clone(scope), generations, events }
    }

    /// The next change. `known` is updated. Pending forever once the host is gone. Cancel-safe.
    pub(crate) async fn next(&mut self, known: &Mutex<KnownLists>) -> Change {
        loop {
            let events = async {
                match &mut self.events {
                    Some(events) => events.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Ok(()) = self.generations.changed() => {
                    self.generations.borrow_and_update();
                    let listing = self.gateway.listing(&self.scope);
                    let changed = known.lock().unwrap_or_else(PoisonError::into_inner).update(&listing);
                    if !changed.is_empty() {
                        return Change::Lists(changed);
                    }
                }
                heard = events => match heard {
                    Some(NotificationStreamItem::Notification(event)) => return Change::Server(event),
                    // Missed resource updates cannot be recovered.
                    Some(NotificationStreamItem::Lagged(count)) => tracing::warn!(count, "server events were missed"),
                    None => self.events = None,
                },
                else => std::future::pending().await,
            }
        }
    }
}

const PREFIX: &str = "notifications/";

/// Whether a server's notification is forwarded unchanged. Those that the gateway and its client exchange
/// themselves, such as progress and changed lists, are not.
pub(crate) fn is_forwarded(method: &str, params: &mcp_model::RawJson) -> bool {
    const OURS: [&str; 11] = [
        "message",
        "progress",
        "cancelled",
        "initialized",
        "roots/list_changed",
        "tools/list_changed",
        "prompts/list_changed",
        "resources/list_changed",
        "resources/updated",
        "subscriptions/acknowledged",
        "",
    ];
    method.strip_prefix(PREFIX).is_some_and(|it| !OURS.contains(&it)) && params.is_object()
}

/// The method and parameters that a session gets for a server event. Events of running calls are sent elsewhere, and
/// events without an owner are dropped, because they may concern another client.
pub(crate) fn session_notification(
    event: &ServerNotification,
    subscribed: &ResourceSubscriptions,
    dialog: &DialogId,
    from: Option<LogLevel>,
) -> Option<(String, String)> {
    if let Some(uri) = subscribed.updated(event) {
        let params = format!(r#"{{"uri":{}}}"#, crate::protocol::response::text(uri));
        return Some(("notifications/resources/updated".to_owned(), params));
    }
    let is_own = event.owner.is_none() && event.dialog.as_ref() == Some(dialog);
    match &event.event {
        ServerEvent::Log(log) if is_own => {
            let loud = from.is_none_or(|from| log.level.is_none_or(|it| it >= from));
            loud.then(|| ("notifications/message".to_owned(), log.raw.as_str().to_owned()))
        }
        ServerEvent::Notification { method, params }
            if is_own
                && is_forwarded(method, params.as_ref().unwrap_or(&mcp_model::RawJson::empty_object())) =>
        {
            let params = params.as_ref().map_or("{}", |it| it.as_str());
            Some((method.clone(), params.to_owned()))
        }
        _ => None,
    }
}
