//! Which messages are on their way and which still wait: bookkeeping, no I/O.
//!
//! Notices go one after another, so that none overtakes another one. Requests and answers go beside each other, for a
//! server may keep the response to a POST until the call is done. Neither kind waits for room of another's: else a
//! server that asks during many calls would wait for an answer that waits for the calls.
//!
//! The queue of the engine is always emptied, so that an abandonment reaches the request that it ends. What waits here
//! is bounded in bytes: past the bound requests are refused, answers and notices dropped.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use mcp_model::ProtocolVersion;
use tokio::sync::oneshot;

use crate::net::{CANCELLED, INITIALIZED};
use crate::transport::{Epoch, MessageHead, Outbound, OutboundMessage, RequestId};

/// How many requests are being posted at once. The rest waits its turn, and can be given up while it waits.
const MAX_REQUESTS: usize = 256;

/// How many answers to the server are being posted at once.
const MAX_RESPONSES: usize = 64;

/// How much may wait.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// What a message is, as far as its way goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// One of our requests.
    Request,
    /// An answer to one of the server's.
    Response,
    /// A notification.
    Notification,
}

/// Why a POST that is under way is of no more use.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AbortReason {
    /// Nobody waits for the request's answer any more.
    Abandoned,
    /// The request was answered.
    Answered,
}

/// The messages of one connection.
#[derive(Default)]
pub(super) struct SseSendQueue {
    lanes: HashMap<RequestId, PostState>,
    requests: VecDeque<RequestId>,
    answers: VecDeque<OutboundMessage>,
    notices: VecDeque<OutboundMessage>,
    /// How many of each kind are being posted.
    posting: PostCounts,
    /// What the waiting messages cost together.
    cost: usize,
    /// The notice that the opening is over is not through yet: no request and no answer may overtake it.
    opening: bool,
    /// The version of the last message that had one.
    version: Option<ProtocolVersion>,
}

#[derive(Default)]
struct PostCounts {
    requests: usize,
    answers: usize,
    notices: usize,
}

enum PostState {
    Queued(OutboundMessage),
    Posting(oneshot::Sender<AbortReason>),
}

impl MessageKind {
    pub(super) fn of(head: &MessageHead) -> MessageKind {
        match head.id {
            Some(_) => MessageKind::Request,
            None if head.method.is_empty() => MessageKind::Response,
            None => MessageKind::Notification,
        }
    }
}

/// What a message costs while it waits: its bytes, and what is kept beside them.
fn cost(message: &OutboundMessage) -> usize {
    message.body.len() + 256
}

impl SseSendQueue {
    /// Takes a thing to do. Gives the request back that it does not take, because too much waits.
    pub(super) fn push(&mut self, out: Outbound) -> Option<RequestId> {
        let message = match out {
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
                self.lanes.insert(id, PostState::Queued(message));
            }
            None if message.head.method.is_empty() => {
                self.cost += cost(&message);
                self.answers.push_back(message);
            }
            None => self.push_notification(message),
        }
        None
    }

    /// The next message to post, where one may be posted now. For a request, the other end of what ends it early.
    pub(super) fn next(&mut self) -> Option<(OutboundMessage, Option<oneshot::Receiver<AbortReason>>)> {
        if self.posting.notices == 0
            && let Some(message) = self.notices.pop_front()
        {
            self.cost -= cost(&message);
            self.posting.notices += 1;
            return Some((message, None));
        }
        if self.opening {
            return None;
        }
        if self.posting.answers < MAX_RESPONSES
            && let Some(message) = self.answers.pop_front()
        {
            self.cost -= cost(&message);
            self.posting.answers += 1;
            return Some((message, None));
        }
        while self.posting.requests < MAX_REQUESTS {
            let id = self.requests.pop_front()?;
            // What is not there any more was given up while it waited.
            if let Some(PostState::Queued(message)) = self.lanes.remove(&id) {
                self.cost -= cost(&message);
                self.posting.requests += 1;
                let (leave, left) = oneshot::channel();
                self.lanes.insert(id, PostState::Posting(leave));
                return Some((message, Some(left)));
            }
        }
        None
    }

    /// A message is not on its way any more.
    pub(super) fn finish(&mut self, head: &MessageHead) {
        match MessageKind::of(head) {
            MessageKind::Request => self.posting.requests -= 1,
            MessageKind::Response => self.posting.answers -= 1,
            MessageKind::Notification => self.posting.notices -= 1,
        }
        if let Some(id) = &head.id {
            self.lanes.remove(id);
        }
        if head.method == INITIALIZED {
            self.opening = false;
        }
    }

    /// Is any request being posted, so that it is worth knowing which ones were answered?
    pub(super) fn posts_requests(&self) -> bool {
        self.posting.requests > 0
    }

    /// A request was answered: the response to its POST says nothing more.
    pub(super) fn answered(&mut self, id: RequestId) {
        if let Some(PostState::Posting(leave)) = self.lanes.remove(&id) {
            let _ = leave.send(AbortReason::Answered);
        }
    }

    fn abandon(&mut self, id: RequestId, notice: Option<Bytes>) {
        match self.lanes.remove(&id) {
            Some(PostState::Queued(message)) => {
                // It never went out: there is nothing to take back.
                self.cost -= cost(&message);
                return;
            }
            Some(PostState::Posting(leave)) => {
                let _ = leave.send(AbortReason::Abandoned);
            }
            // Its POST is through, and the server works on it.
            None => {}
        }
        if let Some(body) = notice {
            let head = MessageHead::new(None, CANCELLED.into(), self.version);
            self.push_notification(OutboundMessage { epoch: Epoch(0), head, body });
        }
    }

    fn push_notification(&mut self, message: OutboundMessage) {
        if self.cost + cost(&message) > MAX_QUEUED_BYTES {
            return;
        }
        self.opening |= message.head.method == INITIALIZED;
        self.cost += cost(&message);
        self.notices.push_back(message);
    }
}

#[cfg(test)]
mod tests;
