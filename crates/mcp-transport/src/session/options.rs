//! Options of sessions and calls.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Era, Limits, LogLevel, RawJson, Secret, TraceContext};
use tokio::sync::watch;

use crate::rpc::caller::{Caller, ClientCapabilities};
use crate::rpc::handlers::Handlers;
use crate::rpc::progress::OnProgress;
use crate::session::forwarded_meta::ForwardedMeta;
use crate::session::incoming::server_event_router::OnSessionNotification;
use crate::session::session_state::SessionState;

/// Options of a session.
#[derive(Clone)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The client's name and version.
    pub client: ClientInfo,
    /// Timeouts and size limits.
    pub limits: Limits,
    /// The eras to try.
    pub eras: Eras,
    /// Configuration for the server, sent as the client capability `experimental.config` (a JSON value).
    pub config: Option<Secret>,
    /// Handlers for server requests and events. They determine the declared capabilities.
    pub handlers: Handlers,
    /// The capabilities to declare in a legacy handshake instead of those of the handlers, for sessions that serve
    /// several callers. A modern server receives them in requests without a caller, for example for lists.
    pub client_capabilities: Option<ClientCapabilities>,
    /// Receives notifications in addition to the listener, with the caller that they belong to.
    pub on_notification: Option<OnSessionNotification>,
    /// The minimum level of log messages; `None` leaves it to the server.
    pub log_level: Option<LogLevel>,
    /// The era that this server spoke on its last connection ([`Session::era`](crate::session::Session::era)). It is
    /// tried first. If it fails, all eras are tried. Only used with [`Eras::Both`].
    pub known_era: Option<Era>,
    /// Receives the state; subscribe before connecting to see every change.
    pub state: watch::Sender<SessionState>,
}

impl Default for SessionOptions {
    /// The name `mcp-host`, default limits, both eras, no configuration, no handlers.
    fn default() -> SessionOptions {
        SessionOptions {
            client: ClientInfo { name: "mcp-host".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            limits: Limits::default(),
            eras: Eras::Both,
            config: None,
            handlers: Handlers::default(),
            client_capabilities: None,
            on_notification: None,
            log_level: None,
            known_era: None,
            state: watch::Sender::new(SessionState::Created),
        }
    }
}

/// The client's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

impl ClientInfo {
    /// A name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> ClientInfo {
        ClientInfo { name: name.into(), version: version.into() }
    }
}

/// The eras of the protocol to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Eras {
    /// The modern era first, then the legacy one.
    Both,
    /// The legacy era only (`initialize`).
    Legacy,
    /// The modern, stateless era only.
    Modern,
}

/// Options of a call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// The timeout of the call; `None` means the session's `limits.request`. It includes the time in which
    /// handlers ask a user on behalf of the server.
    pub timeout: Option<Duration>,
    /// The idle timeout, restarted by progress; `None` means the session's `limits.idle`.
    pub idle_timeout: Option<Duration>,
    /// Whether the call may be sent again when its response was lost.
    pub retry: RetryPolicy,
    /// Requests a task of a server of 2025-11-25 that supports them, as a tool with
    /// [`TaskSupport::Required`](mcp_host_model::TaskSupport) demands.
    pub task: Option<TaskRequest>,
    /// The caller, and what is passed on between the caller and the server.
    pub context: CallContext,
}

/// The context of a call: the caller, and what is passed on between the caller and the server.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallContext {
    /// Receives the call's progress.
    pub progress: Option<OnProgress>,
    /// The trace context, sent in the request's `_meta` unchanged.
    pub trace: Option<TraceContext>,
    /// The caller, for sessions that serve several callers.
    pub caller: Option<Arc<Caller>>,
    /// The caller's own `_meta`.
    pub meta: ForwardedMeta,
    /// Additional parameters, a JSON object, to be forwarded: for example `inputResponses` and `requestState`.
    pub extra_params: Option<RawJson>,
    /// What happens when a result requires input.
    pub input: InputHandling,
}

impl CallContext {
    /// The maximum time by which the caller's handlers may extend the timeout of a call, in total.
    pub fn max_deadline_pause(&self) -> Duration {
        self.caller.as_ref().map_or(Duration::ZERO, |caller| caller.max_deadline_pause)
    }
}

impl CallOptions {
    /// The default options with a timeout.
    pub fn with_timeout(timeout: Duration) -> CallOptions {
        CallOptions { timeout: Some(timeout), ..CallOptions::default() }
    }

    /// These options with [`InputHandling::ByHandlers`]. A call that returns a parsed result cannot return a request
    /// for input.
    pub(crate) fn with_handled_input(mut self) -> CallOptions {
        self.context.input = InputHandling::ByHandlers;
        self
    }
}

/// Requests a task of a 2025-11-25 server. Other servers decide themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TaskRequest {
    /// The requested time for which the server keeps the task.
    pub ttl: Option<Duration>,
}

/// What happens when a result requires input (2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InputHandling {
    /// Handlers provide the input, and the request is sent again.
    #[default]
    ByHandlers,
    /// The result is returned to a caller that repeats the request itself. Only for calls that return bytes.
    ReturnToCaller,
}

/// Whether a call may be sent again when it is not known whether it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RetryPolicy {
    /// Never: a lost response is an error.
    #[default]
    Never,
    /// Once. Only for a call that may run twice without harm.
    Once,
}
