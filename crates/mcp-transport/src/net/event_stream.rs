//! `text/event-stream`, parsed as it arrives: bytes in, events out, no I/O.
//!
//! Each byte is looked at once, whatever the chunks are, and a line that arrives in one chunk is not copied. An event that
//! holds more than it may is let go of as it comes, and what follows it is read: [`Event::TooLarge`]. Absent on purpose:
//! event types other than `message` and `endpoint`, which carry no protocol here.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::rpc::oversize::{OversizedMessage, SkippedMessage, is_endless};
use crate::rpc::rate_limiter::BYTES_PER_MESSAGE;

/// The longest line besides data that is kept whatever the limit is, in bytes.
const MAX_FIELD_BYTES: usize = 1024;

/// So many lines may stand beside the data of an event: its type, its id, a `retry`, and the empty one that ends it.
const MAX_EVENT_FIELDS: usize = 4;

/// What a line of data costs besides its bytes, in bytes: short ones are many.
const LINE_COST: usize = 64;

/// The parser of one stream.
pub(crate) struct EventStreamParser {
    /// The most bytes that one event may hold.
    limit: usize,
    /// A line that has no end yet.
    line: BytesMut,
    data: EventData,
    event_type: EventType,
    /// The id that the event being read gives; it counts when the event is complete.
    id: Option<Bytes>,
    last_id: Option<Bytes>,
    retry: Option<Duration>,
    /// A CR ended the last line: an LF that follows belongs to it.
    after_cr: bool,
    has_started: bool,
    skipping: SkipState,
    idle: IdleCount,
}

/// What came that carried no message.
#[derive(Default)]
struct IdleCount {
    /// Lines of the event being read that are no data; they count only if it comes to nothing.
    fields: usize,
    lines: usize,
    bytes: usize,
}

/// What of the stream is let go of.
enum SkipState {
    Nothing,
    /// The rest of a line that means nothing, of which so many bytes have come.
    Line(usize),
    /// The rest of an event, of whose line so many bytes have come.
    Event(SkippedMessage, usize),
}

/// An event that means something here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A message, as most events are.
    Message(Bytes),
    /// Where a server of 2024-11-05 takes messages.
    Endpoint(Bytes),
    /// A message that holds more than it may.
    TooLarge(OversizedMessage),
}

/// The type of the event being read.
#[derive(Debug, Clone, Copy)]
enum EventType {
    Message,
    Endpoint,
    Other,
}

/// The data of the event being read.
enum EventData {
    Absent,
    /// A slice of what arrived.
    Line(Bytes),
    /// Several lines joined.
    Lines(BytesMut),
}

impl EventStreamParser {
    /// A stream whose events hold at most `limit` bytes of data.
    pub(crate) fn new(limit: usize) -> EventStreamParser {
        EventStreamParser {
            limit,
            line: BytesMut::new(),
            data: EventData::Absent,
            event_type: EventType::Message,
            id: None,
            last_id: None,
            retry: None,
            after_cr: false,
            has_started: false,
            skipping: SkipState::Nothing,
            idle: IdleCount::default(),
        }
    }

    /// What came since this was asked last that carried no message, as so many messages that nobody waits for: comments,
    /// events without data or of another type, and what was let go of.
    pub(crate) fn take_idle(&mut self) -> usize {
        let IdleCount { fields: _, lines, bytes } = &mut self.idle;
        let pages = *bytes / BYTES_PER_MESSAGE;
        *bytes %= BYTES_PER_MESSAGE;
        std::mem::take(lines) + pages
    }

    /// Takes what arrived, and gives each event that it completes.
    pub(crate) fn feed(&mut self, chunk: Bytes, mut event: impl FnMut(Event)) {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            if rest[0] == b'\n' {
                rest.advance(1);
            }
        }
        while !rest.is_empty() {
            let found = memchr::memchr2(b'\n', b'\r', &rest);
            let part = rest.split_to(found.unwrap_or(rest.len()));
            match &rest[..] {
                [] => {}
                [b'\r', b'\n', ..] => rest.advance(2),
                [b'\r'] => {
                    rest.advance(1);
                    self.after_cr = true;
                }
                _ => rest.advance(1),
            }
            let Some(part) = self.filter_skipped(part, found.is_some(), &mut event) else { continue };
            if found.is_none() {
                self.line.extend_from_slice(&part);
                return;
            }
            let line = if self.line.is_empty() {
                part
            } else {
                self.line.extend_from_slice(&part);
                std::mem::take(&mut self.line).freeze()
            };
            self.end_line(line, &mut event);
        }
    }

    /// How many bytes have come of a line, or an event, that is let go of and will not end: nothing is heard behind it.
    pub(crate) fn endless_bytes(&self) -> Option<usize> {
        let len = match &self.skipping {
            SkipState::Nothing => return None,
            SkipState::Line(len) => *len,
            SkipState::Event(skipped, _) => skipped.len(),
        };
        is_endless(len, self.limit).then_some(len)
    }

    /// Is an event being let go of?
    #[cfg(feature = "http")]
    pub(crate) fn is_skipping(&self) -> bool {
        matches!(self.skipping, SkipState::Event(..))
    }

    /// A part of a line, unless it belongs to what is let go of.
    fn filter_skipped(&mut self, part: Bytes, ends: bool, event: &mut impl FnMut(Event)) -> Option<Bytes> {
        match &mut self.skipping {
            SkipState::Nothing => {}
            SkipState::Line(len) => {
                self.idle.bytes += part.len();
                *len += part.len();
                if ends {
                    self.skipping = SkipState::Nothing;
                }
                return None;
            }
            SkipState::Event(skipped, length) => {
                self.idle.bytes += part.len() + LINE_COST;
                *length += part.len();
                skipped.add(&part);
                match (ends, *length) {
                    (true, 0) => self.end_skipped(event),
                    (true, _) => *length = 0,
                    (false, _) => {}
                }
                return None;
            }
        }
        // So much has to be there that it can be told what the line is.
        let known = self.line.len() + part.len() >= b"\xef\xbb\xbfdata: ".len() || ends;
        let total = self.line.len() + self.data.len() + part.len();
        if !known || total <= self.limit.saturating_add(b"data: ".len()) {
            return Some(part);
        }
        self.line.extend_from_slice(&part);
        let line = std::mem::take(&mut self.line);
        let text = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| !self.has_started).unwrap_or(&line);
        let value = text.strip_prefix(b"data").filter(|it| matches!(it.first(), Some(b':') | None));
        let Some(value) = value else {
            // A line that is no data does not make its event larger, and means something only where it is short.
            return match (line.len() <= MAX_FIELD_BYTES, ends) {
                (true, true) => Some(line.freeze()),
                (true, false) => {
                    self.line = line;
                    Some(Bytes::new())
                }
                (false, true) => {
                    self.idle.field(line.len());
                    None
                }
                (false, false) => {
                    self.idle.field(line.len());
                    self.skipping = SkipState::Line(line.len());
                    None
                }
            };
        };
        self.has_started = true;
        let value = value.strip_prefix(b":").unwrap_or(value);
        self.skip(value.strip_prefix(b" ").unwrap_or(value), if ends { 0 } else { line.len() });
        None
    }

    /// Lets go of the event being read, whose data goes on with this.
    fn skip(&mut self, value: &[u8], length: usize) {
        let skipped = match std::mem::replace(&mut self.data, EventData::Absent) {
            EventData::Absent => SkippedMessage::begin(value),
            EventData::Line(line) => start_skipped(&line, value),
            EventData::Lines(lines) => start_skipped(&lines, value),
        };
        self.idle.bytes += skipped.len();
        self.skipping = SkipState::Event(skipped, length);
    }

    /// The event that was let go of is over.
    fn end_skipped(&mut self, event: &mut impl FnMut(Event)) {
        let SkipState::Event(skipped, _) = std::mem::replace(&mut self.skipping, SkipState::Nothing) else {
            return;
        };
        if let Some(id) = self.id.take() {
            self.last_id = Some(id);
        }
        match std::mem::replace(&mut self.event_type, EventType::Message) {
            EventType::Message => event(Event::TooLarge(skipped.finish())),
            EventType::Endpoint | EventType::Other => {}
        }
    }

    /// The stream has ended cleanly: what it leaves without the empty line that ends an event, where that `is_whole`. The
    /// standard discards it; some servers forget the line. An event that was cut off leaves no id either: the stream is
    /// taken up before it, not after.
    pub(crate) fn finish(&mut self, is_whole: impl Fn(&[u8]) -> bool) -> Option<Bytes> {
        if !matches!(self.skipping, SkipState::Nothing) {
            return None;
        }
        let before = self.last_id.clone();
        let mut rest = None;
        let line = std::mem::take(&mut self.line).freeze();
        if !line.is_empty() {
            self.end_line(line, &mut |it| rest = Some(it));
        }
        self.dispatch(&mut |it| rest = Some(it));
        let rest = match rest {
            Some(Event::Message(message)) if is_whole(&message) => Some(message),
            Some(Event::Message(_) | Event::Endpoint(_) | Event::TooLarge(_)) | None => None,
        };
        if rest.is_none() {
            self.last_id = before;
        }
        rest
    }

    /// The id of the last complete event that had one.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn last_id(&self) -> Option<&Bytes> {
        self.last_id.as_ref()
    }

    /// How long the server wants us to wait before the stream is asked for again.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn end_line(&mut self, mut line: Bytes, event: &mut impl FnMut(Event)) {
        if !self.has_started {
            self.has_started = true;
            if line.starts_with(b"\xef\xbb\xbf") {
                line.advance(3);
            }
        }
        if line.is_empty() {
            return self.dispatch(event);
        }
        let length = line.len();
        let colon = memchr::memchr(b':', &line);
        let start = match colon {
            Some(at) if line.get(at + 1) == Some(&b' ') => at + 2,
            Some(at) => at + 1,
            None => length,
        };
        let value = &line[start..];
        match &line[..colon.unwrap_or(length)] {
            b"data" => {
                self.idle.bytes += LINE_COST;
                if self.data.len() + value.len() > self.limit {
                    return self.skip(value, 0);
                }
                line.advance(start);
                self.data.push(line);
                return;
            }
            b"event" => {
                self.event_type = match value {
                    b"" | b"message" => EventType::Message,
                    b"endpoint" => EventType::Endpoint,
                    _ => EventType::Other,
                };
            }
            // Copied, for it outlives the chunk it came in.
            b"id" if !value.contains(&0) => self.id = Some(Bytes::copy_from_slice(value)),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let retry = str::from_utf8(value).ok().and_then(|it| it.parse().ok());
                self.retry = retry.map(Duration::from_millis).or(self.retry);
            }
            // A comment has an empty name.
            _ => {}
        }
        self.idle.field(length);
    }

    fn dispatch(&mut self, event: &mut impl FnMut(Event)) {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id);
        }
        let data = match std::mem::replace(&mut self.data, EventData::Absent) {
            EventData::Absent => Bytes::new(),
            EventData::Line(line) => line,
            EventData::Lines(lines) => lines.freeze(),
        };
        let fields = std::mem::take(&mut self.idle.fields);
        // An event without data gives an id or a `retry`, and says nothing.
        match std::mem::replace(&mut self.event_type, EventType::Message) {
            EventType::Message if !data.is_empty() => event(Event::Message(data)),
            EventType::Endpoint if !data.is_empty() => event(Event::Endpoint(data)),
            EventType::Message | EventType::Endpoint | EventType::Other => {
                self.idle.lines += fields + 1;
                self.idle.bytes += data.len();
            }
        }
    }
}

impl IdleCount {
    /// A line came that is no data.
    fn field(&mut self, bytes: usize) {
        match self.fields + 1 < MAX_EVENT_FIELDS {
            true => self.fields += 1,
            false => self.lines += 1,
        }
        self.bytes += bytes;
    }
}

fn start_skipped(data: &[u8], value: &[u8]) -> SkippedMessage {
    let mut res = SkippedMessage::begin(data);
    res.add(b"\n");
    res.add(value);
    res
}

impl EventData {
    fn len(&self) -> usize {
        match self {
            EventData::Absent => 0,
            EventData::Line(line) => line.len(),
            EventData::Lines(lines) => lines.len(),
        }
    }

    fn push(&mut self, value: Bytes) {
        *self = match std::mem::replace(self, EventData::Absent) {
            EventData::Absent => EventData::Line(value),
            EventData::Line(line) => {
                let mut lines = BytesMut::with_capacity(line.len() + value.len() + 1);
                lines.extend_from_slice(&line);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                EventData::Lines(lines)
            }
            EventData::Lines(mut lines) => {
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                EventData::Lines(lines)
            }
        };
    }
}

#[cfg(test)]
mod tests;
