//! The transports of `mcp_host_transport` under the client of rmcp, the official MCP SDK.
//!
//! A user of rmcp keeps the SDK's types, handlers and peer. The SDK gains transports that it lacks, a handshake with a
//! timeout, and errors for requests that would otherwise wait forever when a server exits, sends an unreadable response
//! or loses its session. The SDK's behavior above the transport is unchanged.
//!
//! This program is the example `websocket_client` of this crate:
//!
#![doc = concat!("```no_run\n", include_str!("../examples/websocket_client.rs"), "```")]
#![forbid(unsafe_code)]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod convert;
mod error;
mod request_tracker;
mod server_requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_host_model::{RpcError, code};
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{JsonRpcError, JsonRpcMessage, RequestId as SdkId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The version of rmcp whose types are used here.
#[doc(no_inline)]
pub use rmcp;

pub use convert::{
    ConvertError, content_from_rmcp, content_to_rmcp, error_from_rmcp, error_to_rmcp, result_from_rmcp,
    result_to_rmcp, tool_from_rmcp, tool_to_rmcp,
};

pub use error::RmcpError;

use mcp_host_transport::internal::scan::{ResponseId, ScannedFrame, scan};
use mcp_host_transport::internal::{force_time, frame};
use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, FrameSink, Link, MessageClass, OutboundQueue, OutboundSender,
    RequestId, ShutdownSender, ShutdownSignal, StreamError, StreamId,
};
use request_tracker::{Action, RequestTracker};

/// Maximum number of server messages queued for the SDK; further notifications are dropped and requests refused.
const MAX_QUEUED_MESSAGES: usize = 1024;

/// Maximum total size in bytes of the messages queued for the SDK.
const MAX_QUEUED_MESSAGE_BYTES: usize = 64 << 20;

/// Maximum number of bytes queued for the server.
const MAX_OUTBOUND_BYTES: usize = 64 << 20;

/// Options of an [`RmcpTransport`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RmcpOptions {
    /// How long the server may take for its first response; 60 s by default, because a first `npx` downloads its
    /// package.
    pub handshake: Duration,
    /// How long closing may take before the connection is aborted; 2 s by default.
    pub grace: Duration,
}

impl Default for RmcpOptions {
    fn default() -> RmcpOptions {
        RmcpOptions { handshake: Duration::from_secs(60), grace: Duration::from_secs(2) }
    }
}

/// A transport for rmcp's client: `handler.serve(RmcpTransport::new(…)).await`.
///
/// The connection starts in a task of the current Tokio runtime and is aborted when this is dropped.
/// [`close`](rmcp::transport::Transport::close), which the SDK calls, closes it gracefully.
///
/// ```no_run
/// use mcp_host_model::{Endpoint, StdioEndpoint};
/// use mcp_host_rmcp::{RmcpOptions, RmcpTransport};
/// use mcp_host_transport::{DialOptions, dialer};
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
    received: mpsc::UnboundedReceiver<SdkInput>,
    stop: ShutdownSender,
    disconnect: watch::Receiver<Option<Arc<Disconnect>>>,
    task: AbortHandle,
    grace: Duration,
}

/// Input for the SDK.
enum SdkInput {
    Frame(Bytes),
    Failure(RequestId, RpcError),
    /// The connection has ended, and all earlier input was passed on.
    Closed,
}

/// The bridge between a transport and the SDK.
struct Bridge {
    tracker: Mutex<RequestTracker>,
    outbound: OutboundSender,
    sdk_input: mpsc::UnboundedSender<SdkInput>,
    /// Number of server requests and notifications that are queued for the SDK.
    queued_messages: AtomicUsize,
    /// Their total size.
    queued_bytes: AtomicUsize,
    /// Notified when the SDK sends a message.
    first_request: Notify,
}

impl RmcpTransport {
    /// Starts a connection. Requires a Tokio runtime with time and I/O.
    pub fn new(dial: &dyn Dial, options: RmcpOptions) -> RmcpTransport {
        let (outbound, queue) = OutboundQueue::new();
        let (sdk_input, received) = mpsc::unbounded_channel();
        let (stop, stopped) = ShutdownSignal::new();
        let (end_sender, disconnect) = watch::channel(None);
        let bridge = Arc::new(Bridge {
            tracker: Mutex::default(),
            outbound,
            sdk_input,
            queued_messages: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            first_request: Notify::new(),
        });
        let transport = dial.dial();
        let link = Link::new(queue, Arc::clone(&bridge) as Arc<dyn FrameSink>, stopped);
        let RmcpOptions { handshake, grace } = options;
        let driver = Driver { bridge: Arc::clone(&bridge), end_sender };
        let stop_sender = stop.clone();
        let task = tokio::spawn(async move {
            let mut running = std::pin::pin!(transport.run(link));
            let timed_out = driver.bridge.handshake_timeout(handshake);
            let disconnect = tokio::select! {
                disconnect = &mut running => disconnect,
                () = timed_out => {
                    stop_sender.request(Instant::now() + grace - force_time(grace));
                    let stopped = Disconnect::new(DisconnectReason::Stopped);
                    tokio::time::timeout(grace, &mut running).await.unwrap_or(stopped)
                }
            };
            driver.finish(disconnect);
        });
        RmcpTransport { bridge, received, stop, disconnect, task: task.abort_handle(), grace }
    }

    /// Resolves when the connection has ended, with the reason and evidence. The future is independent of the
    /// transport, which the SDK takes. The error of a failed `serve` has the same reason.
    pub fn disconnected(&self) -> impl Future<Output = Arc<Disconnect>> + Send + use<> {
        let mut disconnect = self.disconnect.clone();
        async move {
            match disconnect.wait_for(Option::is_some).await {
                Ok(disconnect) => Arc::clone(disconnect.as_ref().expect("that is what was waited for")),
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
        let queued = match self.disconnect.borrow().as_ref() {
            Some(disconnect) => Err(RmcpError::Closed(Arc::clone(disconnect))),
            None => self.bridge.send(&item),
        };
        std::future::ready(queued)
    }

    /// Returns the next message for the SDK. Cancel-safe.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match self.received.recv().await? {
                SdkInput::Frame(frame) => self.bridge.parse(&frame),
                SdkInput::Failure(id, error) => Some(error_message(id, &error)),
                SdkInput::Closed => return None,
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), RmcpError> {
        self.stop.request(Instant::now() + self.grace - force_time(self.grace));
        if tokio::time::timeout(self.grace, self.disconnected()).await.is_err() {
            // Dropping the transport's future releases everything, by its contract.
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
    /// Resolves when the server has not responded in time, after its requests were failed; never if it responded.
    async fn handshake_timeout(&self, after: Duration) {
        self.first_request.notified().await;
        tokio::time::sleep(after).await;
        let actions = {
            let mut tracker = self.tracker.lock();
            if tracker.has_response() {
                None
            } else {
                let message = format!("the server did not answer within {} s", after.as_secs_f64());
                Some(tracker.fail_all(&RpcError::new(code::INTERNAL_ERROR, message)))
            }
        };
        match actions {
            Some(actions) => self.perform(actions),
            None => std::future::pending().await,
        }
    }

    /// Queues a message of the SDK for the server.
    fn send(&self, item: &TxJsonRpcMessage<RoleClient>) -> Result<(), RmcpError> {
        if self.outbound.queued_bytes() > MAX_OUTBOUND_BYTES {
            return Err(RmcpError::QueueFull);
        }
        let body = serde_json::to_vec(item).map_err(|error| RmcpError::InvalidMessage(error.to_string()))?;
        let mut tracker = self.tracker.lock();
        let actions = tracker.send(body.into())?;
        // Under the lock, so that messages are sent in the order in which they were recorded.
        self.perform(actions);
        self.first_request.notify_one();
        Ok(())
    }

    fn perform(&self, actions: Vec<Action>) {
        for action in actions {
            self.perform_action(action);
        }
    }

    /// Performs one action; returns the class of the frame that caused it.
    fn perform_action(&self, action: Action) -> MessageClass {
        match action {
            Action::Send(out) => self.outbound.send(out),
            Action::Frame(frame) => return self.pass_to_sdk(frame),
            Action::Fail(id, error) => {
                let _ = self.sdk_input.send(SdkInput::Failure(id, error));
            }
        }
        MessageClass::Solicited
    }

    /// Passes a frame to the SDK. Responses always pass, since their number is bounded by the requests; other messages
    /// are bounded here.
    fn pass_to_sdk(&self, frame: Bytes) -> MessageClass {
        let class = match scan(&frame) {
            ScannedFrame::Request { id, .. } if !self.try_reserve(frame.len()) => {
                let error = RpcError::new(code::INTERNAL_ERROR, "too many requests at once");
                self.refuse(&frame[id], error);
                return MessageClass::Unsolicited(1);
            }
            ScannedFrame::Notification { .. } if !self.try_reserve(frame.len()) => {
                tracing::debug!("a notification was dropped: too many wait");
                return MessageClass::Unsolicited(1);
            }
            ScannedFrame::Notification { .. } | ScannedFrame::Request { .. } => MessageClass::Unsolicited(1),
            ScannedFrame::Response { .. }
            | ScannedFrame::EmptyResponse(_)
            | ScannedFrame::Batch(_)
            | ScannedFrame::Noise => MessageClass::Solicited,
        };
        let _ = self.sdk_input.send(SdkInput::Frame(frame));
        class
    }

    /// Counts a message that is queued for the SDK. Returns false if it does not fit.
    fn try_reserve(&self, bytes: usize) -> bool {
        let messages = self.queued_messages.fetch_add(1, Ordering::Relaxed);
        let queued = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if messages < MAX_QUEUED_MESSAGES && queued + bytes <= MAX_QUEUED_MESSAGE_BYTES {
            return true;
        }
        self.release(bytes);
        false
    }

    /// Releases what [`Bridge::try_reserve`] has counted.
    fn release(&self, bytes: usize) {
        self.queued_messages.fetch_sub(1, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Responds to a server request on behalf of the SDK.
    fn refuse(&self, id: &[u8], error: RpcError) {
        let answer = frame::response(&String::from_utf8_lossy(id), &Err(error));
        if let Ok(actions) = self.tracker.lock().send(answer) {
            self.perform(actions);
        }
    }

    /// Parses a frame for the SDK. An unreadable response still ends its request.
    fn parse(&self, frame: &Bytes) -> Option<RxJsonRpcMessage<RoleClient>> {
        let scanned = scan(frame);
        if matches!(scanned, ScannedFrame::Request { .. } | ScannedFrame::Notification { .. }) {
            self.release(frame.len());
        }
        let error = match serde_json::from_slice(frame) {
            Ok(message) => return Some(message),
            Err(error) => error,
        };
        match scanned {
            ScannedFrame::Response { id: ResponseId::Number(id), is_error, payload_start, .. } => {
                let server_error =
                    || serde_json::Deserializer::from_slice(&frame[payload_start..]).into_iter().next()?.ok();
                let read: Option<RpcError> = if is_error { server_error() } else { None };
                let unreadable = || {
                    let message = format!("the server's response is invalid: {error}");
                    RpcError::new(code::INTERNAL_ERROR, message)
                };
                Some(error_message(id, &read.unwrap_or_else(unreadable)))
            }
            ScannedFrame::EmptyResponse(id) => {
                let message = "the server's response has neither a result nor an error";
                Some(error_message(id, &RpcError::new(code::INTERNAL_ERROR, message)))
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
                tracing::debug!("a message from the server is invalid: {error}");
                None
            }
        }
    }
}

/// The error response to a request of the SDK.
fn error_message(id: RequestId, error: &RpcError) -> RxJsonRpcMessage<RoleClient> {
    let id = i64::try_from(id).map(SdkId::Number).ok();
    JsonRpcMessage::Error(JsonRpcError::new(id, error_to_rmcp(error)))
}

impl FrameSink for Bridge {
    fn deliver(&self, stream: StreamId, frame: Bytes) -> MessageClass {
        let actions = self.tracker.lock().handle_frame(stream, frame);
        // A frame without an action was unsolicited.
        actions
            .into_iter()
            .map(|it| self.perform_action(it))
            .reduce(MessageClass::combine)
            .unwrap_or(MessageClass::Unsolicited(1))
    }

    fn is_pending(&self, id: RequestId) -> bool {
        self.tracker.lock().is_pending(id)
    }

    fn fail_stream(&self, id: RequestId, error: StreamError) {
        let actions = self.tracker.lock().fail_stream(id, error);
        self.perform(actions);
    }

    fn record_noise(&self, bytes: usize) {
        tracing::debug!(bytes, "the server wrote text that is not JSON-RPC");
    }

    /// The calls end with the connection: no caller has an exchange of its own.
    fn end_calls(&self) {}
}

/// Reports the end of the connection, also when the transport's task panics or is aborted.
struct Driver {
    bridge: Arc<Bridge>,
    end_sender: watch::Sender<Option<Arc<Disconnect>>>,
}

impl Driver {
    /// Fails the pending requests and reports the end. Only the first call has an effect.
    fn finish(&self, disconnect: Disconnect) {
        if self.end_sender.borrow().is_some() {
            return;
        }
        let actions = self.bridge.tracker.lock().handle_disconnect(&disconnect);
        self.bridge.perform(actions);
        self.end_sender.send_replace(Some(Arc::new(disconnect)));
        let _ = self.bridge.sdk_input.send(SdkInput::Closed);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.finish(Disconnect::new(DisconnectReason::Broken("the connection was cut off".to_owned())));
    }
}

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
