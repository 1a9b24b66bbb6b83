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
use crate::notifications::resource_subscriptions::Subscribed;
use crate::notifications::subscribe::Wanted;
use crate::notifications::watch::{News, Watching};
use crate::protocol;
use crate::protocol::frame::Request;
use crate::session::caller::Caller;
use crate::session::known_lists::Told;

/// Opens the stream. `held` is dropped with it.
pub(super) async fn listen(
    app: &AppState,
    caller: Caller,
    request: &Request,
    held: impl Send + 'static,
) -> Response {
    let mut wanted = match Wanted::read(request) {
        Ok(wanted) => wanted,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error),
    };
    let told = Mutex::new(Told::of(&app.gateway.listing(&caller.scope)));
    let watching = Watching::new(&app.gateway, &caller.scope);
    let agreed = app.gateway.subscribe_all(&caller, request, &wanted.updates).await;
    let subscribed = Subscribed::of(agreed);
    wanted.updates = subscribed.uris();
    let state = SubscriptionStream {
        id: request.id.clone(),
        queued: vec![wanted.acknowledged()],
        wanted,
        subscribed,
        told,
        watching,
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
    wanted: Wanted,
    subscribed: Subscribed,
    told: Mutex<Told>,
    watching: Watching,
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
            let SubscriptionStream { wanted, queued, .. } = self;
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => {
                    self.is_over = true;
                    queued.push(protocol::response::result(&self.id, wanted.ended().as_bytes()));
                }
                news = self.watching.next(&self.told) => match news {
                    News::Lists(changed) => {
                        let changed = changed.into_iter().rev().filter(|list| wanted.hears(*list));
                        queued.extend(changed.map(|list| wanted.changed(list)));
                    }
                    News::Said(said) => {
                        queued.extend(self.subscribed.updated(&said).map(|uri| wanted.updated(uri)));
                    }
                },
                () = sleep(sse::KEEP_ALIVE) => return Some(sse::keep_alive()),
            }
        }
    }
}
