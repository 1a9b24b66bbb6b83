//! A server that sends without end, and what was read of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use tokio::time::Instant;

use crate::net::Response;
use crate::transport::{FrameSink, MessageClass, RequestId, StreamError, StreamId};

/// How often a chunk holds the text that is sent again and again.
pub(crate) const TIMES: usize = 100;

/// A response that brings this text again and again for as long as it is read, and how often that was.
pub(crate) fn response(text: &str) -> (Response, Arc<AtomicUsize>) {
    let chunk = Bytes::from(text.repeat(TIMES));
    let sent = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&sent);
    let body = stream::repeat_with(move || {
        counts.fetch_add(TIMES, Ordering::Relaxed);
        chunk.clone()
    });
    (Response::from_stream(body), sent)
}

/// Waits for answers alone, and notes when each came.
#[derive(Default)]
pub(crate) struct Answers(Mutex<Vec<Instant>>);

impl Answers {
    pub(crate) fn times(&self) -> Vec<Instant> {
        self.0.lock().expect("whoever holds it does not panic").clone()
    }
}

impl FrameSink for Answers {
    fn deliver(&self, _: StreamId, frame: Bytes) -> MessageClass {
        if frame.starts_with(b"{\"id\"") {
            self.0.lock().expect("whoever holds it does not panic").push(Instant::now());
            return MessageClass::Solicited;
        }
        MessageClass::Unsolicited(1)
    }

    fn awaits(&self, _: RequestId) -> bool {
        self.times().is_empty()
    }

    fn stream_failed(&self, _: RequestId, _: StreamError) {}

    fn noise(&self, _: usize) {}

    fn closing(&self) {}
}

/// Text that a server may flood an event stream with, and the number of unsolicited messages that each counts as.
pub(crate) const FLOODS: [(&str, usize); 7] = [
    ("event: message\nid: 1\ndata: {\"method\":\"notifications/tools/list_changed\"}\n\n", 1),
    (": ping\n\n", 2),
    (":\n", 1),
    ("event: ping\ndata: {}\n\n", 2),
    ("id: 7\n\n", 2),
    ("\n", 1),
    ("retry: 5\n", 1),
];
