//! The stream on which a session hears what belongs to no request of its own.
//!
//! There is one for each session: who opens another one closes the first, and with `Last-Event-ID` goes on where that one
//! broke off, as far as it is kept. What came up while nobody listened is not kept, but that lists have changed is told
//! when somebody does.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, StatusCode};
use mcp_model::ProtocolVersion;
use tokio_util::sync::CancellationToken;

use super::events;
use super::headers::{self, Accepts};
use super::modern::Place;
use super::post::{self, busy, invalid, no_session, refusal};
use super::routes::Server;
use super::server::Door;
use super::wire::{Head, Name, Response};
use crate::notifications::watch::{News, Watching, told};
use crate::protocol::response;
use crate::session::event_log::EventId;
use crate::session::outbound_queue::{Inlet, Outlet, outlet};
use crate::session::state::Session;

/// Opens the stream.
pub(super) fn get(door: &Arc<Door>, server: Server, head: &Head) -> Response {
    if head.method == Method::HEAD {
        // It asks for no stream, and must not take the place of one.
        return refusal(
            StatusCode::METHOD_NOT_ALLOWED,
            None,
            &invalid("there is nothing to say of a stream"),
        );
    }
    let visitor = match post::visitor(door, head, server) {
        Ok(visitor) => visitor,
        Err(refusal) => return refusal,
    };
    let Some(id) = head.fields.text(Name::Session) else {
        let error = invalid("a GET belongs to a session: `Mcp-Session-Id` is missing");
        return refusal(StatusCode::METHOD_NOT_ALLOWED, None, &error);
    };
    let Some(session) = post::session(door, &visitor, id) else { return no_session() };
    if headers::accepts(&head.fields) == Accepts::Json {
        let error = invalid("`Accept` must hold `text/event-stream`");
        return refusal(StatusCode::NOT_ACCEPTABLE, None, &error);
    }
    let Some(place) = Place::of_stream(door, &visitor.principal) else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, None, &busy());
    };
    let last = head.fields.text(Name::LastEventId).and_then(|it| it.parse().ok());
    let (out, inlet) = outlet(door.bounds());
    let replaced = session.listens(out.clone());
    let watching = Watching::new(&door.gateway, &session.scope);
    let heard = session.kept.begin(last);
    let state =
        Listening { session, inlet, watching, heard, way: out, replaced, begun: false, _place: place };
    events::response(stream::unfold(state, |mut state| async {
        let event = state.next().await?;
        Some((event, state))
    }))
}

struct Listening {
    session: Arc<Session>,
    inlet: Inlet,
    watching: Watching,
    /// The last message that was sent.
    heard: EventId,
    /// The stream's own way in, to recognise it by.
    way: Outlet,
    /// Cancelled when another stream takes its place.
    replaced: CancellationToken,
    begun: bool,
    _place: Place,
}

impl Listening {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            // Whoever waits for the first bytes of a stream to know that it is there has them.
            self.begun = true;
            // Older clients take an event without data for a message that cannot be read.
            let is_primed = self.session.version >= ProtocolVersion::V2025_11_25;
            return Some(if is_primed { events::beginning(self.heard) } else { events::pulse() });
        }
        loop {
            if self.session.over.is_cancelled() || self.replaced.is_cancelled() {
                return None;
            }
            if let Some((id, message)) = self.session.kept.after(self.heard) {
                self.heard = id;
                return Some(events::numbered(id, &message));
            }
            tokio::select! {
                biased;
                () = self.session.over.cancelled() => return None,
                () = self.replaced.cancelled() => return None,
                Some(message) = self.inlet.next() => self.session.kept.add(message),
                () = self.session.kept.more() => {}
                news = self.watching.next(&self.session.told) => match news {
                    News::Lists(changed) => {
                        let told = changed.iter().map(|it| response::notification(it.method(), "{}"));
                        told.for_each(|it| self.session.kept.add(it));
                    }
                    News::Said(said) => {
                        let Session { subscriptions, dialog, kept, .. } = &*self.session;
                        let told = told(&said, subscriptions, dialog.id(), self.session.log_level());
                        let told = told.map(|(method, params)| response::notification(&method, &params));
                        told.into_iter().for_each(|it| kept.add(it));
                    }
                },
                () = tokio::time::sleep(events::PULSE) => return Some(events::pulse()),
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.listens_no_more(&self.way);
        // What was not sent any more whoever takes its place sends.
        while let Some(message) = self.inlet.take() {
            self.session.kept.add(message);
        }
        self.session.touch(tokio::time::Instant::now());
    }
}
