//! Two transports: one records another transport, one replays a recording.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_host_model::Secret;
use parking_lot::Mutex;

use crate::connection_log::ConnectionLog;
use crate::recorder::{ConnectionRecorder, Recorder};
use crate::recording::ServerRecording;
use crate::replayer::Replayer;
use mcp_host_transport::{
    Dial, FrameSink, HandshakeMode, Link, MessageClass, Outbound, OutboundQueue, RequestId, StreamError,
    StreamId, Transport,
};
use mcp_host_transport::{Disconnect, DisconnectReason, RequestError};

/// Maximum number of queue entries that are taken at once.
const MAX_BATCH_MESSAGES: usize = 64;

impl Recorder {
    /// Wraps `dial`; its connections are recorded under this server's name. `secrets` are redacted everywhere; pass
    /// [`endpoint_secrets`](crate::endpoint_secrets) and whatever else the server receives.
    pub fn wrap(&self, server: &str, dial: Arc<dyn Dial>, secrets: &[Secret]) -> Arc<dyn Dial> {
        Arc::new(RecordingDial { dial, recorder: self.connection_recorder(server, secrets) })
    }
}

/// Dials recorded connections.
pub(crate) struct RecordingDial {
    pub(crate) dial: Arc<dyn Dial>,
    pub(crate) recorder: ConnectionRecorder,
}

impl Dial for RecordingDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(RecordingTransport { transport: self.dial.dial(), log: self.recorder.start() })
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

    fn handshake_mode(&self) -> HandshakeMode {
        self.dial.handshake_mode()
    }

    fn can_lose_session(&self) -> bool {
        self.dial.can_lose_session()
    }

    fn fallback(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let dial = self.dial.fallback(refusal)?;
        Some(Arc::new(RecordingDial { dial, recorder: self.recorder.clone() }))
    }
}

/// Records the messages of another transport.
struct RecordingTransport {
    transport: Box<dyn Transport>,
    log: Arc<Mutex<ConnectionLog>>,
}

#[async_trait]
impl Transport for RecordingTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let RecordingTransport { transport, log } = *self;
        let Link { mut outbound, inbound: sink, shutdown, .. } = link;
        let (sender, queue) = OutboundQueue::new();
        let sink = Arc::new(RecordingSink { sink, log: Arc::clone(&log) });
        let running = transport.run(Link::new(queue, sink, shutdown));
        let forwarding = async {
            let mut batch = Vec::with_capacity(MAX_BATCH_MESSAGES);
            while outbound.next_many(&mut batch, MAX_BATCH_MESSAGES).await > 0 {
                for entry in batch.drain(..) {
                    if let Outbound::Send(message) = &entry {
                        log.lock().record_client_frame(&message.body);
                    }
                    sender.send(entry);
                }
            }
            // The engine has ended: closing its queue ends the transport.
            drop(sender);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = running => ended,
            () = forwarding => unreachable!("it ends with the transport"),
        }
    }
}

/// Records each message before the engine receives it.
struct RecordingSink {
    sink: Arc<dyn FrameSink>,
    log: Arc<Mutex<ConnectionLog>>,
}

impl FrameSink for RecordingSink {
    fn deliver(&self, stream: StreamId, frame: Bytes) -> MessageClass {
        let request_id = stream.request().map(|id| id.to_string());
        self.log.lock().record_server_frame(&frame, request_id.as_deref());
        self.sink.deliver(stream, frame)
    }

    fn is_pending(&self, id: RequestId) -> bool {
        self.sink.is_pending(id)
    }

    fn fail_stream(&self, id: RequestId, error: StreamError) {
        match &error {
            StreamError::NotExecuted(_) => self.log.lock().remove_request(&id.to_string()),
            StreamError::Unreachable(error) | StreamError::Refused(error) => match error.rpc_error() {
                Some(error) => self.log.lock().record_refusal(&id.to_string(), error),
                // An error of the transport itself has no meaning on another transport.
                None => self.log.lock().remove_request(&id.to_string()),
            },
            // There was no response, so none is replayed.
            _ => {}
        }
        self.sink.fail_stream(id, error);
    }

    fn record_noise(&self, bytes: usize) {
        self.sink.record_noise(bytes);
    }

    fn record_noise_text(&self, text: &[u8]) {
        self.sink.record_noise_text(text);
    }

    fn end_calls(&self) {
        self.sink.end_calls();
    }
}

impl ServerRecording {
    /// Returns a dialer that replays this recording. Each connection starts at its beginning.
    pub fn dialer(self: &Arc<ServerRecording>) -> Arc<dyn Dial> {
        Arc::new(ReplayDial(Arc::clone(self)))
    }
}

/// Dials connections that replay a recording.
struct ReplayDial(Arc<ServerRecording>);

impl Dial for ReplayDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(ReplayTransport(Replayer::new(Arc::clone(&self.0))))
    }

    fn label(&self) -> String {
        format!("a recording of {}", self.0.server)
    }

    fn redact(&self, text: &str) -> String {
        mcp_host_transport::internal::Redactor::new(std::iter::empty()).clean(text, 2000)
    }

    fn redact_json(&self, _: &str) -> Option<String> {
        // The secrets were redacted when it was recorded.
        None
    }
}

/// Replays a recording to one connection.
struct ReplayTransport(Replayer);

#[async_trait]
impl Transport for ReplayTransport {
    async fn run(mut self: Box<Self>, link: Link) -> Disconnect {
        let Link { mut outbound, inbound: sink, mut shutdown, .. } = link;
        loop {
            let entry = tokio::select! {
                entry = outbound.next() => entry,
                _ = shutdown.requested() => return Disconnect::new(DisconnectReason::Stopped),
            };
            let body = match entry {
                Some(Outbound::Send(message)) => message.body,
                Some(Outbound::Cancel { id: _, notice: Some(notice) }) => notice,
                Some(Outbound::Cancel { id: _, notice: None }) => continue,
                None => return Disconnect::new(DisconnectReason::Stopped),
            };
            for replayed in self.0.receive(&body) {
                sink.deliver(StreamId::Shared, replayed.message);
            }
        }
    }
}
