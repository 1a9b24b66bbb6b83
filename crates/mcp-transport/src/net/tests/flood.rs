//! A server that sends without end, and a sink that records when responses are delivered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use tokio::time::Instant;

use crate::net::Response;
use crate::transport::{FrameSink, MessageClass, RequestId, StreamError, StreamId};

/// Number of repetitions of the text in a chunk.
pub(crate) const REPETITIONS: usize = 100;

/// A response that repeats `text` without end. Returns it with the number of repetitions that were read.
pub(crate) fn response(text: &str) -> (Response, Arc<AtomicUsize>) {
    let chunk = Bytes::from(text.repeat(REPETITIONS));
    let sent = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&sent);
    let body = stream::repeat_with(move || {
        counts.fetch_add(REPETITIONS, Ordering::Relaxed);
        chunk.clone()
    });
    (Response::from_stream(body), sent)
}

/// A sink that waits for a response, and records when each response is delivered.
#[derive(Default)]
pub(crate) struct ResponseRecorder(Mutex<Vec<Instant>>);

impl ResponseRecorder {
    pub(crate) fn times(&self) -> Vec<Instant> {
        self.0.lock().expect("no holder panics").clone()
    }
}

impl FrameSink for ResponseRecorder {
    fn deliver(&self, _: StreamId, frame: Bytes) -> MessageClass {
        if frame.starts_with(b"{\"id\"") {
            self.0.lock().expect("no holder panics").push(Instant::now());
            return MessageClass::Solicited;
        }
        MessageClass::Unsolicited(1)
    }

    fn is_pending(&self, _: RequestId) -> bool {
        self.times().is_empty()
    }

    fn fail_stream(&self, _: RequestId, _: StreamError) {}

    fn record_noise(&self, _: usize) {}

    fn end_calls(&self) {}
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
