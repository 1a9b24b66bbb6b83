//! A request that is being answered: as one JSON document where nothing comes before the answer, else as a stream of
//! events whose last one is the answer.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use tokio::time::Instant;

use super::events;
use super::headers::Accepts;
use super::line::Line;
use super::routes::status;
use super::wire::{Body, Response};
use super::worker::Worker;
use crate::session::outbound_queue::Inlet;

/// How long a client waits for the head of a response before it begins without its answer.
const SILENCE: Duration = Duration::from_secs(10);

/// The answer, and the status it has where it comes alone.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// What is done to get the answer; `None` when the client took the request back.
pub(super) enum Work {
    /// In a session, by who does the next as well.
    InSession(Worker),
    /// Of one request.
    Alone(Pin<Box<dyn Future<Output = Option<Answer>> + Send>>),
}

impl Future for Work {
    type Output = Option<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        match &mut *self {
            Work::InSession(work) => pin!(work).poll(cx),
            Work::Alone(work) => work.as_mut().poll(cx),
        }
    }
}

/// What becomes of a request whose client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It goes on: a connection that is lost takes nothing back (the eras with sessions).
    Finishes,
    /// It is taken back (the era without).
    Cancels,
}

/// A request that is being answered.
pub(super) struct Answering {
    work: Option<Work>,
    inlet: Inlet,
    leaving: Leaving,
}

impl Answering {
    pub(super) fn new(work: Work, inlet: Inlet, leaving: Leaving) -> Answering {
        Answering { work: Some(work), inlet, leaving }
    }

    /// The response, as soon as it is known which it is.
    pub(super) async fn respond(mut self, accepts: Accepts, line: &Line) -> Response {
        let takes_events = accepts == Accepts::Events;
        let patience = Instant::now() + SILENCE;
        loop {
            let work = self.work.as_mut().expect("it is only taken when it is over");
            let first = tokio::select! {
                biased;
                Some(message) = self.inlet.next() => match takes_events {
                    true => Some(message),
                    // Whoever takes only JSON hears nothing before his answer.
                    false => continue,
                },
                answer = work => {
                    if let Some(Work::InSession(worker)) = self.work.take() {
                        line.keep(worker);
                    }
                    return match (answer, takes_events.then(|| self.inlet.take()).flatten()) {
                        (Some(answer), Some(message)) => self.stream(Some(message), Some(answer)),
                        (Some(answer), None) => json(answer),
                        (None, _) => taken_back(),
                    };
                }
                () = line.alarm.at(patience), if takes_events => None,
            };
            return self.stream(first, None);
        }
    }

    fn stream(self, first: Option<Bytes>, answer: Option<Answer>) -> Response {
        let state = Streaming { answering: self, first: Some(first), answer, over: false };
        events::response(stream::unfold(state, |mut state| async {
            let event = state.next().await?;
            Some((event, state))
        }))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        match (self.leaving, tokio::runtime::Handle::try_current()) {
            (Leaving::Finishes, Ok(runtime)) => drop(runtime.spawn(work)),
            (Leaving::Finishes, Err(_)) | (Leaving::Cancels, _) => {}
        }
    }
}

/// The events of a response.
struct Streaming {
    answering: Answering,
    /// What made it a stream: a message, or nothing for too long.
    first: Option<Option<Bytes>>,
    /// The answer, while messages stand before it.
    answer: Option<Answer>,
    over: bool,
}

impl Streaming {
    async fn next(&mut self) -> Option<Bytes> {
        match self.first.take() {
            Some(Some(message)) => return Some(events::event(&message)),
            Some(None) => return Some(events::pulse()),
            None => {}
        }
        if self.over {
            return None;
        }
        let Answering { work, inlet, leaving: _ } = &mut self.answering;
        if let Some(running) = work {
            tokio::select! {
                biased;
                Some(message) = inlet.next() => return Some(events::event(&message)),
                answer = running => {
                    *work = None;
                    // Taken back: the stream ends without an answer.
                    self.over = answer.is_none();
                    self.answer = answer;
                    if self.over {
                        return None;
                    }
                }
                () = tokio::time::sleep(events::PULSE) => return Some(events::pulse()),
            }
        }
        if let Some(message) = inlet.take() {
            return Some(events::event(&message));
        }
        self.over = true;
        self.answer.take().map(|it| events::event(&it.body))
    }
}

/// An answer alone.
pub(super) fn json(answer: Answer) -> Response {
    let Answer { status, body } = answer;
    Response::new(status, Body::Whole(body)).of("application/json")
}

/// Nothing to say: a request that was taken back, or a message that wants no answer.
pub(super) fn taken_back() -> Response {
    status(StatusCode::ACCEPTED)
}
