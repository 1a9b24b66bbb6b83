//! Our wires under the official SDK's client.
//!
//! An rmcp user keeps the SDK's types, handlers and peer, and gains what its own transports lack: wires that it does
//! not have, a handshake that ends, and errors instead of requests that wait for ever when a server dies, answers what
//! cannot be read, or forgets its session. What the SDK does above the transport stays as it is.

mod convert;
mod ledger;
mod server_requests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcp_model::{RpcError, code};
use rmcp::RoleClient;
use rmcp::model::{JsonRpcError, JsonRpcMessage, RequestId as SdkId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use convert::{
    ConvertError, content_from_rmcp, content_to_rmcp, error_from_rmcp, error_to_rmcp, result_from_rmcp,
    result_to_rmcp, tool_from_rmcp, tool_to_rmcp,
};

use ledger::{Act, Ledger};
use mcp_transport::internal::OutboundSender;
use mcp_transport::internal::frame;
use mcp_transport::internal::scan::{Id, ScannedFrame, scan};
use mcp_transport::{
    Dial, FrameSink, Link, MessageClass, OutboundQueue, RequestId, ShutdownSignal, StreamError, StreamId,
};
use mcp_transport::{Disconnect, DisconnectReason};

/// How many messages of the server's own may wait for the SDK; more are dropped, and requests refused.
const MOST_WAITING: usize = 1024;

/// And how many bytes they may hold together.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// How many bytes may wait to be sent.
const MOST_QUEUED_BYTES: usize = 64 << 20;

/// How much longer than its grace a wire may take to end before it is cut off.
const OVERTIME: Duration = Duration::from_millis(500);

/// How a wire behaves under the SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RmcpOptions {
    /// How long the server may take for its first answer; 60 s unless set. A first `npx` downloads its package.
    pub handshake: Duration,
    /// How long a close may take before the connection is cut off; 2 s unless set.
    pub grace: Duration,
}

impl Default for RmcpOptions {
    fn default() -> RmcpOptions {
        RmcpOptions { handshake: Duration::from_secs(60), grace: Duration::from_secs(2) }
    }
}

/// Why the SDK cannot send a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RmcpError {
    /// The connection is over.
    #[error("the server is no longer available: {0}")]
    Closed(Arc<Disconnect>),
    /// Too much waits already.
    #[error("the server does not read what is sent to it")]
    QueueFull,
    /// It is no message that a wire can carry.
    #[error("the message cannot be sent: {0}")]
    InvalidMessage(String),
}

/// One of our wires as a transport of rmcp's client: `handler.serve(RmcpTransport::new(…)).await`.
///
/// The connection begins when it is made, in a task of the Tokio runtime it is made in, and is cut off when it is
/// dropped; [`close`](rmcp::transport::Transport::close), which the SDK calls, ends it politely.
///
/// ```no_run
/// use mcp_model::{Endpoint, StdioEndpoint};
/// use mcp_transport::{DialOptions, RmcpOptions, RmcpTransport, dialer};
/// use rmcp::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut server = StdioEndpoint::new("npx");
/// server.args = vec!["-y".into(), "@modelcontextprotocol/server-everything".into()];
/// let dial = dialer(&Endpoint::Stdio(server), &DialOptions::default())?;
/// let client = ().serve(RmcpTransport::new(&*dial, RmcpOptions::default())).await?;
/// println!("{:?}", client.list_all_tools().await?);
/// client.cancel().await?;
/// # Ok(())
/// # }
/// ```
pub struct RmcpTransport {
    bridge: Arc<Bridge>,
    received: mpsc::UnboundedReceiver<Given>,
    stop: watch::Sender<Option<Instant>>,
    ended: watch::Receiver<Option<Arc<Disconnect>>>,
    task: AbortHandle,
    grace: Duration,
}

/// What the SDK is to be given.
enum Given {
    Frame(Bytes),
    Failure(RequestId, RpcError),
    /// Nothing more: the connection is over, and everything before was given.
    Over,
}

/// Between a wire and the SDK.
struct Bridge {
    ledger: Mutex<Ledger>,
    out: OutboundSender,
    given: mpsc::UnboundedSender<Given>,
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    began: Notify,
}

impl RmcpTransport {
    /// Begins a connection. Needs a Tokio runtime with time and I/O.
    pub fn new(dial: &dyn Dial, options: RmcpOptions) -> RmcpTransport {
        let (out, queue) = OutboundQueue::new();
        let (given, received) = mpsc::unbounded_channel();
        let (stop, stopped) = ShutdownSignal::new();
        let (tell_end, ended) = watch::channel(None);
        let bridge = Arc::new(Bridge {
            ledger: Mutex::default(),
            out,
            given,
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            began: Notify::new(),
        });
        let transport = dial.dial();
        let link =
            Link { outbound: queue, inbound: Arc::clone(&bridge) as Arc<dyn FrameSink>, shutdown: stopped };
        let RmcpOptions { handshake, grace } = options;
        let driver = Driver { bridge: Arc::clone(&bridge), tell_end };
        let asked = stop.clone();
        let driven = tokio::spawn(async move {
            let mut running = std::pin::pin!(transport.run(link));
            let late = driver.bridge.late(handshake);
            let ended = tokio::select! {
                ended = &mut running => ended,
                () = late => {
                    asked.send_replace(Some(Instant::now() + grace));
                    let cut = Disconnect::new(DisconnectReason::Stopped);
                    tokio::time::timeout(grace + OVERTIME, &mut running).await.unwrap_or(cut)
                }
            };
            driver.tell(ended);
        });
        RmcpTransport { bridge, received, stop, ended, task: driven.abort_handle(), grace }
    }

    /// Resolves when the connection is over, with why and what was seen of the server. It can be kept beside the
    /// transport, which the SDK takes.
    pub fn disconnected(&self) -> impl Future<Output = Arc<Disconnect>> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(ended) => Arc::clone(ended.as_ref().expect("that is what was waited for")),
                Err(_) => Arc::new(Disconnect::new(DisconnectReason::Stopped)),
            }
        }
    }
}

impl rmcp::transport::Transport<RoleClient> for RmcpTransport {
    type Error = RmcpError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), RmcpError>> + Send + 'static {
        let sent = match self.ended.borrow().as_ref() {
            Some(ended) => Err(RmcpError::Closed(Arc::clone(ended))),
            None => self.bridge.send(&item),
        };
        std::future::ready(sent)
    }

    /// The next message for the SDK. Cancel-safe.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match self.received.recv().await? {
                Given::Frame(frame) => self.bridge.read(&frame),
                Given::Failure(id, error) => Some(failure(id, &error)),
                Given::Over => return None,
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), RmcpError> {
        let deadline = Instant::now() + self.grace;
        self.stop.send_replace(Some(deadline));
        if tokio::time::timeout_at(deadline + OVERTIME, self.disconnected()).await.is_err() {
            // Dropping the wire's future releases what it holds, by its contract.
            self.task.abort();
        }
        Ok(())
    }
}

impl Drop for RmcpTransport {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bridge {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the server has had its time and has answered nothing; never, where it has. Whoever waits is told.
    async fn late(&self, after: Duration) {
        self.began.notified().await;
        tokio::time::sleep(after).await;
        let acts = {
            let mut ledger = self.ledger();
            match ledger.answered() {
                true => None,
                false => {
                    let message = format!("the server did not answer within {} s", after.as_secs_f64());
                    Some(ledger.fail_all(&RpcError::new(code::INTERNAL_ERROR, message)))
                }
            }
        };
        match acts {
            Some(acts) => self.perform(acts),
            None => std::future::pending().await,
        }
    }

    fn send(&self, item: &TxJsonRpcMessage<RoleClient>) -> Result<(), RmcpError> {
        if self.out.queued_bytes() > MOST_QUEUED_BYTES {
            return Err(RmcpError::QueueFull);
        }
        let body = serde_json::to_vec(item).map_err(|error| RmcpError::InvalidMessage(error.to_string()))?;
        let mut ledger = self.ledger();
        let acts = ledger.send(body.into()).map_err(|error| RmcpError::InvalidMessage(error.to_string()))?;
        // Under the lock, so that messages go out in the order in which they were entered.
        self.perform(acts);
        self.began.notify_one();
        Ok(())
    }

    fn perform(&self, acts: Vec<Act>) {
        for act in acts {
            self.act(act);
        }
    }

    /// Does one thing, and says what the frame was worth from which it comes.
    fn act(&self, act: Act) -> MessageClass {
        match act {
            Act::Send(out) => self.out.send(out),
            Act::Frame(frame) => return self.give(frame),
            Act::Fail(id, error) => {
                let _ = self.given.send(Given::Failure(id, error));
            }
        }
        MessageClass::Solicited
    }

    /// Hands a frame on. Answers always arrive, for their number is bounded by the requests; what the server says on
    /// its own is bounded here.
    fn give(&self, frame: Bytes) -> MessageClass {
        let worth = match scan(&frame) {
            ScannedFrame::Request { id, .. } if !self.room_for(frame.len()) => {
                let error = RpcError::new(code::INTERNAL_ERROR, "too many requests at once");
                self.refuse(&frame[id], error);
                return MessageClass::Unsolicited(1);
            }
            ScannedFrame::Notification { .. } if !self.room_for(frame.len()) => {
                tracing::debug!("a notification was dropped: too many wait");
                return MessageClass::Unsolicited(1);
            }
            ScannedFrame::Notification { .. } | ScannedFrame::Request { .. } => MessageClass::Unsolicited(1),
            ScannedFrame::Response { .. } | ScannedFrame::Batch(_) | ScannedFrame::Noise => {
                MessageClass::Solicited
            }
        };
        let _ = self.given.send(Given::Frame(frame));
        worth
    }

    fn room_for(&self, bytes: usize) -> bool {
        let messages = self.waiting.fetch_add(1, Ordering::Relaxed);
        let held = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if messages < MOST_WAITING && held + bytes <= MOST_WAITING_BYTES {
            return true;
        }
        self.taken(bytes);
        false
    }

    fn taken(&self, bytes: usize) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Answers a request of the server's in the SDK's place.
    fn refuse(&self, id: &[u8], error: RpcError) {
        let answer = frame::answer(&String::from_utf8_lossy(id), &Err(error));
        if let Ok(acts) = self.ledger().send(answer) {
            self.perform(acts);
        }
    }

    /// What the SDK makes of it. An answer that it cannot read ends its request all the same.
    fn read(&self, frame: &Bytes) -> Option<RxJsonRpcMessage<RoleClient>> {
        let scanned = scan(frame);
        if matches!(scanned, ScannedFrame::Request { .. } | ScannedFrame::Notification { .. }) {
            self.taken(frame.len());
        }
        let error = match serde_json::from_slice(frame) {
            Ok(message) => return Some(message),
            Err(error) => error,
        };
        match scanned {
            ScannedFrame::Response { id: Id::Number(id), is_error, payload } => {
                let theirs =
                    || serde_json::Deserializer::from_slice(&frame[payload..]).into_iter().next()?.ok();
                let read: Option<RpcError> = if is_error { theirs() } else { None };
                let unreadable = || {
                    let message = format!("the server's answer cannot be read: {error}");
                    RpcError::new(code::INTERNAL_ERROR, message)
                };
                Some(failure(id, &read.unwrap_or_else(unreadable)))
            }
            ScannedFrame::Request { id, .. } => {
                let error = RpcError::new(code::INVALID_REQUEST, "the request cannot be read");
                self.refuse(&frame[id], error);
                None
            }
            ScannedFrame::Response { .. }
            | ScannedFrame::Notification { .. }
            | ScannedFrame::Batch(_)
            | ScannedFrame::Noise => {
                tracing::debug!("a message of the server's cannot be read: {error}");
                None
            }
        }
    }
}

fn failure(id: RequestId, error: &RpcError) -> RxJsonRpcMessage<RoleClient> {
    let id = i64::try_from(id).map(SdkId::Number).ok();
    JsonRpcMessage::Error(JsonRpcError::new(id, error_to_rmcp(error)))
}

impl FrameSink for Bridge {
    fn deliver(&self, lane: StreamId, frame: Bytes) -> MessageClass {
        let acts = self.ledger().frame(lane, frame);
        // What leads to nothing was nobody's.
        acts.into_iter()
            .map(|it| self.act(it))
            .reduce(MessageClass::combine)
            .unwrap_or(MessageClass::Unsolicited(1))
    }

    fn stream_failed(&self, id: RequestId, why: StreamError) {
        let acts = self.ledger().lane_ended(id, why);
        self.perform(acts);
    }

    fn noise(&self, bytes: usize) {
        tracing::debug!(bytes, "the server wrote something that is no protocol");
    }
}

/// Tells the end, also when the wire's task panics or is cut off.
struct Driver {
    bridge: Arc<Bridge>,
    tell_end: watch::Sender<Option<Arc<Disconnect>>>,
}

impl Driver {
    fn tell(&self, ended: Disconnect) {
        if self.tell_end.borrow().is_some() {
            return;
        }
        let acts = self.bridge.ledger().ended(&ended);
        self.bridge.perform(acts);
        self.tell_end.send_replace(Some(Arc::new(ended)));
        let _ = self.bridge.given.send(Given::Over);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.tell(Disconnect::new(DisconnectReason::Broken("the connection was cut off".to_owned())));
    }
}
