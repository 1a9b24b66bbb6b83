//! The recent events of a session's notification stream, so that a client can resume it with `Last-Event-ID`.
//!
//! An event id belongs to one message of one stream. A stream that does not resume an earlier one has new ids and
//! repeats no earlier events.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The maximum number of messages in the log.
const MAX_MESSAGES: usize = 256;
/// The maximum total size of these messages in bytes. The last message is kept whatever its size.
const MAX_BYTES: usize = 256 * 1024;

/// The id of an event: the stream, and the event's number in it, from 1. Number 0 is before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    stream: u64,
    number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

/// The error for a text that is not an event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidEventId;

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<EventId, InvalidEventId> {
        let (stream, number) = text.split_once('-').ok_or(InvalidEventId)?;
        let parse = |number: &str| number.parse().map_err(|_| InvalidEventId);
        Ok(EventId { stream: parse(stream)?, number: parse(number)? })
    }
}

/// The recent events of a session's stream.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    state: Mutex<LogState>,
    /// Notified when an event was appended.
    appended: Notify,
}

/// The events of the current stream.
#[derive(Debug, Default)]
struct LogState {
    /// The number of the current stream.
    stream: u64,
    /// The number of events on this stream so far.
    count: u64,
    /// The last of these events.
    messages: VecDeque<Bytes>,
    /// The total size of `messages`.
    bytes: usize,
}

impl EventLog {
    /// Resumes the stream after the event `last`, or begins a new stream without a valid one. Returns the id of the
    /// event after which the stream continues.
    pub(crate) fn resume(&self, last: Option<EventId>) -> EventId {
        let mut state = self.state.lock();
        match last {
            Some(last) if last.stream == state.stream && last.number <= state.count => last,
            Some(_) | None => {
                *state = LogState { stream: state.stream + 1, ..LogState::default() };
                EventId { stream: state.stream, number: 0 }
            }
        }
    }

    /// Appends a message.
    pub(crate) fn append(&self, message: Bytes) {
        let mut state = self.state.lock();
        state.count += 1;
        state.bytes += message.len();
        state.messages.push_back(message);
        while state.messages.len() > 1 && (state.messages.len() > MAX_MESSAGES || state.bytes > MAX_BYTES) {
            let removed = state.messages.pop_front().map_or(0, |message| message.len());
            state.bytes -= removed;
        }
        drop(state);
        self.appended.notify_one();
    }

    /// The first event after `last` that is still in the log.
    pub(crate) fn next_after(&self, last: EventId) -> Option<(EventId, Bytes)> {
        let state = self.state.lock();
        if last.stream != state.stream || last.number >= state.count {
            return None;
        }
        let removed = state.count - state.messages.len() as u64;
        let preceding = last.number.max(removed);
        let message = state.messages.get(usize::try_from(preceding - removed).ok()?)?.clone();
        Some((EventId { number: preceding + 1, ..last }, message))
    }

    /// Resolves when an event was appended. Cancel-safe.
    pub(crate) async fn wait_for_append(&self) {
        self.appended.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events_after(log: &EventLog, mut last: EventId) -> Vec<String> {
        let mut events = Vec::new();
        while let Some((id, message)) = log.next_after(last) {
            events.push(format!("{id} {}", String::from_utf8_lossy(&message)));
            last = id;
        }
        events
    }

    #[test]
    fn resumed_stream_repeats_missed_events_of_that_stream() {
        let log = EventLog::default();
        let first = log.resume(None);
        for text in ["a", "b", "c"] {
            log.append(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!(events_after(&log, first), ["1-1 a", "1-2 b", "1-3 c"]);
        let id = |text: &str| text.parse::<EventId>().ok();
        assert_eq!(events_after(&log, log.resume(id("1-2"))), ["1-3 c"]);
        assert_eq!(events_after(&log, log.resume(id("1-0"))).len(), 3);
        // An id that was never sent starts a new stream.
        assert_eq!(log.resume(id("1-9")).to_string(), "2-0");
        log.append(Bytes::from_static(b"d"));
        assert_eq!(events_after(&log, first), Vec::<String>::new());
        assert_eq!(log.resume(id("1-2")).to_string(), "3-0");
        for text in ["", "-", "1", "1-", "x-1", "1-2-3", "1--1"] {
            assert_eq!(id(text), None, "{text}");
        }
    }

    #[test]
    fn event_log_is_bounded() {
        let log = EventLog::default();
        let first = log.resume(None);
        for _ in 0..MAX_MESSAGES + 10 {
            log.append(Bytes::from_static(b"x"));
        }
        assert_eq!(events_after(&log, first).len(), MAX_MESSAGES);
        assert_eq!(log.next_after(first).unwrap().0.to_string(), "1-11");
        log.append(vec![b'x'; MAX_BYTES + 1].into());
        assert_eq!(events_after(&log, first).len(), 1);
    }
}
