//! Steps on the way of a message, for this crate's own measurements (`benches/parts.rs`, feature `parts`).
//!
//! No part of the crate's interface: it changes whenever a measurement does.

use bytes::Bytes;

use crate::net::event_stream::{Event, EventStream};
use crate::rpc::scan::{Id, ScannedFrame};
use crate::stdio::{Line, LineBuffer};

/// More than what is measured holds, in bytes.
const LIMIT: usize = 64 << 20;

/// How many whole lines there are in what a pipe brings in such pieces.
pub fn lines(pieces: &[Bytes]) -> usize {
    let mut lines = LineBuffer::new(LIMIT);
    let mut res = 0;
    for piece in pieces {
        lines.spare().extend_from_slice(piece);
        while let Some(line) = lines.next() {
            res += usize::from(matches!(line, Line::Whole(_)));
        }
    }
    res
}

/// The number of the call that a frame answers.
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

/// How many messages there are in an event stream that comes in such pieces.
pub fn messages(pieces: &[Bytes]) -> usize {
    let mut stream = EventStream::new(LIMIT);
    let mut res = 0;
    for piece in pieces {
        stream.feed(piece.clone(), |event| res += usize::from(matches!(event, Event::Message(_))));
    }
    res
}
