//! The stream on which a session hears what belongs to no request of its own.
//!
//! There is one for each session: who opens another one closes the first. What was said while nobody listened is not
//! kept, but that lists have changed is told when somebody does. `Last-Event-ID` means nothing here.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, StatusCode};
use tokio_util::sync::CancellationToken;

use super::body::Response;
use super::events;
use super::headers::{self, Accepts, SESSION};
use super::modern::Place;
use super::post::{self, busy, invalid, no_session, refusal};
use super::routes::{HttpRequest, Server};
use super::server::Door;
use crate::outlet::{Inlet, Outlet, outlet};
use crate::reply;
use crate::session::Session;
use crate::watching::{News, Watching, told};

/// Opens the stream.
pub(super) fn get(door: &Arc<Door>, server: Server, request: HttpRequest) -> Response {
    let (parts, _) = request.into_parts();
    if parts.method == Method::HEAD {
        // It asks for no stream, and must not take the place of one.
        return refusal(
            StatusCode::METHOD_NOT_ALLOWED,
            None,
            &invalid("there is nothing to say of a stream"),
        );
    }
    let visitor = match post::visitor(door, &parts.headers, &parts.uri, server) {
        Ok(visitor) => visitor,
        Err(refusal) => return *refusal,
    };
    let Some(id) = headers::text(&parts.headers, &SESSION) else {
        let error = invalid("a GET belongs to a session: `Mcp-Session-Id` is missing");
        return refusal(StatusCode::METHOD_NOT_ALLOWED, None, &error);
    };
    let Some(session) = post::session(door, &visitor, id) else { return no_session() };
    if headers::accepts(&parts.headers) == Accepts::Json {
        let error = invalid("`Accept` must hold `text/event-stream`");
        return refusal(StatusCode::NOT_ACCEPTABLE, None, &error);
    }
    let Some(place) = Place::of_stream(door, &visitor.principal) else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, None, &busy());
    };
    let (out, inlet) = outlet(door.bounds());
    let replaced = session.listens(out.clone());
    let watching = Watching::new(&door.gateway, &session.scope);
    let state = Listening {
        session,
        inlet,
        watching,
        waiting: Vec::new(),
        way: out,
        replaced,
        begun: false,
        _place: place,
    };
    events::response(stream::unfold(state, |mut state| async {
        let event = state.next().await?;
        Some((event, state))
    }))
}

struct Listening {
    session: Arc<Session>,
    inlet: Inlet,
    watching: Watching,
    waiting: Vec<Bytes>,
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
            return Some(events::pulse());
        }
        loop {
            if let Some(message) = self.waiting.pop() {
                return Some(message);
            }
            tokio::select! {
                biased;
                () = self.session.over.cancelled() => return None,
                () = self.replaced.cancelled() => return self.inlet.take().map(|it| events::event(&it)),
                Some(message) = self.inlet.next() => return Some(events::event(&message)),
                news = self.watching.next(&self.session.told) => match news {
                    News::Lists(changed) => {
                        let told = changed.iter().rev();
                        let told = told.map(|it| events::event(&reply::notification(it.method(), "{}")));
                        self.waiting.extend(told);
                    }
                    News::Said(said) => {
                        let Session { subscriptions, dialog, .. } = &*self.session;
                        let told = told(&said, subscriptions, dialog.id(), self.session.log_level());
                        let told = told.map(|(method, params)| reply::notification(&method, &params));
                        self.waiting.extend(told.map(|it| events::event(&it)));
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
        self.session.touch(tokio::time::Instant::now());
    }
}
