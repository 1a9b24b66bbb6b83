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

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Era, LogLevel, Method, ProtocolVersion, RawJson, RpcError};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::client_meta::{client_json, legacy_capabilities, modern_meta};
use super::connection::{Connection, SessionParts};
use super::discover::{ProbeOutcome, discover};
use super::era_reason::EraReason;
use super::handshake_errors::{
    invalid_response, read_error, redacted_error, timeout_error, too_large, version_failure,
    with_transport_probe,
};
use super::header_params::ToolHeaders;
use super::probe_silence::{PROBE_GRACE, PROBE_SILENCE, known_modern_silence, silence};
use super::{Eras, ServerCapabilities, ServerInfo, SessionOptions};
use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::request_error::RequestError;
use crate::rpc::engine::{CallSettings, CancelNotice};
use crate::rpc::frame;
use crate::rpc::pending::CallOutcome;
use crate::rpc::request_owner::OwnerHint;
use crate::transport::{Dial, Epoch, HandshakeMode, MessageHead, OutboundMessage, StreamError};

/// The time that a connection may take to close after its handshake failed.
pub(super) const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// The time that it may take longer to end the server by force, which gives evidence for the error.
pub(super) const FORCE_TIME: Duration = Duration::from_secs(2);

/// The result of a handshake.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    pub(crate) version: ProtocolVersion,
    pub(crate) era_reason: EraReason,
    pub(crate) server: ServerInfo,
    /// The `_meta` members that are added to each request; empty in the legacy era.
    pub(crate) meta: String,
    /// The requested log level. Modern era only.
    pub(crate) log_level: Option<LogLevel>,
    /// The tool arguments that are sent as headers; `None` if there are none.
    pub(crate) tool_headers: Option<Arc<ToolHeaders>>,
}

impl Negotiated {
    pub(super) fn new(version: ProtocolVersion, server: ServerInfo, meta: String) -> Negotiated {
        let era_reason = match version.era() {
            Era::Modern => EraReason::Discovered,
            Era::Legacy => EraReason::Configured,
        };
        Negotiated { version, era_reason, server, meta, log_level: None, tool_headers: None }
    }

    fn because(self, era_reason: EraReason) -> Negotiated {
        Negotiated { era_reason, ..self }
    }

    /// Sets the log level that each request contains. Modern era only.
    pub(crate) fn set_log_level(&mut self, level: Option<LogLevel>, options: &SessionOptions) {
        let has_tasks = self.server.capabilities.tasks.call;
        self.meta = modern_meta(self.version, options, &OwnerHint::None, level, has_tasks);
        self.log_level = level;
    }
}

/// Why a handshake failed. How its connection ended is not yet known and is added later.
pub(super) enum HandshakeFailure {
    /// The connection ended during the handshake.
    Ended(Arc<Disconnect>),
    /// The server responded with a JSON-RPC error.
    Rejected(RpcError),
    /// Any other failure, for example a refused HTTP request or an invalid response.
    Other(ConnectError),
    /// Not a failure: the server can be used in the legacy era, but only because it started slowly. It is connected
    /// again, with these eras.
    Restart { eras: Eras, legacy: Box<Negotiated> },
}

/// The eras to try, and the era that the server spoke last time.
#[derive(Clone, Copy)]
struct EraPlan {
    eras: Eras,
    known_era: Option<Era>,
    /// Why only the legacy era is tried.
    legacy_reason: EraReason,
    /// Whether a server that was not available for the probe is connected again.
    may_probe_again: bool,
}

impl EraPlan {
    /// Both eras, for a server of which nothing is known.
    const ANY: EraPlan = EraPlan {
        eras: Eras::Both,
        known_era: None,
        legacy_reason: EraReason::Configured,
        may_probe_again: true,
    };

    /// Whether the server may be of either era and spoke this one last time.
    fn is_known(self, era: Era) -> bool {
        self.eras == Eras::Both && self.known_era == Some(era)
    }
}

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
    let deadline_from_now = || Instant::now().checked_add(limit).unwrap_or_else(super::far_future);
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
        let negotiation = async {
            match dial.handshake_mode() {
                HandshakeMode::Negotiate => {
                    negotiate(dial.as_ref(), &connection, options, plan, Epoch(0)).await
                }
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
pub(crate) async fn reopen(
    dial: &dyn Dial,
    connection: &Connection,
    options: &SessionOptions,
    epoch: Epoch,
) -> Result<Negotiated, ConnectError> {
    let limit = options.limits.startup;
    let stopped = || Arc::new(Disconnect::new(crate::error::disconnect::DisconnectReason::Stopped));
    match tokio::time::timeout(limit, initialize(connection, options, epoch)).await {
        Ok(Ok(negotiated)) => Ok(negotiated),
        // `initialize` alone never restarts.
        Ok(Err(HandshakeFailure::Restart { eras: _, legacy })) => Ok(*legacy),
        Ok(Err(HandshakeFailure::Ended(disconnect))) => Err(ConnectError::from_disconnect(disconnect)),
        Ok(Err(HandshakeFailure::Rejected(error))) => {
            Err(ConnectError::Rejected { error: redacted_error(error, dial), disconnect: stopped() })
        }
        Ok(Err(HandshakeFailure::Other(error))) => Err(error),
        Err(_) => Err(ConnectError::TimedOut { after: limit, disconnect: stopped() }),
    }
}

/// The result for a resumed session, which has no handshake: nothing is known about the server.
fn resumed_session() -> Negotiated {
    let server = ServerInfo { capabilities: ServerCapabilities::unknown(), ..ServerInfo::default() };
    Negotiated::new(ProtocolVersion::LATEST_LEGACY, server, String::new()).because(EraReason::Resumed)
}

/// Performs the handshake on a connection, in the eras of `plan`. A known legacy server gets `initialize` first; a
/// known modern server has more time to answer the probe.
async fn negotiate(
    dial: &dyn Dial,
    connection: &Connection,
    options: &SessionOptions,
    plan: EraPlan,
    epoch: Epoch,
) -> Result<Negotiated, HandshakeFailure> {
    match plan.eras {
        Eras::Legacy => Ok(initialize(connection, options, epoch).await?.because(plan.legacy_reason)),
        Eras::Modern => match discover(connection, options).await {
            ProbeOutcome::Modern(negotiated) => Ok(negotiated),
            ProbeOutcome::Legacy(failure) | ProbeOutcome::Failed(failure) => Err(failure),
        },
        Eras::Both if plan.is_known(Era::Legacy) => match initialize(connection, options, epoch).await {
            // The server was probably replaced or updated since.
            Err(HandshakeFailure::Rejected(_) | HandshakeFailure::Other(_)) => {
                probe(dial, connection, options, plan, epoch).await
            }
            outcome => Ok(outcome?.because(EraReason::Known)),
        },
        Eras::Both => probe(dial, connection, options, plan, epoch).await,
    }
}

/// Performs a handshake in any era on a connection that is only used to find out whether the server speaks a transport.
pub(super) async fn negotiate_any(
    dial: &dyn Dial,
    connection: &Connection,
    options: &SessionOptions,
) -> Result<Negotiated, HandshakeFailure> {
    match dial.handshake_mode() {
        HandshakeMode::Negotiate => negotiate(dial, connection, options, EraPlan::ANY, Epoch(0)).await,
        HandshakeMode::Resume => initialize(connection, options, Epoch(0)).await,
    }
}

/// Sends `server/discover`, and `initialize` after an error or after a silence.
async fn probe(
    dial: &dyn Dial,
    connection: &Connection,
    options: &SessionOptions,
    plan: EraPlan,
    epoch: Epoch,
) -> Result<Negotiated, HandshakeFailure> {
    let silence_timeout = match plan.is_known(Era::Modern) {
        true => known_modern_silence(options.limits.startup),
        false => PROBE_SILENCE,
    };
    let mut discover = std::pin::pin!(discover(connection, options));
    let first = tokio::select! {
        probe = &mut discover => Some(probe),
        () = silence(dial, silence_timeout) => None,
    };
    match first {
        Some(ProbeOutcome::Modern(negotiated)) => return Ok(negotiated),
        Some(ProbeOutcome::Failed(failure)) => return Err(failure),
        Some(ProbeOutcome::Legacy(failure)) => {
            let legacy = initialize(connection, options, epoch).await?;
            let legacy = legacy.because(EraReason::after_probe(&failure));
            return match plan.may_probe_again && is_unavailable(&failure) {
                true => Err(HandshakeFailure::Restart { eras: Eras::Both, legacy: Box::new(legacy) }),
                false => Ok(legacy),
            };
        }
        None => {}
    }
    // Both requests are now pending.
    let restart = |legacy| Err(HandshakeFailure::Restart { eras: Eras::Modern, legacy: Box::new(legacy) });
    let mut initialize = std::pin::pin!(initialize(connection, options, epoch));
    tokio::select! {
        biased;
        outcome = &mut initialize => match outcome {
            // The server runs now: if it knows the probe, its answer follows at once.
            Ok(legacy) => match tokio::time::timeout(PROBE_GRACE, discover).await {
                Ok(ProbeOutcome::Modern(_)) => restart(legacy),
                Ok(ProbeOutcome::Legacy(failure) | ProbeOutcome::Failed(failure)) => {
                    Ok(legacy.because(EraReason::after_probe(&failure)))
                }
                Err(_) => Ok(legacy.because(EraReason::ProbeIgnored)),
            },
            // A server that does not know `initialize` may still answer the probe.
            Err(failure) => tokio::select! {
                probe = discover => match probe {
                    ProbeOutcome::Modern(negotiated) => Ok(negotiated),
                    ProbeOutcome::Legacy(_) | ProbeOutcome::Failed(_) => Err(failure),
                },
                () = silence(dial, PROBE_SILENCE) => Err(failure),
            },
        },
        probe = &mut discover => match probe {
            ProbeOutcome::Modern(negotiated) => match tokio::time::timeout(PROBE_SILENCE, initialize).await {
                Ok(Ok(legacy)) => restart(legacy),
                Ok(Err(_)) | Err(_) => Ok(negotiated),
            },
            ProbeOutcome::Legacy(failure) | ProbeOutcome::Failed(failure) => {
                Ok(initialize.await?.because(EraReason::after_probe(&failure)))
            }
        },
    }
}

/// Whether a server, or a gateway in front of it, was not available for the probe. This says nothing about its era.
fn is_unavailable(failure: &HandshakeFailure) -> bool {
    match failure {
        HandshakeFailure::Other(ConnectError::Refused(error)) => {
            matches!(error.status(), Some(429 | 502..=504)) && error.rpc_error().is_none()
        }
        HandshakeFailure::Other(_)
        | HandshakeFailure::Rejected(_)
        | HandshakeFailure::Ended(_)
        | HandshakeFailure::Restart { .. } => false,
    }
}

/// Sends `initialize` and then `notifications/initialized`.
pub(super) async fn initialize(
    connection: &Connection,
    options: &SessionOptions,
    epoch: Epoch,
) -> Result<Negotiated, HandshakeFailure> {
    let version = ProtocolVersion::LATEST_LEGACY;
    let params = format!(
        r#""protocolVersion":"{version}","capabilities":{},"clientInfo":{}"#,
        legacy_capabilities(options),
        client_json(&options.client)
    );
    let frame = match send_request(connection, epoch, Method::Initialize, None, &params, "").await {
        CallOutcome::Response { frame, is_error: false, payload_start } => frame.slice(payload_start..),
        CallOutcome::Response { frame, is_error: true, payload_start } => {
            return Err(HandshakeFailure::Rejected(read_error(&frame[payload_start..])));
        }
        CallOutcome::StreamFailed(
            StreamError::Unreachable(error) | StreamError::Refused(error) | StreamError::Lost(error),
        ) => {
            return Err(HandshakeFailure::Other(ConnectError::Refused(error)));
        }
        CallOutcome::StreamFailed(StreamError::TooLarge(limit)) => return Err(too_large(limit)),
        CallOutcome::StreamFailed(StreamError::NotExecuted(_)) => {
            return Err(invalid_response("the server asks for a session before it opens one"));
        }
        CallOutcome::Expired(_) => {
            unreachable!("the handshake as a whole has a deadline, its requests have none")
        }
        CallOutcome::Closed(disconnect) => return Err(HandshakeFailure::Ended(disconnect)),
    };
    let negotiated = parse_initialize(&frame)?;
    let head = MessageHead::new(None, Method::Initialized, Some(negotiated.version));
    let body = frame::notification(Method::Initialized.as_str(), "", "");
    connection.engine().send(OutboundMessage { epoch, head, body });
    Ok(negotiated)
}

/// Reads the result of `initialize`.
fn parse_initialize(payload_start: &[u8]) -> Result<Negotiated, HandshakeFailure> {
    #[derive(Deserialize)]
    struct InitializeResult<'a> {
        #[serde(rename = "protocolVersion")]
        version: String,
        #[serde(borrow)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, rename = "serverInfo")]
        server: Option<&'a RawValue>,
        instructions: Option<String>,
    }
    let result = InitializeResult::deserialize(&mut serde_json::Deserializer::from_slice(payload_start))
        .map_err(|it| invalid_response(&it.to_string()))?;
    // The server chooses the version; one that we do not know is an error.
    let version: ProtocolVersion =
        result.version.parse().map_err(|_| version_failure(std::slice::from_ref(&result.version)))?;
    // The modern era has no `initialize`, so its result must not contain a modern version.
    if version.era() == Era::Modern {
        return Err(version_failure(std::slice::from_ref(&result.version)));
    }
    let server = server_info(result.server, result.instructions, result.capabilities);
    Ok(Negotiated::new(version, server, String::new()))
}

/// Sends a request of the handshake and waits for its outcome.
pub(super) async fn send_request(
    connection: &Connection,
    epoch: Epoch,
    method: Method,
    version: Option<ProtocolVersion>,
    params: &str,
    meta: &str,
) -> CallOutcome {
    let message = |id| OutboundMessage {
        epoch,
        head: MessageHead::new(Some(id), method, version),
        body: frame::request(id, method.as_str(), params, meta),
    };
    // `initialize` must not be cancelled, and the server does not need a cancel notice for a probe.
    let settings = CallSettings { cancel_notice: CancelNotice::Suppress, ..CallSettings::default() };
    let outcome = connection.engine().call(settings, message).await.1;
    if let CallOutcome::Response { .. } = outcome {
        connection.record_response();
    }
    outcome
}

/// Reads what a server reports about itself. Invalid members count as absent.
pub(super) fn server_info(
    info: Option<&RawValue>,
    instructions: Option<String>,
    capabilities: Option<&RawValue>,
) -> ServerInfo {
    #[derive(Deserialize, Default)]
    struct Info {
        #[serde(default)]
        name: String,
        #[serde(default)]
        version: String,
    }
    let Info { name, version } = info.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
    let capabilities = capabilities.map(ServerCapabilities::read).unwrap_or_default();
    let implementation = info.map(RawJson::copy_of).filter(RawJson::is_object);
    ServerInfo { name, version, instructions, capabilities, implementation }
}
