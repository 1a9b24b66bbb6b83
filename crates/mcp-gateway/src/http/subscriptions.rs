//! `subscriptions/listen`: the notification stream of the modern era.

use std::sync::Mutex;

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use mcp_model::RawJson;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::errors::refusal;
use super::response::Response;
use super::server::AppState;
use super::sse;
use crate::notifications::subscribe::SubscriptionRequest;
use crate::notifications::watch::{Change, ChangeWatcher};
use crate::protocol;
use crate::protocol::frame::Request;
use crate::session::caller::Caller;
use crate::session::known_lists::KnownLists;
use crate::session::resource_subscriptions::ResourceSubscriptions;

/// Opens the stream. `held` is dropped with it.
pub(super) async fn listen(
    app: &AppState,
    caller: Caller,
    request: &Request,
    held: impl Send + 'static,
) -> Response {
    let mut subscription = match SubscriptionRequest::read(request) {
        Ok(subscription) => subscription,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error),
    };
    let known_lists = Mutex::new(KnownLists::of(&app.gateway.listing(&caller.scope)));
    let watcher = ChangeWatcher::new(&app.gateway, &caller.scope);
    let accepted = app.gateway.subscribe_all(&caller, request, &subscription.resource_uris).await;
    let subscribed = ResourceSubscriptions::of(accepted);
    subscription.resource_uris = subscribed.uris();
    let state = SubscriptionStream {
        id: request.id.clone(),
        queued: vec![subscription.acknowledgement()],
        subscription,
        subscribed,
        known_lists,
        watcher,
        shutdown: app.shutdown.clone(),
        is_over: false,
        _held: held,
    };
    sse::response(stream::unfold(state, |mut state| async {
        let event = state.next().await?;
        Some((event, state))
    }))
}

struct SubscriptionStream<H> {
    id: RawJson,
    subscription: SubscriptionRequest,
    subscribed: ResourceSubscriptions,
    known_lists: Mutex<KnownLists>,
    watcher: ChangeWatcher,
    /// Messages to send, the next one last.
    queued: Vec<Bytes>,
    shutdown: CancellationToken,
    is_over: bool,
    _held: H,
}

impl<H> SubscriptionStream<H> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.queued.pop() {
                return Some(sse::event(&message));
            }
            if self.is_over {
                return None;
            }
            let SubscriptionStream { subscription, queued, .. } = self;
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => {
                    self.is_over = true;
                    queued.push(protocol::response::result(&self.id, subscription.end_result().as_bytes()));
                }
                change = self.watcher.next(&self.known_lists) => match change {
                    Change::Lists(changed) => {
                        let changed = changed.into_iter().rev().filter(|list| subscription.includes(*list));
                        queued.extend(changed.map(|list| subscription.list_changed(list)));
                    }
                    Change::Server(event) => {
                        queued.extend(self.subscribed.updated(&event).map(|uri| subscription.resource_updated(uri)));
                    }
                },
                () = sleep(sse::KEEP_ALIVE) => return Some(sse::keep_alive()),
            }
        }
    }
}
