//! The handshake of a session, in either era.
//!
//! The modern probe (`server/discover`) is sent first. A legacy server answers it with an error, does not answer,
//! or exits. After an error, `initialize` is sent at once. After a short silence, `initialize` is sent while the
//! probe is still pending: a server that `npx` downloads first may start later than any timeout, and then answers
//! both. The era must not depend on the time of a start: such a server is started again and gets the probe alone,
//! because `initialize` may have switched it to the legacy era. A server that was not available for the probe is
//! probed once more. A server that says with `Retry-After` when it can respond is connected again then, once, if that
//! is soon. After an exit, a new connection is opened without a probe. If the server refuses the transport,
//! [`Dial::fallback`] may return another one for the same server.
//!
//! The `ttlMs` in the result of `server/discover` is ignored. It would allow a client to reuse the result on later
//! connections. Every connection sends the request, even when the era is known, because a response proves that the
//! server runs.

mod discover;
mod failure;
mod initialize;
mod negotiate;
mod request;
mod silence;
mod transport_probe;
mod version_refusal;

use std::sync::Arc;

use mcp_host_model::{Era, ProtocolVersion};
use serde::de::IgnoredAny;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::request_error::RequestError;
use crate::rpc::deadline::time_after;
use crate::session::connection::{SessionConnection, SessionParts};
use crate::session::negotiated::NegotiatedSession;
use crate::session::negotiated::era_reason::EraReason;
use crate::session::negotiated::server::{ServerCapabilities, ServerInfo};
use crate::session::options::{Eras, SessionOptions};
use crate::session::server_error::redact_error;
use crate::transport::{Dial, Epoch, HandshakeMode};
use failure::{CLOSE_GRACE, FORCE_TIME, HandshakeFailure, timeout_error};
use negotiate::EraPlan;
use transport_probe::diagnose_refusal;

pub(crate) use request::HandshakeConnection;

/// A connection whose handshake is done.
pub(crate) struct OpenedConnection {
    pub(crate) connection: SessionConnection,
    pub(crate) negotiated: NegotiatedSession,
    /// The deadline of the start; see [`Session::start_deadline`](crate::Session::start_deadline).
    pub(crate) deadline: Instant,
}

/// Connects and performs the handshake, within `limits.startup`. A server that has to be started again has this time
/// once more, because its era must not depend on the limit.
pub(crate) async fn open(
    dial: &Arc<dyn Dial>,
    options: &SessionOptions,
    parts: &SessionParts,
) -> Result<OpenedConnection, ConnectError> {
    if options.config.as_ref().is_some_and(|it| serde_json::from_str::<IgnoredAny>(it.expose()).is_err()) {
        return Err(ConnectError::Invalid("the configuration for the server is not JSON".to_owned()));
    }
    let limit = options.limits.startup;
    let deadline_from_now = || time_after(Instant::now(), limit);
    let mut deadline = deadline_from_now();
    let full_plan = EraPlan { eras: options.eras, known_era: options.known_era, ..EraPlan::ANY };
    let mut plan = full_plan;
    // Whether to connect once more if the server closes its connection.
    let mut may_reconnect = true;
    // Whether to connect once more when the server asks to wait.
    let mut may_wait = true;
    let mut dial = Arc::clone(dial);
    // The refusal of the first transport, if the second one is tried.
    let mut first_refusal: Option<RequestError> = None;
    loop {
        let attempt = Attempt { dial: &dial, options, parts, deadline };
        let (failure, disconnect) = match attempt.run(plan).await {
            AttemptOutcome::Opened(opened) => return Ok(*opened),
            AttemptOutcome::Failed { failure, disconnect } => (failure, disconnect),
            AttemptOutcome::TimedOut(error) => return Err(error),
        };
        if let Some(end) = failure.end_of_requested_wait(deadline).filter(|_| may_wait) {
            may_wait = false;
            tokio::time::sleep_until(end).await;
            continue;
        }
        match failure {
            // The known era may be outdated. Connect again and try both eras.
            HandshakeFailure::Ended(disconnect)
                if may_reconnect && plan.is_known(Era::Legacy) && is_ended_by_peer(&disconnect) =>
            {
                (may_reconnect, plan.known_era) = (false, None);
            }
            // The server may have exited because of the probe. Connect again without it.
            HandshakeFailure::Ended(disconnect)
                if may_reconnect && plan.eras == Eras::Both && is_ended_by_peer(&disconnect) =>
            {
                (may_reconnect, plan.eras) = (false, Eras::Legacy);
                plan.legacy_reason = EraReason::ProbeClosed;
            }
            HandshakeFailure::Restart { eras, legacy: _ } => {
                (plan.eras, plan.may_probe_again) = (eras, false);
                deadline = deadline_from_now();
            }
            HandshakeFailure::Ended(disconnect) => {
                let error = match ConnectError::from_disconnect(disconnect) {
                    ConnectError::Refused(error) if first_refusal.is_none() => {
                        ConnectError::Refused(attempt.diagnose_refusal(error).await)
                    }
                    error => error,
                };
                return Err(error.after_refusal(first_refusal));
            }
            HandshakeFailure::Rejected(error) => {
                return Err(ConnectError::Rejected { error: redact_error(error, dial.as_ref()), disconnect });
            }
            HandshakeFailure::Other(ConnectError::Refused(error)) if first_refusal.is_none() => {
                match dial.fallback(&error) {
                    Some(other) => {
                        (dial, plan, may_reconnect, first_refusal) = (other, full_plan, true, Some(error))
                    }
                    None => return Err(ConnectError::Refused(attempt.diagnose_refusal(error).await)),
                }
            }
            HandshakeFailure::Other(error) => return Err(error.after_refusal(first_refusal)),
        }
    }
}

/// One attempt to connect and to perform the handshake.
struct Attempt<'a> {
    dial: &'a Arc<dyn Dial>,
    options: &'a SessionOptions,
    parts: &'a SessionParts,
    deadline: Instant,
}

/// How an attempt ended.
enum AttemptOutcome {
    Opened(Box<OpenedConnection>),
    /// The handshake failed, and the connection is closed.
    Failed {
        failure: HandshakeFailure,
        disconnect: Arc<Disconnect>,
    },
    TimedOut(ConnectError),
}

impl Attempt<'_> {
    async fn run(&self, plan: EraPlan) -> AttemptOutcome {
        let Attempt { dial, options, parts, deadline } = *self;
        let connection = SessionConnection::start(dial, options, parts);
        let handshake =
            HandshakeConnection { dial: dial.as_ref(), connection: &connection, options, epoch: Epoch(0) };
        let negotiation = async {
            match dial.handshake_mode() {
                HandshakeMode::Negotiate => handshake.negotiate(plan).await,
                HandshakeMode::Resume => Ok(assume_resumed_session()),
            }
        };
        let failure = match tokio::time::timeout_at(deadline, negotiation).await {
            Ok(Ok(negotiated)) => {
                let opened = OpenedConnection { connection, negotiated, deadline };
                return AttemptOutcome::Opened(Box::new(opened));
            }
            Ok(Err(failure)) => failure,
            Err(_) => {
                let has_responded = connection.has_responded();
                let disconnect = connection.shutdown(CLOSE_GRACE, FORCE_TIME).await;
                let limit = options.limits.startup;
                return AttemptOutcome::TimedOut(timeout_error(limit, has_responded, disconnect));
            }
        };
        let closing = connection.shutdown(CLOSE_GRACE, FORCE_TIME);
        let disconnect = match &failure {
            // If the time is over, the drop of the connection closes it.
            HandshakeFailure::Restart { .. } => {
                let _ = tokio::time::timeout_at(deadline, closing).await;
                Arc::new(Disconnect::new(DisconnectReason::Stopped))
            }
            HandshakeFailure::Ended(_) | HandshakeFailure::Rejected(_) | HandshakeFailure::Other(_) => {
                closing.await
            }
        };
        AttemptOutcome::Failed { failure, disconnect }
    }

    /// Tries the transport of the dial's diagnostic probe. If the server speaks it, the returned error says so;
    /// otherwise it is `error`.
    async fn diagnose_refusal(&self, error: RequestError) -> RequestError {
        let probe = self.dial.diagnostic_probe(&error);
        diagnose_refusal(error, probe, self.options, self.parts, self.deadline).await
    }
}

/// Whether the server ended a connection that had been established.
fn is_ended_by_peer(disconnect: &Disconnect) -> bool {
    disconnect.evidence.exit.is_some()
        || matches!(disconnect.reason, DisconnectReason::PeerClosed | DisconnectReason::Broken(_))
}

/// Repeats the handshake on a running connection after the server lost the session.
pub(crate) async fn reopen(handshake: HandshakeConnection<'_>) -> Result<NegotiatedSession, ConnectError> {
    let limit = handshake.options.limits.startup;
    // The connection stays open, but the errors need the reason of an end.
    let no_disconnect = || Arc::new(Disconnect::new(DisconnectReason::Stopped));
    match tokio::time::timeout(limit, handshake.initialize()).await {
        Ok(Ok(negotiated)) => Ok(negotiated),
        // `initialize` alone never restarts.
        Ok(Err(HandshakeFailure::Restart { eras: _, legacy })) => Ok(*legacy),
        Ok(Err(HandshakeFailure::Ended(disconnect))) => Err(ConnectError::from_disconnect(disconnect)),
        Ok(Err(HandshakeFailure::Rejected(error))) => Err(ConnectError::Rejected {
            error: redact_error(error, handshake.dial),
            disconnect: no_disconnect(),
        }),
        Ok(Err(HandshakeFailure::Other(error))) => Err(error),
        Err(_) => Err(ConnectError::TimedOut { after: limit, disconnect: no_disconnect() }),
    }
}

/// The result without a handshake, for a resumed session: nothing is known about the server.
fn assume_resumed_session() -> NegotiatedSession {
    let server = ServerInfo { capabilities: ServerCapabilities::unknown(), ..ServerInfo::default() };
    NegotiatedSession::new(ProtocolVersion::LATEST_LEGACY, server, String::new())
        .with_era_reason(EraReason::Resumed)
}
