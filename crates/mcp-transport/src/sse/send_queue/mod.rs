//! The messages of a connection that are queued or being posted. No I/O.
//!
//! Notifications are posted one after another, to keep their order. Requests and responses are posted concurrently,
//! because a server may delay the HTTP response until the call is done. Requests and responses have separate limits:
//! otherwise a server request during many calls would deadlock.
//!
//! The engine's queue is always emptied, so that an abandonment reaches its request. This queue is bounded in bytes:
//! beyond the limit, requests are refused, responses and notifications dropped.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use mcp_host_model::{Method, ProtocolVersion};
use tokio::sync::oneshot;

use crate::transport::{Epoch, MessageHead, Outbound, OutboundMessage, RequestId};

/// Maximum number of requests that are posted at once. Others are queued, and can be abandoned there.
const MAX_REQUESTS: usize = 256;

/// Maximum number of responses that are posted at once.
const MAX_RESPONSES: usize = 64;

/// Maximum total cost of queued messages.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// One of our requests.
    Request,
    /// A response to a server request.
    Response,
    /// A notification.
    Notification,
}

/// Why a POST is aborted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AbortReason {
    /// The caller has abandoned the request.
    Abandoned,
    /// The request was answered.
    Answered,
}

/// The messages of one connection.
#[derive(Default)]
pub(super) struct SseSendQueue {
    /// The requests that are queued or being posted.
    posts: HashMap<RequestId, PostState>,
    /// The ids of the queued requests in order; abandoned ones have no entry in `posts`.
    requests: VecDeque<RequestId>,
    responses: VecDeque<OutboundMessage>,
    notifications: VecDeque<OutboundMessage>,
    /// Number of messages being posted, by kind.
    posting: PostCounts,
    /// Total cost of the queued messages.
    cost: usize,
    /// `notifications/initialized` is not accepted yet: no request and no response is posted before.
    is_blocked: bool,
    /// The protocol version of the last message with one.
    version: Option<ProtocolVersion>,
}

/// Numbers of messages that are being posted.
#[derive(Default)]
struct PostCounts {
    requests: usize,
    responses: usize,
    notifications: usize,
}

/// The state of a request.
enum PostState {
    Queued(OutboundMessage),
    /// It is being posted. The sender aborts the POST.
    Posting(oneshot::Sender<AbortReason>),
}

impl MessageKind {
    pub(super) fn from_head(head: &MessageHead) -> MessageKind {
        match head.id {
            Some(_) => MessageKind::Request,
            None if head.method.is_none() => MessageKind::Response,
            None => MessageKind::Notification,
        }
    }
}

/// The cost of a queued message: its bytes, and an estimate for the rest.
fn cost(message: &OutboundMessage) -> usize {
    message.body.len() + 256
}

impl SseSendQueue {
    /// Adds an outbound entry. Returns a request that is refused because the queue is full.
    pub(super) fn push(&mut self, entry: Outbound) -> Option<RequestId> {
        let message = match entry {
            Outbound::Send(message) => message,
            Outbound::Cancel { id, notice } => {
                self.abandon(id, notice);
                return None;
            }
        };
        self.version = message.head.version.or(self.version);
        if self.cost + cost(&message) > MAX_QUEUED_BYTES {
            return message.head.id;
        }
        match message.head.id {
            Some(id) => {
                self.cost += cost(&message);
                self.requests.push_back(id);
                self.posts.insert(id, PostState::Queued(message));
            }
            None if message.head.method.is_none() => {
                self.cost += cost(&message);
                self.responses.push_back(message);
            }
            None => self.push_notification(message),
        }
        None
    }

    /// Removes the next message that may be posted now; for a request, with a receiver that aborts it.
    pub(super) fn take_next(&mut self) -> Option<(OutboundMessage, Option<oneshot::Receiver<AbortReason>>)> {
        if self.posting.notifications == 0
            && let Some(message) = self.notifications.pop_front()
        {
            self.cost -= cost(&message);
            self.posting.notifications += 1;
            return Some((message, None));
        }
        if self.is_blocked {
            return None;
        }
        if self.posting.responses < MAX_RESPONSES
            && let Some(message) = self.responses.pop_front()
        {
            self.cost -= cost(&message);
            self.posting.responses += 1;
            return Some((message, None));
        }
        while self.posting.requests < MAX_REQUESTS {
            let id = self.requests.pop_front()?;
            // Absent if it was abandoned in the queue.
            if let Some(PostState::Queued(message)) = self.posts.remove(&id) {
                self.cost -= cost(&message);
                self.posting.requests += 1;
                let (abort, aborted) = oneshot::channel();
                self.posts.insert(id, PostState::Posting(abort));
                return Some((message, Some(aborted)));
            }
        }
        None
    }

    /// Removes a finished POST.
    pub(super) fn finish(&mut self, head: &MessageHead) {
        match MessageKind::from_head(head) {
            MessageKind::Request => self.posting.requests -= 1,
            MessageKind::Response => self.posting.responses -= 1,
            MessageKind::Notification => self.posting.notifications -= 1,
        }
        if let Some(id) = &head.id {
            self.posts.remove(id);
        }
        if head.has_method(Method::Initialized) {
            self.is_blocked = false;
        }
    }

    /// Whether any request is being posted. Otherwise no response can abort a POST.
    pub(super) fn is_posting_requests(&self) -> bool {
        self.posting.requests > 0
    }

    /// Aborts the POST of a request that was answered: its HTTP response is no longer needed.
    pub(super) fn mark_answered(&mut self, id: RequestId) {
        if let Some(PostState::Posting(abort)) = self.posts.remove(&id) {
            let _ = abort.send(AbortReason::Answered);
        }
    }

    /// Removes a queued request, or aborts its POST. `notice` is the body of the notification that cancels it.
    fn abandon(&mut self, id: RequestId, notice: Option<Bytes>) {
        match self.posts.remove(&id) {
            Some(PostState::Queued(message)) => {
                // It was never sent: there is nothing to cancel.
                self.cost -= cost(&message);
                return;
            }
            Some(PostState::Posting(abort)) => {
                let _ = abort.send(AbortReason::Abandoned);
            }
            // Its POST is finished, and the server processes it.
            None => {}
        }
        if let Some(body) = notice {
            let head = MessageHead::new(None, Method::Cancelled, self.version);
            self.push_notification(OutboundMessage { epoch: Epoch(0), head, body });
        }
    }

    fn push_notification(&mut self, message: OutboundMessage) {
        if self.cost + cost(&message) > MAX_QUEUED_BYTES {
            return;
        }
        // Servers refuse messages that they receive before it.
        self.is_blocked |= message.head.has_method(Method::Initialized);
        self.cost += cost(&message);
        self.notifications.push_back(message);
    }
}

#[cfg(test)]
mod tests;
