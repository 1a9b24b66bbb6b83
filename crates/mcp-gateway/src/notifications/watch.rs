//! What a client hears that belongs to no request of his: changed lists, changed resources, and what servers say that
//! are his alone.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_host::{DialogId, HostSnapshot, NotificationStream, NotificationStreamItem, ServerNotification};
use mcp_model::LogLevel;
use mcp_transport::ServerEvent;
use tokio::sync::watch;

use crate::access::scope::Scope;
use crate::gateway::Inner;
use crate::notifications::resource_subscriptions::Subscribed;
use crate::session::known_lists::{Changed, Told};

/// Somebody who wants to hear of changes.
pub(crate) struct Watching {
    gateway: Arc<Inner>,
    scope: Arc<Scope>,
    generations: watch::Receiver<Arc<HostSnapshot>>,
    hearing: Option<NotificationStream>,
}

/// Something to tell.
pub(crate) enum News {
    /// Lists have changed.
    Lists(Vec<Changed>),
    /// A server has said this.
    Said(Arc<ServerNotification>),
}

impl Watching {
    /// From the next generation on.
    pub(crate) fn new(gateway: &Arc<Inner>, scope: &Arc<Scope>) -> Watching {
        let mut generations = gateway.host.subscribe();
        // What has changed before is told as well, for the client's knowledge may be older.
        generations.mark_changed();
        let hearing = Some(gateway.host.notifications());
        Watching { gateway: Arc::clone(gateway), scope: Arc::clone(scope), generations, hearing }
    }

    /// What is new since `told`; waits until something is. Never resolves once the host is gone. Cancel-safe.
    pub(crate) async fn next(&mut self, told: &Mutex<Told>) -> News {
        loop {
            let hearing = async {
                match &mut self.hearing {
                    Some(hearing) => hearing.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Ok(()) = self.generations.changed() => {
                    self.generations.borrow_and_update();
                    let listing = self.gateway.listing(&self.scope);
                    let changed = told.lock().unwrap_or_else(PoisonError::into_inner).tell(&listing);
                    if !changed.is_empty() {
                        return News::Lists(changed);
                    }
                }
                heard = hearing => match heard {
                    Some(NotificationStreamItem::Notification(said)) => return News::Said(said),
                    // What was missed of resources cannot be told; their servers may say it again.
                    Some(NotificationStreamItem::Lagged(count)) => tracing::warn!(count, "what servers said was missed"),
                    None => self.hearing = None,
                },
                else => std::future::pending().await,
            }
        }
    }
}

/// What the name of a notification begins with.
const PREFIX: &str = "notifications/";

/// May a server's notification go on to a client as it is? It must be one, and none of those that mean something between the
/// client and the gateway.
pub(crate) fn passes(method: &str, params: &mcp_model::RawJson) -> bool {
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

/// What a client is told of what a server said: a method, and parameters as JSON. What belongs to a call in flight has
/// another way to its client, and what belongs to nobody in particular goes to nobody: it may be about another client.
pub(crate) fn told(
    said: &ServerNotification,
    subscribed: &Subscribed,
    dialog: &DialogId,
    from: Option<LogLevel>,
) -> Option<(String, String)> {
    if let Some(uri) = subscribed.updated(said) {
        let params = format!(r#"{{"uri":{}}}"#, crate::protocol::response::text(uri));
        return Some(("notifications/resources/updated".to_owned(), params));
    }
    let is_own = said.owner.is_none() && said.dialog.as_ref() == Some(dialog);
    match &said.event {
        ServerEvent::Log(log) if is_own => {
            let loud = from.is_none_or(|from| log.level.is_none_or(|it| it >= from));
            loud.then(|| ("notifications/message".to_owned(), log.raw.as_str().to_owned()))
        }
        ServerEvent::Notification { method, params }
            if is_own && passes(method, params.as_ref().unwrap_or(&mcp_model::RawJson::empty_object())) =>
        {
            let params = params.as_ref().map_or("{}", |it| it.as_str());
            Some((method.clone(), params.to_owned()))
        }
        _ => None,
    }
}
