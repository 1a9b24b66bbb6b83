//! The way from a child: lines to frames, and everything else to evidence.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStdout;

use super::Place;
use super::encoding::StreamDecoder;
use super::lines::{Line, Lines};
use crate::oversize::Oversize;
use crate::redact::Redactor;
use crate::{EndReason, Fault, Inbox, Lane, LaneEnd};

/// How much is read at once where it has to be decoded first.
const RAW_BYTES: usize = 64 << 10;

/// Reads messages and hands them to the engine.
pub(super) struct Reader {
    stdout: ChildStdout,
    inbox: Arc<dyn Inbox>,
    lines: Lines,
    decoder: Option<(StreamDecoder, BytesMut)>,
    redactor: Arc<Redactor>,
    /// Bytes that were no protocol, and the first of them as text.
    pub(super) noise: u64,
    pub(super) sample: Option<String>,
}

impl Reader {
    pub(super) fn new(stdout: ChildStdout, inbox: Arc<dyn Inbox>, place: &Place) -> Reader {
        Reader {
            stdout,
            inbox,
            lines: Lines::new(place.message_bytes),
            decoder: place.encoding.decoder().map(|it| (it, BytesMut::with_capacity(RAW_BYTES))),
            redactor: Arc::clone(&place.redactor),
            noise: 0,
            sample: None,
        }
    }

    /// Reads until the stream ends. Cancel-safe: what was read is in `lines`.
    pub(super) async fn run(&mut self) -> EndReason {
        loop {
            let read = match &mut self.decoder {
                None => self.stdout.read_buf(self.lines.room()).await,
                Some((decoder, raw)) => {
                    raw.clear();
                    let read = self.stdout.read_buf(raw).await;
                    decoder.decode(raw, self.lines.room());
                    read
                }
            };
            match read {
                Ok(0) => {
                    // Half a line is no message.
                    if let Some(rest) = self.lines.rest() {
                        self.noise(&rest);
                    }
                    return EndReason::PeerClosed;
                }
                Ok(_) => {}
                Err(error) => return EndReason::Broken(format!("reading from it failed: {error}")),
            }
            while let Some(line) = self.lines.next() {
                self.take(line);
            }
        }
    }

    /// Reads on while the process ends: answers that still come are delivered.
    pub(super) async fn drain(&mut self) {
        self.run().await;
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Whole(line) => match line.iter().find(|it| !it.is_ascii_whitespace()) {
                Some(b'{' | b'[') => self.inbox.deliver(Lane::Shared, line),
                _ => self.noise(&line),
            },
            Line::TooLong(oversize) => {
                let Oversize { head, tail: _, len } = &oversize;
                self.noise(head);
                self.noise += (len - head.len()) as u64;
                self.inbox.noise(len - head.len());
                // The call that it answered need not wait for its deadline.
                if let Some(id) = oversize.answers() {
                    let message = "its answer is larger than a message may be".to_owned();
                    self.inbox.lane_ended(id, LaneEnd::Lost(Fault { status: None, message, error: None }));
                }
            }
        }
    }

    fn noise(&mut self, bytes: &[u8]) {
        self.noise += bytes.len() as u64;
        self.inbox.noise(bytes.len());
        self.sample.get_or_insert_with(|| self.redactor.clean(&String::from_utf8_lossy(bytes), 120));
    }
}
