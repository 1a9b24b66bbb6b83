//! What is said on a session's own stream, numbered and kept for a while, so that a client who lost his connection hears
//! what he missed when he comes back (`Last-Event-ID`).
//!
//! Invariant: a number stands for one message of one stream. Whoever opens a stream anew, and resumes none, begins another
//! one, and nothing of the one before is said again.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// How many messages are kept, and how many bytes of them; one of any size is.
const MOST_MESSAGES: usize = 256;
const MOST_BYTES: usize = 256 * 1024;

/// A message's place: the stream, and its number there, from 1. Zero stands before the first.
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

/// A text that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoEventId;

impl FromStr for EventId {
    type Err = NoEventId;

    fn from_str(text: &str) -> Result<EventId, NoEventId> {
        let (stream, number) = text.split_once('-').ok_or(NoEventId)?;
        let number_of = |it: &str| it.parse().map_err(|_| NoEventId);
        Ok(EventId { stream: number_of(stream)?, number: number_of(number)? })
    }
}

/// The messages of a session's stream.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    said: Mutex<Said>,
    /// Told when there is something more.
    more: Notify,
}

#[derive(Debug, Default)]
struct Said {
    stream: u64,
    /// How many messages there were on this stream.
    count: u64,
    /// The last of them.
    messages: VecDeque<Bytes>,
    bytes: usize,
}

impl Kept {
    /// Where a client goes on who says that this is the last he heard; one who says nothing, or something of another
    /// stream, begins anew.
    pub(crate) fn begin(&self, last: Option<EventId>) -> EventId {
        let mut said = self.said();
        match last {
            Some(last) if last.stream == said.stream && last.number <= said.count => last,
            Some(_) | None => {
                *said = Said { stream: said.stream + 1, ..Said::default() };
                EventId { stream: said.stream, number: 0 }
            }
        }
    }

    /// Takes a message in.
    pub(crate) fn add(&self, message: Bytes) {
        let mut said = self.said();
        said.count += 1;
        said.bytes += message.len();
        said.messages.push_back(message);
        while said.messages.len() > 1 && (said.messages.len() > MOST_MESSAGES || said.bytes > MOST_BYTES) {
            let gone = said.messages.pop_front().map_or(0, |it| it.len());
            said.bytes -= gone;
        }
        drop(said);
        self.more.notify_one();
    }

    /// The next one behind this place that is still kept.
    pub(crate) fn after(&self, place: EventId) -> Option<(EventId, Bytes)> {
        let said = self.said();
        if place.stream != said.stream || place.number >= said.count {
            return None;
        }
        let first = said.count - said.messages.len() as u64;
        let at = place.number.max(first);
        let message = said.messages.get(usize::try_from(at - first).ok()?)?.clone();
        Some((EventId { number: at + 1, ..place }, message))
    }

    /// Resolves when something was taken in. Cancel-safe.
    pub(crate) async fn more(&self) {
        self.more.notified().await;
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(kept: &Kept, mut place: EventId) -> Vec<String> {
        let mut res = Vec::new();
        while let Some((next, message)) = kept.after(place) {
            res.push(format!("{next} {}", String::from_utf8_lossy(&message)));
            place = next;
        }
        res
    }

    #[test]
    fn who_comes_back_hears_what_he_missed_and_nothing_of_another_stream() {
        let kept = Kept::default();
        let first = kept.begin(None);
        for text in ["a", "b", "c"] {
            kept.add(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!(all(&kept, first), ["1-1 a", "1-2 b", "1-3 c"]);
        let id = |text: &str| text.parse::<EventId>().ok();
        assert_eq!(all(&kept, kept.begin(id("1-2"))), ["1-3 c"]);
        assert_eq!(all(&kept, kept.begin(id("1-0"))).len(), 3);
        // What was never said is not heard of, and begins anew.
        assert_eq!(kept.begin(id("1-9")).to_string(), "2-0");
        kept.add(Bytes::from_static(b"d"));
        assert_eq!(all(&kept, first), Vec::<String>::new());
        assert_eq!(kept.begin(id("1-2")).to_string(), "3-0");
        for text in ["", "-", "1", "1-", "x-1", "1-2-3", "1--1"] {
            assert_eq!(id(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let kept = Kept::default();
        let first = kept.begin(None);
        for _ in 0..MOST_MESSAGES + 10 {
            kept.add(Bytes::from_static(b"x"));
        }
        assert_eq!(all(&kept, first).len(), MOST_MESSAGES);
        assert_eq!(kept.after(first).unwrap().0.to_string(), "1-11");
        kept.add(vec![b'x'; MOST_BYTES + 1].into());
        assert_eq!(all(&kept, first).len(), 1);
    }
}
