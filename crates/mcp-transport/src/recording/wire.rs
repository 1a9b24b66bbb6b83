//! The two wires of this module: one around another, which is written down, and one without a world, which plays.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;

use super::player::Player;
use super::recorder::{Recorded, lock};
use super::take::Take;
use super::tape::Tape;
use crate::error::end::{EndReason, Ended, Fault};
use crate::transport::{
    Dial, Inbox, Lane, LaneEnd, Link, Opening, Out, OutQueue, RequestId, Transport, Worth,
};

/// How many messages are taken at once.
const BATCH: usize = 64;

/// A place whose connections are written down.
pub(super) struct RecordedDial {
    pub(super) dial: Arc<dyn Dial>,
    pub(super) recorded: Recorded,
}

impl Dial for RecordedDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(RecordedWire { wire: self.dial.dial(), take: self.recorded.begin() })
    }

    fn label(&self) -> String {
        self.dial.label()
    }

    fn redact(&self, text: &str) -> String {
        self.dial.redact(text)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.dial.redact_json(json)
    }

    fn opening(&self) -> Opening {
        self.dial.opening()
    }

    fn otherwise(&self, refusal: &Fault) -> Option<Arc<dyn Dial>> {
        let dial = self.dial.otherwise(refusal)?;
        Some(Arc::new(RecordedDial { dial, recorded: self.recorded.clone() }))
    }
}

struct RecordedWire {
    wire: Box<dyn Transport>,
    take: Arc<Mutex<Take>>,
}

#[async_trait]
impl Transport for RecordedWire {
    async fn run(self: Box<Self>, link: Link) -> Ended {
        let RecordedWire { wire, take } = *self;
        let Link { mut out, inbox, stop } = link;
        let (sender, passed) = OutQueue::new();
        let inbox = Arc::new(Listening { inbox, take: Arc::clone(&take) });
        let running = wire.run(Link { out: passed, inbox, stop });
        let passing = async {
            let mut batch = Vec::with_capacity(BATCH);
            while out.next_many(&mut batch, BATCH).await > 0 {
                for it in batch.drain(..) {
                    if let Out::Message(message) = &it {
                        lock(&take).sent(&message.body);
                    }
                    sender.send(it);
                }
            }
            // The engine is gone, and the wire is to see it.
            drop(sender);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = running => ended,
            () = passing => unreachable!("it ends with the wire"),
        }
    }
}

/// Hears what the engine hears.
struct Listening {
    inbox: Arc<dyn Inbox>,
    take: Arc<Mutex<Take>>,
}

impl Inbox for Listening {
    fn deliver(&self, lane: Lane, frame: Bytes) -> Worth {
        let own = match lane {
            Lane::Request(id, _) => Some(id.to_string()),
            Lane::Shared | Lane::Listening(_) => None,
        };
        lock(&self.take).heard(&frame, own.as_deref());
        self.inbox.deliver(lane, frame)
    }

    fn lane_ended(&self, id: RequestId, why: LaneEnd) {
        match &why {
            // No answer came, and none is played.
            LaneEnd::Lost(_) | LaneEnd::TooLarge(_) => {}
            LaneEnd::NotExecuted(_) => lock(&self.take).undone(&id.to_string()),
            LaneEnd::Refused(Fault { error: Some(error), .. }) => {
                lock(&self.take).refused(&id.to_string(), error);
            }
            // The refusal of a wire says nothing that another wire could say.
            LaneEnd::Refused(_) => lock(&self.take).undone(&id.to_string()),
        }
        self.inbox.lane_ended(id, why);
    }

    fn noise(&self, bytes: usize) {
        self.inbox.noise(bytes);
    }
}

impl Tape {
    /// A place that plays it, each connection from its beginning.
    pub fn dialer(self: &Arc<Tape>) -> Arc<dyn Dial> {
        Arc::new(PlayedDial(Arc::clone(self)))
    }
}

struct PlayedDial(Arc<Tape>);

impl Dial for PlayedDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(PlayedWire(Player::new(Arc::clone(&self.0))))
    }

    fn label(&self) -> String {
        format!("a recording of {}", self.0.server)
    }

    fn redact(&self, text: &str) -> String {
        crate::redact::Redactor::new(std::iter::empty()).clean(text, 2000)
    }

    fn redact_json(&self, _: &str) -> Option<String> {
        // They were taken out when it was recorded.
        None
    }

    fn opening(&self) -> Opening {
        Opening::Negotiate
    }
}

struct PlayedWire(Player);

#[async_trait]
impl Transport for PlayedWire {
    async fn run(mut self: Box<Self>, link: Link) -> Ended {
        let Link { mut out, inbox, mut stop } = link;
        loop {
            let out = tokio::select! {
                out = out.next() => out,
                _ = stop.requested() => return Ended::new(EndReason::Stopped),
            };
            let body = match out {
                Some(Out::Message(message)) => message.body,
                Some(Out::Abandon { id: _, notice: Some(notice) }) => notice,
                Some(Out::Abandon { id: _, notice: None }) => continue,
                None => return Ended::new(EndReason::Stopped),
            };
            for played in self.0.hear(&body) {
                inbox.deliver(Lane::Shared, played.message);
            }
        }
    }
}
