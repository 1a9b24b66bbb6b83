//! An incremental parser of `text/event-stream`: bytes in, events out, no I/O.
//!
//! Each byte is scanned once, wherever the chunks are cut, and a line within one chunk is not copied. An event
//! that is too large is skipped as it arrives, and parsing continues after it: [`Event::TooLarge`]. Events of
//! types other than `message` and `endpoint` are ignored, because MCP does not use them.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::rpc::oversize::{OversizedMessage, SkippedMessage, is_endless};
use crate::rpc::rate_limiter::BYTES_PER_MESSAGE;

/// A byte order mark, which may precede the first line.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The usual beginning of a line with data. The space is optional.
const DATA_PREFIX: &[u8] = b"data: ";

/// Fields other than `data` of at most this length in bytes are parsed even above the limit of an event.
const MAX_FIELD_BYTES: usize = 1024;

/// The number of lines without data that are free in an event with a message: its type, its id and a `retry`.
const FREE_FIELDS_PER_EVENT: usize = 3;

/// The number of overhead bytes that each data line counts as, so that many short lines reach the rate limit.
const LINE_COST: usize = 64;

/// The parser of one stream.
pub struct EventStreamParser {
    /// Maximum number of data bytes of an event.
    limit: usize,
    /// The incomplete line.
    line: BytesMut,
    /// The data of the current event.
    data: EventData,
    /// The type of the current event.
    event_type: EventType,
    /// The id of the current event. It takes effect when the event is complete.
    id: Option<Bytes>,
    /// The id of the last complete event that had one.
    pub(crate) last_id: Option<Bytes>,
    /// The delay that the server requests before a resumption.
    pub(crate) retry: Option<Duration>,
    /// The last line ended with CR: a following LF belongs to it.
    after_cr: bool,
    /// The first line is complete: no byte order mark can follow.
    has_started: bool,
    /// The part that is being skipped.
    skipping: SkipState,
    overhead: OverheadCount,
}

/// The work that the rate limit charges beside the messages themselves: comments, ignored events, skipped data, and a
/// cost per line.
#[derive(Default)]
struct OverheadCount {
    /// The first lines without data of the current event. They count only if the event contains no message.
    free_fields: usize,
    /// Counted lines. Each counts as a message.
    lines: usize,
    /// Counted bytes. [`BYTES_PER_MESSAGE`] of them count as a message.
    bytes: usize,
}

/// The part of the stream that is being skipped.
enum SkipState {
    Nothing,
    /// The rest of an ignored line, with its number of bytes so far.
    Line(usize),
    /// The rest of an event.
    Event {
        message: SkippedMessage,
        /// The number of bytes of its current line so far.
        line_bytes: usize,
    },
}

/// A part of a line, within one chunk.
#[derive(Clone, Copy)]
struct LinePart<'a> {
    bytes: &'a [u8],
    /// The line ends after this part.
    ends_line: bool,
}

/// An event of a type that MCP uses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum Event {
    /// A message.
    Message(Bytes),
    /// The URL for messages to a server, in protocol version 2024-11-05.
    Endpoint(Bytes),
    /// A message that exceeds the limit.
    TooLarge(OversizedMessage),
}

/// The type of the current event.
#[derive(Debug, Clone, Copy)]
enum EventType {
    Message,
    Endpoint,
    Other,
}

/// The data of the current event.
enum EventData {
    Absent,
    /// One line, usually a slice of a chunk.
    Line(Bytes),
    /// Several lines joined.
    Lines(BytesMut),
}

impl EventStreamParser {
    /// Creates a parser for events of at most `limit` bytes of data.
    pub fn new(limit: usize) -> EventStreamParser {
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
            overhead: OverheadCount::default(),
        }
    }

    /// Returns and resets the work that is charged beside the messages themselves, as a number of messages for the rate
    /// limit.
    pub fn take_overhead(&mut self) -> usize {
        let OverheadCount { free_fields: _, lines, bytes } = &mut self.overhead;
        let messages = *bytes / BYTES_PER_MESSAGE;
        *bytes %= BYTES_PER_MESSAGE;
        std::mem::take(lines) + messages
    }

    /// Parses a chunk, and calls `on_event` with each event that it completes.
    pub fn feed(&mut self, chunk: Bytes, mut on_event: impl FnMut(Event)) {
        let mut rest = &chunk[..];
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while !rest.is_empty() {
            let found = memchr::memchr2(b'\n', b'\r', rest);
            let (bytes, end) = rest.split_at(found.unwrap_or(rest.len()));
            // A CR at the end of the chunk: its LF may be in the next one.
            self.after_cr = end == b"\r";
            rest = end.strip_prefix(b"\r\n").or_else(|| end.get(1..)).unwrap_or_default();
            let part = LinePart { bytes, ends_line: found.is_some() };
            let Some(part) = self.filter_skipped(part, &mut on_event) else { continue };
            if found.is_some() && self.line.is_empty() {
                self.end_line(part, &chunk, &mut on_event);
                continue;
            }
            self.line.extend_from_slice(part);
            if found.is_some() {
                let line = std::mem::take(&mut self.line).freeze();
                self.end_line(&line, &line, &mut on_event);
            }
        }
    }

    /// The number of bytes of a skipped line or event, if it is so long that the stream counts as endless.
    pub(crate) fn endless_bytes(&self) -> Option<usize> {
        let len = match &self.skipping {
            SkipState::Nothing => return None,
            SkipState::Line(len) => *len,
            SkipState::Event { message, line_bytes: _ } => message.len(),
        };
        is_endless(len, self.limit).then_some(len)
    }

    /// Whether an event is being skipped.
    #[cfg(feature = "http")]
    pub(crate) fn is_skipping(&self) -> bool {
        matches!(self.skipping, SkipState::Event { .. })
    }

    /// Returns the bytes of a part of a line, or `None` if they are skipped.
    fn filter_skipped<'a>(
        &mut self,
        part: LinePart<'a>,
        on_event: &mut impl FnMut(Event),
    ) -> Option<&'a [u8]> {
        if matches!(self.skipping, SkipState::Nothing) {
            return self.start_skipping(part);
        }
        self.continue_skipping(part, on_event);
        None
    }

    /// Skips a part of a line. Reports a skipped event at its end.
    fn continue_skipping(&mut self, part: LinePart<'_>, on_event: &mut impl FnMut(Event)) {
        let LinePart { bytes, ends_line } = part;
        match &mut self.skipping {
            SkipState::Nothing => {}
            SkipState::Line(line_bytes) => {
                self.overhead.bytes += bytes.len();
                *line_bytes += bytes.len();
                if ends_line {
                    self.skipping = SkipState::Nothing;
                }
            }
            SkipState::Event { message, line_bytes } => {
                self.overhead.bytes += bytes.len() + LINE_COST;
                *line_bytes += bytes.len();
                message.add(bytes);
                if ends_line {
                    // An empty line ends the event.
                    match *line_bytes {
                        0 => self.end_skipped(on_event),
                        _ => *line_bytes = 0,
                    }
                }
            }
        }
    }

    /// Starts to skip the line or the event, if it exceeds its limit with this part. Otherwise returns the bytes of the
    /// part that are not in `self.line` yet.
    fn start_skipping<'a>(&mut self, part: LinePart<'a>) -> Option<&'a [u8]> {
        let LinePart { bytes, ends_line } = part;
        // The field name must be complete before the line is classified.
        let has_field_name = self.line.len() + bytes.len() >= BOM.len() + DATA_PREFIX.len() || ends_line;
        let total = self.line.len() + self.data.len() + bytes.len();
        if !has_field_name || total <= self.limit.saturating_add(DATA_PREFIX.len()) {
            return Some(bytes);
        }
        self.line.extend_from_slice(bytes);
        let line = std::mem::take(&mut self.line);
        let text = line.strip_prefix(BOM).filter(|_| !self.has_started).unwrap_or(&line);
        let value = text.strip_prefix(b"data").filter(|it| matches!(it.first(), Some(b':') | None));
        let Some(value) = value else {
            // A line without data does not count towards the limit. Only a short one has a meaning.
            if line.len() <= MAX_FIELD_BYTES {
                self.line = line;
                return Some(&[]);
            }
            self.overhead.add_line(line.len());
            if !ends_line {
                self.skipping = SkipState::Line(line.len());
            }
            return None;
        };
        self.has_started = true;
        let value = value.strip_prefix(b":").unwrap_or(value);
        self.skip_event(value.strip_prefix(b" ").unwrap_or(value), if ends_line { 0 } else { line.len() });
        None
    }

    /// Starts to skip the current event. Its data continues with `value`. `line_bytes` is the length of the current
    /// line so far; 0 if it has ended.
    fn skip_event(&mut self, value: &[u8], line_bytes: usize) {
        let message = match std::mem::replace(&mut self.data, EventData::Absent) {
            EventData::Absent => SkippedMessage::start(value),
            EventData::Line(line) => start_skipped(&line, value),
            EventData::Lines(lines) => start_skipped(&lines, value),
        };
        self.overhead.bytes += message.len();
        self.skipping = SkipState::Event { message, line_bytes };
    }

    /// Ends the skipped event, and reports it if it is a message.
    fn end_skipped(&mut self, on_event: &mut impl FnMut(Event)) {
        let skipping = std::mem::replace(&mut self.skipping, SkipState::Nothing);
        let SkipState::Event { message, line_bytes: _ } = skipping else { return };
        if let Some(id) = self.id.take() {
            self.last_id = Some(id);
        }
        match std::mem::replace(&mut self.event_type, EventType::Message) {
            EventType::Message => on_event(Event::TooLarge(message.finish())),
            EventType::Endpoint | EventType::Other => {}
        }
    }

    /// Ends a stream that was closed cleanly. Some servers omit the empty line after the last message. By the standard,
    /// a client must discard such a message; this parser returns it if `is_whole` returns true for it. Otherwise its id
    /// is discarded, so that the stream is resumed before it.
    pub fn finish(&mut self, is_whole: impl Fn(&[u8]) -> bool) -> Option<Bytes> {
        let has_rest = !self.line.is_empty() || !matches!(self.data, EventData::Absent);
        if !has_rest || !matches!(self.skipping, SkipState::Nothing) {
            return None;
        }
        let last_id_before = self.last_id.clone();
        let mut rest = None;
        let line = std::mem::take(&mut self.line).freeze();
        if !line.is_empty() {
            self.end_line(&line, &line, &mut |it| rest = Some(it));
        }
        self.dispatch(&mut |it| rest = Some(it));
        let rest = match rest {
            Some(Event::Message(message)) if is_whole(&message) => Some(message),
            Some(Event::Message(_) | Event::Endpoint(_) | Event::TooLarge(_)) | None => None,
        };
        if rest.is_none() {
            self.last_id = last_id_before;
        }
        rest
    }

    /// Handles a complete line, which is part of `buffer`.
    fn end_line(&mut self, mut line: &[u8], buffer: &Bytes, on_event: &mut impl FnMut(Event)) {
        if !std::mem::replace(&mut self.has_started, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let length = line.len();
        let colon = line.iter().position(|byte| *byte == b':');
        let start = match colon {
            Some(at) if line.get(at + 1) == Some(&b' ') => at + 2,
            Some(at) => at + 1,
            None => length,
        };
        let value = &line[start..];
        match &line[..colon.unwrap_or(length)] {
            b"data" => {
                self.overhead.bytes += LINE_COST;
                if self.data.len() + value.len() > self.limit {
                    return self.skip_event(value, 0);
                }
                self.data.push(buffer.slice_ref(value));
                return;
            }
            b"event" => {
                self.event_type = match value {
                    b"" | b"message" => EventType::Message,
                    b"endpoint" => EventType::Endpoint,
                    _ => EventType::Other,
                };
            }
            // Copied, because it outlives its chunk.
            b"id" if !value.contains(&0) => self.id = Some(Bytes::copy_from_slice(value)),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let retry = str::from_utf8(value).ok().and_then(|it| it.parse().ok());
                self.retry = retry.map(Duration::from_millis).or(self.retry);
            }
            // A comment has an empty name.
            _ => {}
        }
        self.overhead.add_line(length);
    }

    /// Ends the current event, and reports it if it has data and MCP uses its type.
    fn dispatch(&mut self, on_event: &mut impl FnMut(Event)) {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id);
        }
        let data = match std::mem::replace(&mut self.data, EventData::Absent) {
            EventData::Absent => Bytes::new(),
            EventData::Line(line) => line,
            EventData::Lines(lines) => lines.freeze(),
        };
        let free_fields = std::mem::take(&mut self.overhead.free_fields);
        // An event without data only sets an id or a `retry`.
        match std::mem::replace(&mut self.event_type, EventType::Message) {
            EventType::Message if !data.is_empty() => on_event(Event::Message(data)),
            EventType::Endpoint if !data.is_empty() => on_event(Event::Endpoint(data)),
            EventType::Message | EventType::Endpoint | EventType::Other => {
                // Without a message, the fields are not free, and the empty line counts too.
                self.overhead.lines += free_fields + 1;
                self.overhead.bytes += data.len();
            }
        }
    }
}

impl OverheadCount {
    /// Counts a line without data.
    fn add_line(&mut self, bytes: usize) {
        if self.free_fields < FREE_FIELDS_PER_EVENT {
            self.free_fields += 1
        } else {
            self.lines += 1
        }
        self.bytes += bytes;
    }
}

/// Starts to skip a message with the lines `data` and a next line that begins with `value`.
fn start_skipped(data: &[u8], value: &[u8]) -> SkippedMessage {
    let mut res = SkippedMessage::start(data);
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
