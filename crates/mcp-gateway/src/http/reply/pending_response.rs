//! The response to a request that is running: one JSON document if nothing precedes the result, else a stream of events
//! that ends with the result.

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use tokio::time::sleep;

use crate::http::connection::stall_detector::KEEP_ALIVE;
use crate::http::reply::response::{self, Response};
use crate::http::reply::sse;
use crate::http::request::headers::AcceptedFormat;
use crate::limits::byte_budget::MIN_COUNTED_BYTES;
use crate::session::outbound_queue::MessageReceiver;

/// The time without a message or result after which the response becomes an event stream, so that the client gets its
/// head.
const MAX_SILENCE: Duration = Duration::from_secs(10);

/// A complete result or error, with the status that it has as a response of its own.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    /// The seconds after which a refused request can be tried again.
    pub(crate) retry_after: Option<u64>,
}

impl Reply {
    fn into_response(self) -> Response {
        let Reply { status, body, retry_after } = self;
        let mut response = response::json(status, body);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The work of a request. Its output is `None` if the client cancelled the request.
pub(crate) type Work = Pin<Box<dyn Future<Output = Option<Reply>> + Send>>;

/// The effect on a request when its client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDisconnect {
    /// It keeps running, because a lost connection cancels nothing (legacy era).
    Finish,
    /// It is cancelled (modern era).
    Cancel,
}

/// A running request whose response is pending. Dropping it means that the client disconnected.
pub(crate) struct PendingResponse {
    work: Option<Work>,
    messages: MessageReceiver,
    on_disconnect: OnDisconnect,
}

impl PendingResponse {
    pub(crate) fn new(work: Work, messages: MessageReceiver, on_disconnect: OnDisconnect) -> PendingResponse {
        PendingResponse { work: Some(work), messages, on_disconnect }
    }

    /// Returns the response as soon as its form, JSON or event stream, is decided.
    pub(crate) async fn respond(mut self, accepts: AcceptedFormat) -> Response {
        let takes_events = accepts == AcceptedFormat::Events;
        let mut silence = pin!(sleep(MAX_SILENCE));
        loop {
            let work = self.work.as_mut().expect("the work is removed only when it has ended");
            let first = tokio::select! {
                biased;
                Some(message) = self.messages.next() => {
                    if !takes_events {
                        // A client that accepts only JSON gets the result alone.
                        continue;
                    }
                    Some(message)
                }
                reply = work => {
                    self.work = None;
                    let message = if takes_events { self.messages.try_next() } else { None };
                    return match (reply, message) {
                        (Some(reply), Some(message)) => self.stream(Some(message), Some(reply)),
                        (Some(reply), None) => reply.into_response(),
                        (None, _) => accepted(),
                    };
                }
                () = silence.as_mut(), if takes_events => None,
            };
            return self.stream(first, None);
        }
    }

    /// Turns the response into an event stream. It begins with `first`, or with a keep-alive. `reply` is the result, if
    /// the work has ended.
    fn stream(self, first: Option<Bytes>, reply: Option<Reply>) -> Response {
        let first = first.map_or_else(sse::keep_alive, |message| sse::event(&message));
        let state = ResponseStream { pending: self, first: Some(first), reply, last: None, is_over: false };
        sse::response(stream::unfold(state, |mut state| async {
            let event = state.next().await?;
            Some((event, state))
        }))
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if self.on_disconnect == OnDisconnect::Finish
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

/// The events of a response.
struct ResponseStream {
    pending: PendingResponse,
    first: Option<Bytes>,
    /// The result, while messages that precede it are sent.
    reply: Option<Reply>,
    /// The parts of the last event that are not sent yet.
    last: Option<std::array::IntoIter<Bytes, 3>>,
    /// Whether the last event was begun.
    is_over: bool,
}

impl ResponseStream {
    /// The next event, or part of one; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.is_over {
            return self.last.as_mut()?.next();
        }
        let PendingResponse { work, messages, on_disconnect: _ } = &mut self.pending;
        if let Some(running) = work {
            tokio::select! {
                biased;
                Some(message) = messages.next() => return Some(sse::event(&message)),
                reply = running => {
                    *work = None;
                    self.reply = reply;
                    if self.reply.is_none() {
                        // A cancelled request has no response.
                        self.is_over = true;
                        return None;
                    }
                }
                () = sleep(KEEP_ALIVE) => return Some(sse::keep_alive()),
            }
        }
        if let Some(message) = messages.try_next() {
            return Some(sse::event(&message));
        }
        self.is_over = true;
        let body = self.reply.take()?.body;
        if body.len() < MIN_COUNTED_BYTES {
            return Some(sse::event(&body));
        }
        self.last.insert(sse::event_parts(body).into_iter()).next()
    }
}

/// The response (202) to a cancelled request, and to a message that is not a request.
pub(crate) fn accepted() -> Response {
    response::empty(StatusCode::ACCEPTED)
}
