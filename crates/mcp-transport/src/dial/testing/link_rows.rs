//! Rows that run a transport without a session: how `run` ends, and what its future releases when it is dropped.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcp_host_model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::run::ReceivedMessages;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::transport::{
    Dial, Epoch, FrameSink, Link, MessageClass, MessageHead, Outbound, OutboundMessage, OutboundQueue,
    OutboundSender, RequestId, ShutdownSender, ShutdownSignal, StreamError, StreamId, force_time,
};

/// The deadline of a shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How long a transport may take to return after its queue has ended.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a dropped future may take to release its link: its tasks are aborted, and end when they run next.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The size of a message that takes longer to send.
const LARGE_MESSAGE_BYTES: usize = 12 << 20;

/// A dial, and what its server received.
pub(super) struct LinkRun {
    pub(super) dial: Arc<dyn Dial>,
    pub(super) received: ReceivedMessages,
}

/// The engine's ends of a running transport.
struct RunningTransport {
    /// The task of `run`.
    task: JoinSet<Disconnect>,
    outbound: OutboundSender,
    stop: ShutdownSender,
    /// Owned by the transport.
    sink: Weak<ResponseCounter>,
    responses: watch::Receiver<usize>,
}

/// Counts responses.
struct ResponseCounter(watch::Sender<usize>);

impl FrameSink for ResponseCounter {
    fn deliver(&self, _: StreamId, frame: Bytes) -> MessageClass {
        let is_response =
            serde_json::from_slice::<Value>(&frame).is_ok_and(|message| message.get("result").is_some());
        if !is_response {
            return MessageClass::Unsolicited(1);
        }
        self.0.send_modify(|count| *count += 1);
        MessageClass::Solicited
    }

    fn is_pending(&self, _: RequestId) -> bool {
        true
    }

    fn fail_stream(&self, _: RequestId, _: StreamError) {}

    fn record_noise(&self, _: usize) {}

    fn end_calls(&self) {}
}

impl RunningTransport {
    fn start(dial: &dyn Dial) -> RunningTransport {
        let (outbound, queue) = OutboundQueue::new();
        let (stop, shutdown) = ShutdownSignal::new();
        let (sender, responses) = watch::channel(0);
        let sink = Arc::new(ResponseCounter(sender));
        let (transport, weak_sink) = (dial.dial(), Arc::downgrade(&sink));
        let mut task = JoinSet::new();
        task.spawn(transport.run(Link::new(queue, sink, shutdown)));
        RunningTransport { task, outbound, stop, sink: weak_sink, responses }
    }

    /// Starts a transport and does the handshake of the legacy era.
    async fn open(run: &LinkRun) -> RunningTransport {
        let mut running = RunningTransport::start(&*run.dial);
        let params = json!({
            "protocolVersion": ProtocolVersion::LATEST_LEGACY.to_string(), "capabilities": {},
            "clientInfo": {"name": "check", "version": "1"},
        });
        running.send(Some(1), "initialize", &params);
        // If the transport ends, the row ends with an error when it waits for the next message.
        let _ = running.responses.wait_for(|count| *count > 0).await;
        running.send(None, "notifications/initialized", &json!({}));
        run.received.wait_for_method("notifications/initialized").await;
        running
    }

    fn send(&self, id: Option<RequestId>, method: &'static str, params: &Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        let version = id.is_none().then_some(ProtocolVersion::LATEST_LEGACY);
        let head = MessageHead::new(id, method, version);
        let body = Bytes::from(message.to_string());
        self.outbound.send(Outbound::Send(OutboundMessage::new(Epoch(0), head, body)));
    }

    /// Waits until `run` returns.
    async fn wait_for_return(task: &mut JoinSet<Disconnect>, timeout: Duration) -> String {
        match tokio::time::timeout(timeout, task.join_next()).await {
            Ok(Some(Ok(disconnect))) if disconnect.reason == DisconnectReason::Stopped => {
                "it returned: stopped".to_owned()
            }
            Ok(Some(Ok(disconnect))) => format!("it returned: {:?}", disconnect.reason),
            Ok(Some(Err(_)) | None) => "it panicked".to_owned(),
            Err(_) => "it did not return".to_owned(),
        }
    }

    /// Drops the future of `run`, and waits until the ends of its link are released.
    async fn drop_future(mut self) -> String {
        self.task.abort_all();
        let _ = self.task.join_next().await;
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        loop {
            let held: Vec<&str> = [
                ("the receiver of frames", self.sink.strong_count() > 0),
                ("the queue", !self.outbound.is_closed()),
                ("the shutdown signal", self.stop.has_receiver()),
            ]
            .into_iter()
            .filter_map(|(name, is_held)| is_held.then_some(name))
            .collect();
            if held.is_empty() {
                return "nothing is left".to_owned();
            }
            if Instant::now() > deadline {
                return format!("{} is still in use", held.join(", "));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Ends the queue, without a shutdown.
pub(super) async fn end_queue(run: LinkRun) -> String {
    let RunningTransport { mut task, outbound, stop, .. } = RunningTransport::open(&run).await;
    drop(outbound);
    let outcome = RunningTransport::wait_for_return(&mut task, END_TIMEOUT).await;
    drop(stop);
    // The reason is not part of the contract: nothing receives it.
    if outcome.starts_with("it returned") { "it returned".to_owned() } else { outcome }
}

/// Requests a shutdown.
pub(super) async fn shut_down(run: LinkRun) -> String {
    let mut running = RunningTransport::open(&run).await;
    running.stop.request(Instant::now() + SHUTDOWN_GRACE);
    RunningTransport::wait_for_return(&mut running.task, SHUTDOWN_GRACE + force_time(SHUTDOWN_GRACE)).await
}

/// Drops the future after its first poll.
pub(super) async fn drop_at_once(run: LinkRun) -> String {
    let running = RunningTransport::start(&*run.dial);
    tokio::task::yield_now().await;
    running.drop_future().await
}

/// Drops the future while nothing is sent.
pub(super) async fn drop_while_idle(run: LinkRun) -> String {
    RunningTransport::open(&run).await.drop_future().await
}

/// Drops the future while a message is sent.
pub(super) async fn drop_while_sending(run: LinkRun) -> String {
    let running = RunningTransport::open(&run).await;
    running.send(None, "notifications/check", &json!({"text": "x".repeat(LARGE_MESSAGE_BYTES)}));
    tokio::task::yield_now().await;
    running.drop_future().await
}
