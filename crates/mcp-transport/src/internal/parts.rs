//! Single steps of processing a message, for `benches/parts.rs` (feature `parts`).
//!
//! Not part of the public API.

use bytes::Bytes;

use crate::net::event_stream::{Event, EventStreamParser};
use crate::rpc::scan::{Id, ScannedFrame};
use crate::stdio::{Line, LineBuffer};

/// A limit that the measured messages do not reach, in bytes.
const LIMIT: usize = 64 << 20;

/// Counts the complete lines in chunks from a pipe.
pub fn lines(pieces: &[Bytes]) -> usize {
    let mut lines = LineBuffer::new(LIMIT);
    let mut res = 0;
    for piece in pieces {
        lines.spare().extend_from_slice(piece);
        while let Some(line) = lines.next_line() {
            res += usize::from(matches!(line, Line::Whole(_)));
        }
    }
    res
}

/// The id of the call that a frame responds to.
pub fn answered(frame: &[u8]) -> Option<u64> {
    match crate::rpc::scan::scan(frame) {
        ScannedFrame::Response { id: Id::Number(id), .. } => Some(id),
        ScannedFrame::Response { id: Id::Absent | Id::Foreign, .. }
        | ScannedFrame::Request { .. }
        | ScannedFrame::Notification { .. }
        | ScannedFrame::Batch(_)
        | ScannedFrame::Noise => None,
    }
}

/// Counts the messages in chunks of an event stream.
pub fn messages(pieces: &[Bytes]) -> usize {
    let mut stream = EventStreamParser::new(LIMIT);
    let mut res = 0;
    for piece in pieces {
        stream.feed(piece.clone(), |event| res += usize::from(matches!(event, Event::Message(_))));
    }
    res
}
