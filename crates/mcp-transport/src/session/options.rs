//! What a session is given.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Limits, Secret};
use tokio::sync::watch;

use crate::progress::OnProgress;
use crate::{Handler, State, Unattended};

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
    /// Who answers the server's own requests and hears its notifications.
    pub handler: Arc<dyn Handler>,
    /// Where the state is told; subscribe before connecting to see it from the beginning.
    pub state: watch::Sender<State>,
}

impl Default for SessionOptions {
    /// This crate's name, default limits, both eras, no configuration, nobody to answer.
    fn default() -> SessionOptions {
        SessionOptions {
            client: ClientInfo { name: "mcp-host".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            limits: Limits::default(),
            eras: Eras::Both,
            config: None,
            handler: Arc::new(Unattended),
            state: watch::Sender::new(State::Created),
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
    pub deadline: Option<Duration>,
    /// The longest silence; the session's `limits.idle` where `None`.
    pub idle: Option<Duration>,
    /// Whether the call may be sent again when its answer was lost.
    pub replay: Replay,
    /// Hears the call's progress.
    pub progress: Option<OnProgress>,
}

/// May a call be sent a second time when it is not known whether the first one ran?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replay {
    /// No: a lost answer is an error that says so.
    #[default]
    Forbidden,
    /// Yes, once: reading twice, or doing twice, is as good as once.
    Allowed,
}
