//! What a session is given.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Era, Limits, LogLevel, RawJson, Secret, TraceContext};
use tokio::sync::watch;

use super::notification_router::OnSessionNotification;
use crate::rpc::progress::OnProgress;
use crate::session::{Caller, ClientCapabilities, Handlers, SessionState};

/// How a session is to be.
#[derive(Clone)]
pub struct SessionOptions {
    /// Who we say we are.
    pub client: ClientInfo,
    /// How long things may take.
    pub limits: Limits,
    /// Which eras to try.
    pub eras: Eras,
    /// Configuration for the server, sent as the client capability `experimental.config` (a JSON value).
    pub config: Option<Secret>,
    /// Who answers what the server asks and hears what it says. What is there decides what the server is told.
    pub handlers: Handlers,
    /// What a legacy handshake declares, where that is not what the handlers can do: what callers may be able to. A modern
    /// server is told it where nobody's call is made, with its lists for example.
    pub client_capabilities: Option<ClientCapabilities>,
    /// Hears what the server says on its own beside the handlers' listener, with whose it is.
    pub on_notification: Option<OnSessionNotification>,
    /// From which level on the server's log messages are wanted, where it sends any; `None` leaves that to the server.
    pub log_level: Option<LogLevel>,
    /// The era of the same server when it was met last ([`Session::era`](crate::session::Session::era)): that one is tried first,
    /// and costs no probe. Where it fails, everything is tried as if nothing were remembered. Only where `eras` is
    /// [`Eras::Both`].
    pub known_era: Option<Era>,
    /// Where the state is told; subscribe before connecting to see it from the beginning.
    pub state: watch::Sender<SessionState>,
}

impl Default for SessionOptions {
    /// This crate's name, default limits, both eras, no configuration, nobody to answer.
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

/// A client as it introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Which eras of the protocol to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eras {
    /// The modern one first, then the other.
    Both,
    /// Only `initialize`.
    Legacy,
    /// Only the stateless one.
    Modern,
}

/// How one call is to be made.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// The absolute deadline; the session's `limits.request` where `None`.
    pub timeout: Option<Duration>,
    /// The longest silence; the session's `limits.idle` where `None`.
    pub idle_timeout: Option<Duration>,
    /// Whether the call may be sent again when its answer was lost.
    pub retry: RetryPolicy,
    /// Hears the call's progress.
    pub progress: Option<OnProgress>,
    /// The trace that the call belongs to; goes into the request's `_meta`, as the caller gives it.
    pub trace: Option<TraceContext>,
    /// Who the call is made for, where the session serves several.
    pub caller: Option<Arc<Caller>>,
    /// The `_meta` that the caller gives, a JSON object, to be handed on. What belongs to the caller's own connection is
    /// left out: its progress token, version, name and capabilities; the level of log messages that it asks for counts in
    /// the modern era.
    pub meta: Option<RawJson>,
    /// More members of the parameters, a JSON object, to be handed on: `inputResponses` and `requestState` among them.
    pub extra_params: Option<RawJson>,
    /// What becomes of a result that asks for input.
    pub input: InputHandling,
}

/// What becomes of a result that is none yet, for its server asks for input first (2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputHandling {
    /// The handlers answer, and the request is made again.
    #[default]
    ByHandlers,
    /// It is the result, for a caller who makes the request again by himself. Only where a result is asked for as bytes.
    ReturnToCaller,
}

/// May a call be sent a second time when it is not known whether the first one ran?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetryPolicy {
    /// No: a lost answer is an error that says so.
    #[default]
    Never,
    /// Yes, once: reading twice, or doing twice, is as good as once.
    Once,
}
