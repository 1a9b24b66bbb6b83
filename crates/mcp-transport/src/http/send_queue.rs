//! The messages of a connection that are queued or in flight. No I/O.
//!
//! The driver always empties the engine's queue into this one, so that an abandonment does not wait behind messages
//! that cannot be sent yet. This queue is bounded in bytes: beyond the limit, requests are refused, and notifications
//! and responses are dropped, because the server does not read its input.

use std::collections::VecDeque;

use futures_util::future::AbortHandle;
use mcp_host_model::{Era, Method, ProtocolVersion};

use crate::transport::{Epoch, MessageHead, Outbound, OutboundMessage, RequestId};

/// Maximum number of messages in flight. Others are queued, and can be abandoned there.
const MAX_IN_FLIGHT: usize = 512;

/// The messages of one connection.
#[derive(Default)]
pub(super) struct HttpSendQueue {
    /// The requests that are queued or in flight.
    requests: ahash::HashMap<RequestId, RequestState>,
    /// The queued messages, with `None` in place of each abandoned one.
    queued: VecDeque<Option<OutboundMessage>>,
    /// The number of the first queued message. Messages are numbered so that an abandoned one is found in the queue.
    first_number: u64,
    /// Total cost of the queued messages.
    cost: usize,
    /// The session whose `notifications/initialized` was sent but not accepted yet: nothing else is sent before.
    blocked_by: Option<Epoch>,
    /// Number of messages in flight.
    in_flight: usize,
    /// The session whose handshake is running. Meanwhile no request bypasses the queue, so that messages keep their
    /// order.
    handshake: Option<Epoch>,
    /// The connection has ended.
    pub(super) is_closed: bool,
}

/// The result of queueing an outbound entry.
#[derive(Debug)]
pub(super) enum QueueOutcome {
    /// Nothing is left to do: it is queued or done, or was dropped because the queue is full.
    Accepted,
    /// This request is refused because the queue is full.
    Refused(RequestId),
    /// Aborts a request in flight.
    Abort(AbortHandle),
}

/// Maximum total cost of queued messages.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// The cost of a queued message: its bytes, and an estimate for the rest.
fn cost(message: &OutboundMessage) -> usize {
    message.body.len() + 256
}

/// The state of a request. Small, because the map moves its entries.
pub(super) enum RequestState {
    /// The number of its message in the queue.
    Queued(u64),
    /// It was taken from the queue, or sent without queueing.
    InFlight {
        /// Aborts its exchange; `None` while its caller polls that.
        abort: Option<AbortHandle>,
        epoch: Epoch,
        version: Option<ProtocolVersion>,
        is_initialize: bool,
    },
}

impl HttpSendQueue {
    /// Adds an outbound entry.
    pub(super) fn push(&mut self, entry: Outbound) -> QueueOutcome {
        let message = match entry {
            Outbound::Send(message) => message,
            Outbound::Cancel { id, notice } => return self.abandon(id, notice),
        };
        if self.cost + cost(&message) > MAX_QUEUED_BYTES {
            return message.head.id.map_or(QueueOutcome::Accepted, QueueOutcome::Refused);
        }
        if let Some(id) = message.head.id {
            let number = self.first_number + self.queued.len() as u64;
            self.requests.insert(id, RequestState::Queued(number));
        }
        if message.head.has_method(Method::Initialize) {
            self.handshake = Some(message.epoch);
        }
        self.enqueue(message);
        QueueOutcome::Accepted
    }

    /// Whether a request may be sent without queueing.
    pub(super) fn can_send_now(&self, message: &OutboundMessage) -> bool {
        let has_room = self.in_flight < MAX_IN_FLIGHT && self.queued.is_empty();
        let is_blocked = self.blocked_by.is_some() || self.handshake.is_some() || self.is_closed;
        !is_blocked && has_room && !message.head.has_method(Method::Initialize)
    }

    /// Removes the next message, if one may be sent now.
    pub(super) fn take_next(&mut self) -> Option<OutboundMessage> {
        while self.blocked_by.is_none() && self.in_flight < MAX_IN_FLIGHT {
            let message = self.queued.pop_front()?;
            self.first_number += 1;
            let Some(message) = message else { continue };
            self.cost -= cost(&message);
            // Servers refuse messages that they receive before it.
            let is_initialized = message.head.id.is_none() && message.head.has_method(Method::Initialized);
            self.blocked_by = is_initialized.then_some(message.epoch);
            return Some(message);
        }
        None
    }

    /// Records that a message is in flight.
    pub(super) fn mark_in_flight(&mut self, message: &OutboundMessage) {
        let MessageHead { id, version, method: _, name: _, header_params: _, in_established_session: _ } =
            &message.head;
        self.in_flight += 1;
        if let Some(id) = id {
            let (epoch, is_initialize) = (message.epoch, message.head.has_method(Method::Initialize));
            let state = RequestState::InFlight { abort: None, epoch, version: *version, is_initialize };
            self.requests.insert(*id, state);
        }
    }

    /// Stores the handle that aborts the exchange of a request. Returns false if the request was abandoned.
    pub(super) fn set_abort_handle(&mut self, id: RequestId, handle: AbortHandle) -> bool {
        let Some(RequestState::InFlight { abort, .. }) = self.requests.get_mut(&id) else { return false };
        *abort = Some(handle);
        true
    }

    /// Removes a finished message from those in flight. Returns its state, which the caller drops after unlocking
    /// because its abort handle wakes a task, and whether another message is queued.
    pub(super) fn finish(&mut self, id: Option<RequestId>) -> (Option<RequestState>, bool) {
        self.in_flight -= 1;
        (id.and_then(|id| self.requests.remove(&id)), !self.queued.is_empty())
    }

    /// Ends the handshake of this session or an earlier one: messages no longer wait for it.
    pub(super) fn end_handshake(&mut self, epoch: Epoch) {
        for handshake in [&mut self.blocked_by, &mut self.handshake] {
            *handshake = handshake.filter(|it| *it > epoch);
        }
    }

    fn enqueue(&mut self, message: OutboundMessage) {
        self.cost += cost(&message);
        self.queued.push_back(Some(message));
    }

    /// Removes a queued request, or cancels one in flight. `notice` is the body of the notification that cancels it.
    fn abandon(&mut self, id: RequestId, notice: Option<bytes::Bytes>) -> QueueOutcome {
        match self.requests.remove(&id) {
            // It has finished, or was refused.
            None => QueueOutcome::Accepted,
            Some(RequestState::Queued(number)) => {
                let slot =
                    usize::try_from(number - self.first_number).ok().and_then(|it| self.queued.get_mut(it));
                if let Some(message) = slot.and_then(Option::take) {
                    self.cost -= cost(&message);
                    if message.head.has_method(Method::Initialize) {
                        self.end_handshake(message.epoch);
                    }
                }
                while let Some(None) = self.queued.back() {
                    self.queued.pop_back();
                }
                QueueOutcome::Accepted
            }
            Some(RequestState::InFlight { abort, epoch, version, is_initialize }) => {
                if is_initialize {
                    // The handshake has failed, so there is nothing to wait for.
                    self.end_handshake(epoch);
                }
                // In the modern era, closing the stream cancels the request. The protocol forbids cancelling
                // `initialize`.
                let is_cancellable = !is_initialize && version.is_none_or(|it| it.era() == Era::Legacy);
                if let Some(notice) = notice.filter(|_| is_cancellable) {
                    let head = MessageHead::new(None, Method::Cancelled, version);
                    self.enqueue(OutboundMessage { epoch, head, body: notice });
                }
                abort.map_or(QueueOutcome::Accepted, QueueOutcome::Abort)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn queue_is_bounded_and_its_cost_is_released() {
        let message = |id| {
            let head = MessageHead::new(id, "m", None);
            Outbound::Send(OutboundMessage { epoch: Epoch(0), head, body: Bytes::from(vec![0; 1 << 20]) })
        };
        let mut queue = HttpSendQueue::default();
        let refused = |outcome| if let QueueOutcome::Refused(id) = outcome { Some(id) } else { None };
        let all: Vec<_> = (1..=70).filter_map(|id| refused(queue.push(message(Some(id))))).collect();
        assert_eq!(all, (64..=70).collect::<Vec<_>>());
        assert_eq!(refused(queue.push(message(None))), None, "a response is dropped");
        queue.push(Outbound::Cancel { id: 1, notice: None });
        let mut sent = 0;
        while queue.take_next().is_some() {
            sent += 1;
        }
        assert_eq!((sent, queue.cost), (62, 0));
        assert_eq!(refused(queue.push(message(Some(71)))), None);
    }

    const LEGACY: Option<ProtocolVersion> = Some(ProtocolVersion::LATEST_LEGACY);
    const MODERN: Option<ProtocolVersion> = Some(ProtocolVersion::LATEST);

    fn message(
        id: Option<RequestId>,
        method: &'static str,
        version: Option<ProtocolVersion>,
    ) -> OutboundMessage {
        OutboundMessage { epoch: Epoch(0), head: MessageHead::new(id, method, version), body: Bytes::new() }
    }

    /// Queues messages and abandonments (`-7`), sends as many as possible after each, and checks what was sent.
    #[track_caller]
    fn check(version: Option<ProtocolVersion>, steps: &[&'static str], want: &str) {
        let mut queue = HttpSendQueue::default();
        let mut sent = Vec::new();
        let mut aborted = Vec::new();
        for step in steps {
            match step.split_once(' ') {
                Some(("finished", id)) => drop(queue.finish(id.parse().ok())),
                Some((id, method)) => {
                    let outcome = queue.push(Outbound::Send(message(id.parse().ok(), method, version)));
                    assert!(matches!(outcome, QueueOutcome::Accepted), "{outcome:?}");
                }
                None if *step == "handshake-ended" => queue.end_handshake(Epoch(0)),
                None => {
                    let id = step.trim_start_matches('-').parse().unwrap();
                    if let QueueOutcome::Abort(abort) =
                        queue.push(Outbound::Cancel { id, notice: Some(Bytes::new()) })
                    {
                        abort.abort();
                    }
                }
            }
            while let Some(message) = queue.take_next() {
                let (abort, registration) = AbortHandle::new_pair();
                queue.mark_in_flight(&message);
                let _ = message.head.id.is_some_and(|id| queue.set_abort_handle(id, abort));
                sent.push(message.head.method_name().unwrap().to_owned());
                aborted.push(registration);
            }
        }
        let aborted = aborted.iter().filter(|it| it.handle().is_aborted()).count();
        assert_eq!(format!("{}; {aborted} aborted", sent.join(" ")), want);
    }

    #[test]
    fn nothing_overtakes_the_initialized_notification() {
        check(
            LEGACY,
            &["1 initialize", "finished 1", "- notifications/initialized", "2 a", "3 b"],
            "initialize notifications/initialized; 0 aborted",
        );
        check(
            LEGACY,
            &["- notifications/initialized", "2 a", "3 b", "-2", "handshake-ended"],
            "notifications/initialized b; 0 aborted",
        );
    }

    #[test]
    fn end_of_an_earlier_handshake_releases_nothing() {
        let message =
            |epoch, id, method| OutboundMessage { epoch: Epoch(epoch), ..message(id, method, LEGACY) };
        let mut queue = HttpSendQueue::default();
        let send_next = |queue: &mut HttpSendQueue| {
            queue.take_next().map(|it| {
                queue.mark_in_flight(&it);
                it.head.method.unwrap()
            })
        };
        let call = message(1, Some(9), "a");
        assert!(queue.can_send_now(&call));
        queue.push(Outbound::Send(message(1, Some(1), "initialize")));
        assert_eq!(send_next(&mut queue), Some(Method::Initialize.into()));
        queue.end_handshake(Epoch(0));
        assert!(!queue.can_send_now(&call), "a handshake is running");
        queue.push(Outbound::Send(message(1, None, "notifications/initialized")));
        assert_eq!(send_next(&mut queue), Some(Method::Initialized.into()));
        queue.push(Outbound::Send(message(1, Some(2), "b")));
        queue.end_handshake(Epoch(0));
        assert!(!queue.can_send_now(&call) && send_next(&mut queue).is_none());
        queue.end_handshake(Epoch(1));
        assert!(!queue.can_send_now(&call), "another message is queued");
        assert_eq!(send_next(&mut queue), Some("b".into()));
        assert!(queue.can_send_now(&call));
        queue.is_closed = true;
        assert!(!queue.can_send_now(&call));
    }

    #[test]
    fn abandoned_request_is_cancelled_by_era() {
        check(LEGACY, &["1 a", "-1"], "a notifications/cancelled; 1 aborted");
        check(MODERN, &["1 a", "-1"], "a; 1 aborted");
        check(None, &["1 initialize", "-1"], "initialize; 1 aborted");
    }

    #[test]
    fn finished_request_cannot_be_abandoned() {
        check(LEGACY, &["1 a", "finished 1", "-1"], "a; 0 aborted");
        check(LEGACY, &["-9", "1 a"], "a; 0 aborted");
    }
}
