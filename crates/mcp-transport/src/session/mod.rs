//! MCP sessions: one connection to one server, after its handshake.
//!
//! A session lives from [`Session::connect`] to its end and is never revived; a supervisor starts a new one. All
//! methods may be called concurrently from many tasks. Every call ends, and dropping a call's future cancels it at the
//! server. A call makes progress only while its future is polled: over Streamable HTTP the calling task usually reads
//! the response itself.

mod cache;
mod client_meta;
mod connection;
mod discover;
mod era_reason;
mod handshake;
mod handshake_errors;
mod header_params;
mod incoming;
mod input_requests;
mod lists;
mod notification_router;
mod options;
mod probe_silence;
mod request;
mod request_params;
mod request_responder;
mod resources;
mod resubscribe;
mod server;
mod skills;
mod subscription_stream;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use mcp_host_model::{Era, Limits, LogLevel, Method, MethodName, ProtocolVersion, RawJson, ToolResult, code};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::disconnect::Disconnect;
use crate::error::{CallError, ConnectError};
use crate::transport::{Dial, Epoch, RequestId};
use cache::ResultCache;
use connection::Connection;
use handshake::{Negotiated, OpenedConnection};
use request::{Params, RawResponse, Request, RequestScope};
use request_params::CallerParams;
use request_responder::RequestResponder;

pub use era_reason::EraReason;
pub use incoming::ListChangeCounts;
pub use lists::ListResult;
pub use notification_router::{OnSessionNotification, SessionNotification};
pub use options::{CallContext, CallOptions, ClientInfo, Eras, InputHandling, RetryPolicy, SessionOptions};
pub use request_params::CONNECTION_META_KEYS;
pub use resources::{CompletionArgument, CompletionReference};
pub use server::{ServerCapabilities, ServerInfo, TaskCapabilities};
pub use skills::SkillMethod;
pub use tasks::{DEFAULT_TASK_TIMEOUT, StartedCall, TaskRequest};

/// The state of a session (HD-082 to HD-084).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// Not connected yet.
    Created,
    /// The server is being started or contacted, or the handshake is in progress.
    Connecting,
    /// Calls can be made.
    Connected,
    /// Closed on request.
    Disconnected,
    /// Failed to connect, or disconnected unexpectedly, with the reason.
    Error(String),
}

/// A session with one server.
///
/// It lives from [`Session::connect`], after the handshake, to its end, and is never revived: dial again for a new one. All
/// methods may be called concurrently from many tasks.
///
/// - **Calls end:** with the response, at the deadline, or with the connection. An error says whether the request may have
///   run.
/// - **Cancellation:** dropping the future of a call cancels it at the server. A call makes progress only while its future is
///   polled: over Streamable HTTP the calling task usually reads the response itself.
/// - **Order:** requests of one task are sent in the order of their calls. Responses arrive in any order; progress of a call
///   precedes its response.
/// - **Bounds:** [`Limits`] bounds sizes, times and lists. A session has at most 65,536 calls in flight. It sends at most 512
///   messages at once over Streamable HTTP, and 256 requests over HTTP with SSE; further calls wait.
/// - **End:** [`Session::close`] ends it gracefully, dropping it at once. Both end the processes that it started.
pub struct Session {
    connection: Connection,
    dial: Arc<dyn Dial>,
    options: SessionOptions,
    epoch: AtomicU32,
    negotiated: ArcSwap<Negotiated>,
    start_deadline: Instant,
    limits: ArcSwap<Limits>,
    /// The minimum level of log messages.
    log_level: Mutex<Option<LogLevel>>,
    responder: Arc<RequestResponder>,
    cache: ResultCache,
    /// The number of failures that suggest an outage.
    suspicions: watch::Sender<u64>,
    /// The last failure and its time. Callers that waited for the same attempt return it instead of trying again.
    reopening: tokio::sync::Mutex<Option<(Instant, Arc<ConnectError>)>>,
}

/// Sets the state to an error when connecting is cancelled.
struct ConnectingGuard<'a>(&'a watch::Sender<SessionState>);

impl Drop for ConnectingGuard<'_> {
    fn drop(&mut self) {
        self.0.send_replace(SessionState::Error("connecting was cancelled".to_owned()));
    }
}

/// Counters of a session since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionCounters {
    /// The number of bytes that were not protocol.
    pub noise_bytes: u64,
    /// The number of messages that were dropped because the server sent too many.
    pub dropped_messages: u64,
}

/// A response with the id of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallResponse<T> {
    /// The result.
    pub value: T,
    /// The JSON-RPC id of the request.
    pub request_id: RequestId,
}

impl<T> CallResponse<T> {
    /// Converts the result.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> CallResponse<U> {
        CallResponse { value: convert(self.value), request_id: self.request_id }
    }
}

impl Session {
    /// Starts or contacts the server and does the handshake of its era, within `options.limits.startup`. A server of both
    /// eras that started slowly is started a second time, with the same limit, so that its era does not depend on the
    /// time of its start. A failure leaves no process and no connection behind. Cancel-safe: dropping the future releases everything.
    pub async fn connect(dial: Arc<dyn Dial>, options: SessionOptions) -> Result<Session, ConnectError> {
        options.state.send_replace(SessionState::Connecting);
        let connecting = ConnectingGuard(&options.state);
        let cache = ResultCache::default();
        let responder =
            Arc::new(RequestResponder::new(options.handlers.clone(), options.limits.message_bytes));
        let parts = connection::SessionParts {
            responder: Arc::clone(&responder),
            read_results: Arc::clone(&cache.read_results),
        };
        let outcome = handshake::open(&dial, &options, &parts).await;
        std::mem::forget(connecting);
        match outcome {
            Ok(OpenedConnection { connection, negotiated, deadline: start_deadline }) => {
                connection.set_connected();
                let negotiated = Arc::new(negotiated);
                connection.open_notification_stream(&negotiated);
                let limits = ArcSwap::from_pointee(options.limits.clone());
                let level = options.log_level;
                connection.restore(&negotiated, level, options.limits.request, Epoch(0));
                Ok(Session {
                    connection,
                    dial,
                    limits,
                    log_level: Mutex::new(level),
                    options,
                    epoch: AtomicU32::new(0),
                    negotiated: ArcSwap::new(negotiated),
                    start_deadline,
                    responder,
                    cache,
                    suspicions: watch::Sender::new(0),
                    reopening: tokio::sync::Mutex::new(None),
                })
            }
            Err(error) => {
                options.state.send_replace(SessionState::Error(error.to_string()));
                Err(error)
            }
        }
    }

    /// The server's description of itself.
    pub fn server(&self) -> ServerInfo {
        self.negotiated().server.clone()
    }

    /// The negotiated protocol version.
    pub fn version(&self) -> ProtocolVersion {
        self.negotiated().version
    }

    /// The era of that version.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// Why the session has this era.
    pub fn era_reason(&self) -> EraReason {
        self.negotiated().era_reason
    }

    /// When the start, with the first lists, has to be done: `limits.startup` after its beginning, or after the second
    /// beginning if the server had to be started again.
    pub fn start_deadline(&self) -> Instant {
        self.start_deadline
    }

    /// A receiver for the session's state.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.options.state.subscribe()
    }

    /// A receiver for the numbers of list changes that the server has announced.
    pub fn list_changes(&self) -> watch::Receiver<ListChangeCounts> {
        self.connection.changes()
    }

    /// A receiver for the method of the first sampling, elicitation or roots request that the server has sent on this
    /// connection. Requests in the results of a modern server do not count, because each belongs to a call.
    pub fn first_server_request(&self) -> watch::Receiver<Option<Method>> {
        self.connection.first_request()
    }

    /// A receiver for the number of requests that failed because the server may be down
    /// ([`CallError::suggests_outage`]). Over HTTP the session does not end then, because the next request may succeed.
    pub fn suspicions(&self) -> watch::Receiver<u64> {
        self.suspicions.subscribe()
    }

    /// Replaces the limits for requests, idle time and lists, from the next request on. Limits that the transport
    /// enforces (connecting, message size, silent streams) stay as they were when the transport was dialled.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.store(Arc::new(limits));
    }

    /// Resolves when the connection has ended. Cancel-safe.
    pub async fn closed(&self) -> Arc<Disconnect> {
        self.connection.disconnected().await
    }

    /// Calls a tool. `arguments` is a JSON object.
    ///
    /// The timeout is that of `options`, otherwise the session's `limits.request`. Set [`CallOptions::retry`] if the
    /// call may be sent again after its response was lost. If the server makes a task of the call, the session waits for
    /// its result, for up to [`DEFAULT_TASK_TIMEOUT`] from then on; see [`Session::start_tool_call`] for another limit.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<ToolResult>, CallError> {
        let options = options.with_handled_input();
        let response = self.call(name, arguments, &options).await?;
        let response = match self.created_task(&response, &options)? {
            None => response,
            // Boxed: it is rare, and would enlarge the future of every call.
            Some(task) => Box::pin(self.follow_created_task(task, &options)).await?,
        };
        Ok(CallResponse { value: response.tool_result()?, request_id: response.request_id })
    }

    /// Calls a tool and returns its result byte for byte; if the server makes a task of the call, that is the created
    /// task.
    pub async fn call_tool_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let response = self.call(name, arguments, &options).await?;
        Ok(CallResponse { value: response.raw()?, request_id: response.request_id })
    }

    async fn call(
        &self,
        name: &str,
        arguments: &RawJson,
        options: &CallOptions,
    ) -> Result<RawResponse, CallError> {
        if !arguments.is_object() {
            return Err(CallError::InvalidParams("a tool's arguments are a JSON object".to_owned()));
        }
        let mut caller_params = CallerParams::of(&options.context)?;
        if let Some(task) = &options.task
            && self.era() == Era::Legacy
            && self.supports_tasks()
        {
            caller_params.request_task(task);
        }
        let request =
            Request::for_caller(Method::CallTool, Params::Named { name, arguments }, options, &caller_params);
        match self.request_with_input(&request).await {
            Err(CallError::Rpc(error)) if error.code == code::HEADER_MISMATCH => {
                // Boxed: it is rare, and it would double the size of every call's future.
                Box::pin(self.retry_with_headers(&request, error)).await
            }
            response => response,
        }
    }

    /// The server rejected the call because arguments are missing in the headers: the tool's schema may have changed.
    /// The call did not run. It is sent once more if the new list declares other headers.
    async fn retry_with_headers(
        &self,
        request: &Request<'_>,
        error: mcp_host_model::RpcError,
    ) -> Result<RawResponse, CallError> {
        let old_headers = self.negotiated().tool_headers.clone();
        self.cache.tools.clear();
        self.list_tools().await?;
        let is_same = self.negotiated().tool_headers == old_headers;
        match is_same {
            true => Err(CallError::Rpc(error)),
            false => self.request_with_input(request).await,
        }
    }

    /// Sends a request of any method and returns its result byte for byte. `params` is a JSON object and is sent as it
    /// is. `name` is the tool, prompt or URI that it names, which Streamable HTTP repeats in a header. A trace in
    /// `_meta` of `params` takes precedence over that of the options.
    pub async fn request_raw(
        &self,
        method: impl Into<MethodName>,
        name: Option<&str>,
        params: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let method = method.into();
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "/_-.$".contains(it);
        if method.as_str().is_empty() || !method.as_str().chars().all(is_plain) {
            return Err(CallError::InvalidParams("this is not a method name".to_owned()));
        }
        let (params, meta) = request_params::split_meta(params).map_err(CallError::InvalidParams)?;
        let started_at = Instant::now();
        let params = Params::Members { text: &params, name };
        // A server must not send requests because of a ping.
        let scope = if method == Method::Ping { RequestScope::Internal } else { RequestScope::Call };
        let request = Request {
            method,
            params,
            extra_params: "",
            meta: &meta,
            log_level: None,
            scope,
            options: &options,
            started_at,
        };
        let response = self.request(&request).await?;
        Ok(CallResponse { value: response.raw()?, request_id: response.request_id })
    }

    /// Closes the connection and returns when the server has ended or was cut off, at the latest when `grace` has passed.
    /// Calls in flight end with [`CallError::Closed`].
    ///
    /// The server may end by itself within three quarters of `grace`, or all but 500 ms if that is longer. The rest is for
    /// ending it by force. A zero `grace` cuts it off at once. At most an hour is used. Of several calls at once, the earliest
    /// end applies. Dropping the future leaves the shutdown running; a transport that ignores it then ends with the session.
    pub async fn close(&self, grace: Duration) -> Arc<Disconnect> {
        self.connection.close(grace).await
    }

    /// What the server sent in vain so far.
    pub fn counters(&self) -> SessionCounters {
        let (noise_bytes, dropped_messages) = self.connection.engine().counters();
        SessionCounters { noise_bytes, dropped_messages }
    }

    /// The guard must not be held across an `.await`: many `arc_swap` guards at once slow down readers.
    fn negotiated(&self) -> Guard<Arc<Negotiated>> {
        self.negotiated.load()
    }

    /// This guard must not be held across an `.await` either.
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

    /// Repeats the handshake after the server lost the session of `epoch`. Many callers may notice at once: the first
    /// one reopens the session, the others wait for it.
    async fn reopen(&self, epoch: Epoch) -> Result<(), Arc<ConnectError>> {
        let requested_at = Instant::now();
        let mut last_failure = self.reopening.lock().await;
        if self.epoch.load(Ordering::Acquire) != epoch.0 {
            return Ok(());
        }
        if let Some((at, error)) = &*last_failure
            && *at >= requested_at
        {
            return Err(Arc::clone(error));
        }
        let next = Epoch(epoch.0 + 1);
        let negotiated =
            match handshake::reopen(self.dial.as_ref(), &self.connection, &self.options, next).await {
                Ok(negotiated) => Negotiated { era_reason: self.era_reason(), ..negotiated },
                Err(error) => {
                    let error = Arc::new(error);
                    *last_failure = Some((Instant::now(), Arc::clone(&error)));
                    return Err(error);
                }
            };
        let negotiated = Arc::new(negotiated);
        self.negotiated.store(Arc::clone(&negotiated));
        self.epoch.store(next.0, Ordering::Release);
        let level = *self.log_level.lock();
        self.connection.restore(&negotiated, level, self.options.limits.request, next);
        // A server that lost the session may have been replaced or updated.
        self.connection.invalidate_lists();
        Ok(())
    }
}

/// A time in the far future, for limits that overflow the clock.
fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(60 * 60 * 24 * 365)
}

#[cfg(test)]
mod tests;
