//! The handshake of a session, in either era.
//!
//! The modern probe (`server/discover`) is sent first. A legacy server answers it with an error, does not answer,
//! or exits. After an error, `initialize` is sent at once. After a short silence, `initialize` is sent while the
//! probe is still pending: a server that `npx` downloads first may start later than any timeout, and then answers
//! both. The era must not depend on the time of a start: such a server is started again and gets the probe alone,
//! because `initialize` may have switched it to the legacy era. A server that was not available for the probe is
//! probed once more. After an exit, a new connection is opened without a probe. If the server refuses the transport,
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

use std::sync::Arc;

use mcp_host_model::{Era, ProtocolVersion};
use serde::de::IgnoredAny;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::request_error::RequestError;
use crate::rpc::deadline::time_after;
use crate::session::connection::{Connection, SessionParts};
use crate::session::negotiated::Negotiated;
use crate::session::negotiated::era_reason::EraReason;
use crate::session::negotiated::server::{ServerCapabilities, ServerInfo};
use crate::session::options::{Eras, SessionOptions};
use crate::session::server_error::redacted_error;
use crate::transport::{Dial, Epoch, HandshakeMode};
use failure::{CLOSE_GRACE, FORCE_TIME, HandshakeFailure, timeout_error};
use negotiate::EraPlan;
use transport_probe::with_transport_probe;

pub(crate) use request::HandshakeConnection;

/// A connection whose handshake is done.
pub(crate) struct OpenedConnection {
    pub(crate) connection: Connection,
    pub(crate) negotiated: Negotiated,
    /// When the start had to be done.
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
    // Whether a server that closes its connection is connected once more.
    let mut may_reconnect = true;
    let mut dial = Arc::clone(dial);
    // Why the server refused the first transport, while the second one is tried.
    let mut first_refusal: Option<RequestError> = None;
    loop {
        let connection = Connection::start(&dial, options, parts);
        let handshake =
            HandshakeConnection { dial: dial.as_ref(), connection: &connection, options, epoch: Epoch(0) };
        let negotiation = async {
            match dial.handshake_mode() {
                HandshakeMode::Negotiate => handshake.negotiate(plan).await,
                HandshakeMode::Resume => Ok(resumed_session()),
            }
        };
        let failure = match tokio::time::timeout_at(deadline, negotiation).await {
            Ok(Ok(negotiated)) => return Ok(OpenedConnection { connection, negotiated, deadline }),
            Ok(Err(failure)) => failure,
            Err(_) => {
                let has_response = connection.has_response();
                return Err(timeout_error(
                    limit,
                    has_response,
                    connection.shutdown(CLOSE_GRACE, FORCE_TIME).await,
                ));
            }
        };
        let closing = connection.shutdown(CLOSE_GRACE, FORCE_TIME);
        let disconnect = match &failure {
            // The connection is closed when it is dropped.
            HandshakeFailure::Restart { .. } => {
                let _ = tokio::time::timeout_at(deadline, closing).await;
                Arc::new(Disconnect::new(DisconnectReason::Stopped))
            }
            _ => closing.await,
        };
        match failure {
            // The known era may be outdated. Connect again and try both eras.
            HandshakeFailure::Ended(disconnect)
                if may_reconnect && plan.is_known(Era::Legacy) && peer_ended(&disconnect) =>
            {
                (may_reconnect, plan.known_era) = (false, None);
            }
            // The server may have exited because of the probe. Connect again without it.
            HandshakeFailure::Ended(disconnect)
                if may_reconnect && plan.eras == Eras::Both && peer_ended(&disconnect) =>
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
                        let probe = dial.diagnostic_probe(&error);
                        ConnectError::Refused(
                            with_transport_probe(error, probe, (options, parts), deadline).await,
                        )
                    }
                    error => error,
                };
                return Err(error.after_refusal(first_refusal));
            }
            HandshakeFailure::Rejected(error) => {
                return Err(ConnectError::Rejected {
                    error: redacted_error(error, dial.as_ref()),
                    disconnect,
                });
            }
            HandshakeFailure::Other(ConnectError::Refused(error)) if first_refusal.is_none() => {
                match dial.fallback(&error) {
                    Some(other) => {
                        (dial, plan, may_reconnect, first_refusal) = (other, full_plan, true, Some(error))
                    }
                    None => {
                        let probe = dial.diagnostic_probe(&error);
                        let error = with_transport_probe(error, probe, (options, parts), deadline).await;
                        return Err(ConnectError::Refused(error));
                    }
                }
            }
            HandshakeFailure::Other(error) => return Err(error.after_refusal(first_refusal)),
        }
    }
}

/// Whether the server ended the connection, after it had been reached.
fn peer_ended(disconnect: &Disconnect) -> bool {
    disconnect.evidence.exit.is_some()
        || matches!(disconnect.reason, DisconnectReason::PeerClosed | DisconnectReason::Broken(_))
}

/// Repeats the handshake on a running connection after the server lost the session.
pub(crate) async fn reopen(handshake: HandshakeConnection<'_>) -> Result<Negotiated, ConnectError> {
    let limit = handshake.options.limits.startup;
    let stopped = || Arc::new(Disconnect::new(DisconnectReason::Stopped));
    match tokio::time::timeout(limit, handshake.initialize()).await {
        Ok(Ok(negotiated)) => Ok(negotiated),
        // `initialize` alone never restarts.
        Ok(Err(HandshakeFailure::Restart { eras: _, legacy })) => Ok(*legacy),
        Ok(Err(HandshakeFailure::Ended(disconnect))) => Err(ConnectError::from_disconnect(disconnect)),
        Ok(Err(HandshakeFailure::Rejected(error))) => Err(ConnectError::Rejected {
            error: redacted_error(error, handshake.dial),
            disconnect: stopped(),
        }),
        Ok(Err(HandshakeFailure::Other(error))) => Err(error),
        Err(_) => Err(ConnectError::TimedOut { after: limit, disconnect: stopped() }),
    }
}

/// The result for a resumed session, which has no handshake: nothing is known about the server.
fn resumed_session() -> Negotiated {
    let server = ServerInfo { capabilities: ServerCapabilities::unknown(), ..ServerInfo::default() };
    Negotiated::new(ProtocolVersion::LATEST_LEGACY, server, String::new()).because(EraReason::Resumed)
}
