//! `subscriptions/listen`: a stream on which a client of the era without sessions hears what has changed, as far as he
//! asked for it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use mcp_model::RawJson;
use tokio_util::sync::CancellationToken;

use super::events;
use super::post::refusal;
use super::server::Door;
use super::wire::Response;
use crate::notifications::resource_subscriptions::Subscribed;
use crate::notifications::subscribe::Wanted;
use crate::notifications::watch::{News, Watching};
use crate::protocol::frame::Request;
use crate::protocol::response;
use crate::session::caller::Caller;
use crate::session::known_lists::Told;

/// Opens the stream. `held` is kept as long as it is open.
pub(super) async fn stream(
    door: &Arc<Door>,
    caller: Caller,
    request: &Request,
    held: impl Send + 'static,
) -> Response {
    let mut wanted = match Wanted::read(request) {
        Ok(wanted) => wanted,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error),
    };
    let told = Mutex::new(Told::of(&door.gateway.listing(&caller.scope)));
    let watching = Watching::new(&door.gateway, &caller.scope);
    let agreed = door.gateway.subscribe_all(&caller, request, &wanted.updates).await;
    let subscribed = Subscribed::of(agreed);
    wanted.updates = subscribed.uris();
    let waiting = vec![wanted.acknowledged()];
    let over = door.over.clone();
    let state = Listening {
        id: request.id.clone(),
        wanted,
        subscribed,
        told,
        watching,
        waiting,
        over,
        is_over: false,
        _held: held,
    };
    events::response(stream::unfold(state, |mut state| async {
        let event = state.next().await?;
        Some((event, state))
    }))
}

struct Listening<H> {
    id: RawJson,
    wanted: Wanted,
    subscribed: Subscribed,
    told: Mutex<Told>,
    watching: Watching,
    /// The next one last.
    waiting: Vec<Bytes>,
    over: CancellationToken,
    is_over: bool,
    _held: H,
}

impl<H> Listening<H> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.waiting.pop() {
                return Some(events::event(&message));
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                () = self.over.cancelled() => {
                    self.is_over = true;
                    self.waiting.push(response::result(&self.id, self.wanted.ended().as_bytes()));
                }
                news = self.watching.next(&self.told) => match news {
                    News::Lists(changed) => {
                        let wanted = changed.into_iter().rev().filter(|it| self.wanted.hears(*it));
                        self.waiting.extend(wanted.map(|it| self.wanted.changed(it)));
                    }
                    News::Said(said) => {
                        self.waiting.extend(self.subscribed.updated(&said).map(|it| self.wanted.updated(it)));
                    }
                },
                () = tokio::time::sleep(events::PULSE) => return Some(events::pulse()),
            }
        }
    }
}
