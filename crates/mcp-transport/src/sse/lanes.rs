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
const MOST_REQUESTS: usize = 256;

/// How many answers to the server are being posted at once.
const MOST_ANSWERS: usize = 64;

/// How much may wait.
const MOST_WAITING: usize = 64 << 20;

/// What a message is, as far as its way goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One of our requests.
    Request,
    /// An answer to one of the server's.
    Answer,
    /// A notification.
    Notice,
}

/// Why a POST that is under way is of no more use.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Nobody waits for the request's answer any more.
    Abandoned,
    /// The request was answered.
    Answered,
}

/// The messages of one connection.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: HashMap<RequestId, Lane>,
    requests: VecDeque<RequestId>,
    answers: VecDeque<OutboundMessage>,
    notices: VecDeque<OutboundMessage>,
    /// How many of each kind are being posted.
    posting: Posting,
    /// What the waiting messages cost together.
    cost: usize,
    /// The notice that the opening is over is not through yet: no request and no answer may overtake it.
    opening: bool,
    /// The version of the last message that had one.
    version: Option<ProtocolVersion>,
}

#[derive(Default)]
struct Posting {
    requests: usize,
    answers: usize,
    notices: usize,
}

enum Lane {
    Waiting(OutboundMessage),
    Posting(oneshot::Sender<Leave>),
}

impl Kind {
    pub(super) fn of(head: &MessageHead) -> Kind {
        match head.id {
            Some(_) => Kind::Request,
            None if head.method.is_empty() => Kind::Answer,
            None => Kind::Notice,
        }
    }
}

/// What a message costs while it waits: its bytes, and what is kept beside them.
fn cost(message: &OutboundMessage) -> usize {
    message.body.len() + 256
}

impl Lanes {
    /// Takes a thing to do. Gives the request back that it does not take, because too much waits.
    pub(super) fn take(&mut self, out: Outbound) -> Option<RequestId> {
        let message = match out {
            Outbound::Send(message) => message,
            Outbound::Cancel { id, notice } => {
                self.abandon(id, notice);
                return None;
            }
        };
        self.version = message.head.version.or(self.version);
        if self.cost + cost(&message) > MOST_WAITING {
            return message.head.id;
        }
        match message.head.id {
            Some(id) => {
                self.cost += cost(&message);
                self.requests.push_back(id);
                self.lanes.insert(id, Lane::Waiting(message));
            }
            None if message.head.method.is_empty() => {
                self.cost += cost(&message);
                self.answers.push_back(message);
            }
            None => self.tell(message),
        }
        None
    }

    /// The next message to post, where one may be posted now. For a request, the other end of what ends it early.
    pub(super) fn next(&mut self) -> Option<(OutboundMessage, Option<oneshot::Receiver<Leave>>)> {
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
        if self.posting.answers < MOST_ANSWERS
            && let Some(message) = self.answers.pop_front()
        {
            self.cost -= cost(&message);
            self.posting.answers += 1;
            return Some((message, None));
        }
        while self.posting.requests < MOST_REQUESTS {
            let id = self.requests.pop_front()?;
            // What is not there any more was given up while it waited.
            if let Some(Lane::Waiting(message)) = self.lanes.remove(&id) {
                self.cost -= cost(&message);
                self.posting.requests += 1;
                let (leave, left) = oneshot::channel();
                self.lanes.insert(id, Lane::Posting(leave));
                return Some((message, Some(left)));
            }
        }
        None
    }

    /// A message is not on its way any more.
    pub(super) fn settled(&mut self, head: &MessageHead) {
        match Kind::of(head) {
            Kind::Request => self.posting.requests -= 1,
            Kind::Answer => self.posting.answers -= 1,
            Kind::Notice => self.posting.notices -= 1,
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
        if let Some(Lane::Posting(leave)) = self.lanes.remove(&id) {
            let _ = leave.send(Leave::Answered);
        }
    }

    fn abandon(&mut self, id: RequestId, notice: Option<Bytes>) {
        match self.lanes.remove(&id) {
            Some(Lane::Waiting(message)) => {
                // It never went out: there is nothing to take back.
                self.cost -= cost(&message);
                return;
            }
            Some(Lane::Posting(leave)) => {
                let _ = leave.send(Leave::Abandoned);
            }
            // Its POST is through, and the server works on it.
            None => {}
        }
        if let Some(body) = notice {
            let head = MessageHead::new(None, CANCELLED.into(), self.version);
            self.tell(OutboundMessage { epoch: Epoch(0), head, body });
        }
    }

    fn tell(&mut self, message: OutboundMessage) {
        if self.cost + cost(&message) > MOST_WAITING {
            return;
        }
        self.opening |= message.head.method == INITIALIZED;
        self.cost += cost(&message);
        self.notices.push_back(message);
    }
}

#[cfg(test)]
mod tests;
