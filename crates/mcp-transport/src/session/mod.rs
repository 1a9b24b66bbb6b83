//! One connection to one server, with its handshake done: what a host holds.
//!
//! A session lives from [`Session::connect`] to its end and is never revived; a supervisor makes a new one. All its
//! methods may be called at once from many tasks, all calls end, and dropping a call's future cancels it on the wire. A call
//! moves on while its future is polled: over Streamable HTTP its response is read by nobody else, as a rule, and until it is
//! over it has one of the 512 places that a connection has for requests.

mod answering;
mod cache;
mod caller;
mod client_meta;
mod connect_deadline;
mod connection;
mod dispatch;
mod handlers;
mod handshake;
mod header_params;
mod input;
mod listen;
mod lists;
pub(crate) mod notification_router;
mod options;
mod params;
mod rejection;
mod request;
mod resources;
mod resubscribe;
mod server;
mod server_request;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use mcp_model::{Era, Limits, LogLevel, ProtocolVersion, RawJson, ToolResult, code};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::end::Disconnect;
use crate::error::{CallError, ConnectError};
use crate::transport::{Dial, Epoch, RequestId};
use answering::Answering;
use cache::Kept;
use connection::Wire;
use handshake::Negotiated;
use params::Given;
use request::{Method, Params, RawAnswer, Request, StakeOf};

pub use caller::{Caller, CallerId, ClientCapabilities, OnServerEvent};
pub use dispatch::ListChangeCounts;
pub use handlers::{
    ElicitMode, Elicitation, Handlers, Listener, LogMessage, RawRequestHandler, RawServerRequest, Roots,
    Sampling, ServerEvent,
};
pub use lists::Listing;
pub use notification_router::{OnSessionNotification, SessionNotification};
pub use options::{CallOptions, ClientInfo, Eras, InputHandling, RetryPolicy, SessionOptions};
pub use resources::{CompletionArgument, CompletionReference};
pub use server::{ServerCapabilities, ServerInfo};
pub use server_request::{ElicitParams, ElicitRequest, ElicitResult, Root, SamplingRequest, SamplingResult};

/// The state of a connection (HD-082 to HD-084).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionState {
    /// Nothing was done yet.
    Created,
    /// The server is being started or reached, and the handshake is under way.
    Connecting,
    /// Calls can be made.
    Connected,
    /// It is over, and that was wanted.
    Disconnected,
    /// It is over, and that was not wanted; or it never began. The reason in words.
    Error(String),
}

/// A connection to a server. See the module's page.
pub struct Session {
    wire: Wire,
    dial: Arc<dyn Dial>,
    options: SessionOptions,
    epoch: AtomicU32,
    negotiated: ArcSwap<Negotiated>,
    limits: ArcSwap<Limits>,
    /// From which level on log messages are wanted.
    log_level: Mutex<Option<LogLevel>>,
    answering: Arc<Answering>,
    kept: Kept,
    /// The last time that it failed, so that those who waited for it need not each try again.
    reopening: tokio::sync::Mutex<Option<(Instant, Arc<ConnectError>)>>,
}

/// A connection that is being made. Dropped in the middle of it, it never was.
struct Connecting<'a>(&'a watch::Sender<SessionState>);

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        self.0.send_replace(SessionState::Error("connecting was given up".to_owned()));
    }
}

/// An answer, with the id of the request that brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResponse<T> {
    /// The result.
    pub value: T,
    /// The JSON-RPC id of the request.
    pub request_id: RequestId,
}

impl Session {
    /// Starts or reaches the server and does the handshake of its era, within `options.limits.startup`. A failure
    /// leaves nothing behind: no process, no connection. Cancel-safe: dropping the future ends what was begun.
    pub async fn connect(dial: Arc<dyn Dial>, options: SessionOptions) -> Result<Session, ConnectError> {
        options.state.send_replace(SessionState::Connecting);
        let connecting = Connecting(&options.state);
        let kept = Kept::default();
        let answering = Arc::new(Answering::new(options.handlers.clone(), options.limits.message_bytes));
        let parts = connection::Parts { answering: Arc::clone(&answering), reads: Arc::clone(&kept.reads) };
        let outcome = handshake::open(&dial, &options, &parts).await;
        std::mem::forget(connecting);
        match outcome {
            Ok((wire, negotiated)) => {
                wire.connected();
                let negotiated = Arc::new(negotiated);
                wire.listen(&negotiated);
                let limits = ArcSwap::from_pointee(options.limits.clone());
                let level = options.log_level;
                wire.ask_for_logs(&negotiated, (level, options.limits.request), Epoch(0));
                Ok(Session {
                    wire,
                    dial,
                    limits,
                    log_level: Mutex::new(level),
                    options,
                    epoch: AtomicU32::new(0),
                    negotiated: ArcSwap::new(negotiated),
                    answering,
                    kept,
                    reopening: tokio::sync::Mutex::new(None),
                })
            }
            Err(error) => {
                options.state.send_replace(SessionState::Error(error.to_string()));
                Err(error)
            }
        }
    }

    /// What the server said about itself.
    pub fn server(&self) -> ServerInfo {
        self.negotiated().server.clone()
    }

    /// The negotiated version.
    pub fn version(&self) -> ProtocolVersion {
        self.negotiated().version
    }

    /// The era of that version.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// The state, to be watched.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.options.state.subscribe()
    }

    /// Counts the server's announcements that its lists have changed.
    pub fn list_changes(&self) -> watch::Receiver<ListChangeCounts> {
        self.wire.changes()
    }

    /// Keeps other limits from the next request on: those of requests, of silence and of lists. What only a wire
    /// keeps (connecting, the size of a message, the silence of a stream) stays as it was dialled.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.store(Arc::new(limits));
    }

    /// Resolves when the connection is over. Cancel-safe.
    pub async fn closed(&self) -> Arc<Disconnect> {
        self.wire.ended().await
    }

    /// Calls a tool. `arguments` is a JSON object.
    ///
    /// The deadline is that of `options`, else the session's `limits.request`. Whoever wants a lost answer to be asked
    /// for again says with [`CallOptions::replay`] that this is safe.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<ToolResult>, CallError> {
        let options = CallOptions { input: InputHandling::ByHandlers, ..options };
        let answer = self.call(name, arguments, &options).await?;
        Ok(CallResponse { value: answer.result()?, request_id: answer.request_id })
    }

    /// Calls a tool and gives its result as it came, byte for byte.
    pub async fn call_tool_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let answer = self.call(name, arguments, &options).await?;
        Ok(CallResponse { value: answer.raw()?, request_id: answer.request_id })
    }

    async fn call(
        &self,
        name: &str,
        arguments: &RawJson,
        options: &CallOptions,
    ) -> Result<RawAnswer, CallError> {
        if !arguments.is_object() {
            return Err(CallError::InvalidParams("a tool's arguments are a JSON object".to_owned()));
        }
        let given = Given::of(options)?;
        let request = Request::given("tools/call", Params::Named { name, arguments }, options, &given);
        match self.request_with_input(request).await {
            Err(CallError::Rpc(error)) if error.code == code::HEADER_MISMATCH => {
                // Boxed, for it is rare, and every call's future would be as large.
                Box::pin(self.call_again_with_headers(request, error)).await
            }
            answer => answer,
        }
    }

    /// The server misses arguments of the tool among the headers: what it wants there may have changed. The call did not
    /// run, and is made once more when the list says something else than before.
    async fn call_again_with_headers(
        &self,
        request: Request<'_>,
        error: mcp_model::RpcError,
    ) -> Result<RawAnswer, CallError> {
        let before = self.negotiated().mirrors.clone();
        self.kept.tools.forget();
        self.list_tools().await?;
        let is_same = self.negotiated().mirrors == before;
        match is_same {
            true => Err(CallError::Rpc(error)),
            false => self.request_with_input(request).await,
        }
    }

    /// Sends a request of any method and gives its result as it came. `params` is a JSON object, and all that is sent;
    /// `name` is the tool, prompt or URI that it names, which Streamable HTTP repeats in a header. A trace that `params`
    /// name in their own `_meta` stands before that of the options.
    pub async fn request_raw(
        &self,
        method: &str,
        name: Option<&str>,
        params: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "/_-.$".contains(it);
        if method.is_empty() || !method.chars().all(is_plain) {
            return Err(CallError::InvalidParams("this is no name of a method".to_owned()));
        }
        let (params, meta) = params::split(params).map_err(CallError::InvalidParams)?;
        let begun = Instant::now();
        let params = Params::Members { text: &params, name };
        let request = Request {
            method: Method::Given(method),
            params,
            more: "",
            meta: &meta,
            log_level: None,
            // Nobody is asked anything because of a question whether he is there.
            stake: if method == "ping" { StakeOf::Nobody } else { StakeOf::Options },
            options: &options,
            begun,
        };
        let answer = self.request(&request).await?;
        Ok(CallResponse { value: answer.raw()?, request_id: answer.request_id })
    }

    /// Ends the connection: politely within `grace`, then by force. Calls in flight end with [`CallError::Closed`].
    /// Returns when the server is gone, or cut off.
    pub async fn close(&self, grace: Duration) -> Arc<Disconnect> {
        self.wire.stop(grace).await
    }

    /// Bytes that were no protocol, and messages dropped because the server sent too many.
    pub fn counters(&self) -> (u64, u64) {
        self.wire.engine().counters()
    }

    /// Not to be held while something is awaited: who reads much at once reads more slowly.
    fn negotiated(&self) -> Guard<Arc<Negotiated>> {
        self.negotiated.load()
    }

    /// Not to be held, either.
    fn limits(&self) -> Guard<Arc<Limits>> {
        self.limits.load()
    }

    fn change_negotiated(&self, change: impl Fn(&mut Negotiated)) {
        self.negotiated.rcu(|it| {
            let mut changed = Negotiated::clone(it);
            change(&mut changed);
            changed
        });
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Does the handshake again after the server has forgotten the session of `epoch`. Many callers may find out at
    /// once: the first opens, the others wait for it.
    async fn reopen(&self, epoch: Epoch) -> Result<(), Arc<ConnectError>> {
        let asked = Instant::now();
        let mut last_failure = self.reopening.lock().await;
        if self.epoch.load(Ordering::Acquire) != epoch.0 {
            return Ok(());
        }
        if let Some((at, error)) = &*last_failure
            && *at >= asked
        {
            return Err(Arc::clone(error));
        }
        let next = Epoch(epoch.0 + 1);
        let negotiated = match handshake::reopen(self.dial.as_ref(), &self.wire, &self.options, next).await {
            Ok(negotiated) => negotiated,
            Err(error) => {
                let error = Arc::new(error);
                *last_failure = Some((Instant::now(), Arc::clone(&error)));
                return Err(error);
            }
        };
        let negotiated = Arc::new(negotiated);
        self.negotiated.store(Arc::clone(&negotiated));
        self.epoch.store(next.0, Ordering::Release);
        let level = *self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        self.wire.ask_for_logs(&negotiated, (level, self.options.limits.request), next);
        self.wire.subscribe_again(&negotiated, self.options.limits.request, next);
        // A server that forgot the session may be another one by now.
        self.wire.lists_are_old();
        Ok(())
    }
}

/// A moment that never comes: for limits that the clock cannot count to.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(60 * 60 * 24 * 365)
}

#[cfg(test)]
mod orders;
