//! The beginning of a session, in either era.
//!
//! The modern probe (`server/discover`) goes first. A server of the old era answers it with some error, or never, or
//! dies of it: an error leads to `initialize` at once, silence to `initialize` after a short patience while the probe
//! still waits (a cold `npx` takes longer to start than any patience, and answers both then), and death to a new
//! connection without a probe. Where a wire is refused altogether, another one to the same server may be tried.
//!
//! The `ttlMs` of what `server/discover` answers is not used: it says how long the answer may be shown again without
//! asking, and it is never shown again. Each connection asks, also where the era is remembered, so that who is connected
//! has met somebody; and a session keeps what it was told, as one of the older era does.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Era, LogLevel, ProtocolVersion, RpcError, code};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::client_meta::{For, client_json, declared, modern_meta};
use super::connect_deadline::{PATIENCE, PATIENCE_WITH_A_FRIEND, silence};
use super::connection::{Parts, Wire};
use super::header_params::Mirrors;
use super::rejection::{told, too_large, too_late, unreadable, version_failure};
use super::{Eras, ServerCapabilities, ServerInfo, SessionOptions};
use crate::error::ConnectError;
use crate::error::end::{Disconnect, DisconnectReason, RequestError};
use crate::rpc::engine::{CallTerms, GivenUp};
use crate::rpc::frame;
use crate::rpc::pending::Outcome;
use crate::transport::{Dial, Epoch, HandshakeMode, MessageHead, OutboundMessage, StreamError};

/// How long a connection that is not wanted may take to end.
pub(super) const PARTING: Duration = Duration::from_millis(500);

/// What the handshake brought.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    pub(crate) version: ProtocolVersion,
    pub(crate) server: ServerInfo,
    /// The members of `_meta` that each request carries; empty in the old era.
    pub(crate) meta: String,
    /// From which level on log messages are asked for; in the modern era.
    pub(crate) log_level: Option<LogLevel>,
    /// What tools want to see as headers; `None` where none wants anything.
    pub(crate) mirrors: Option<Arc<Mirrors>>,
}

impl Negotiated {
    fn new(version: ProtocolVersion, server: ServerInfo, meta: String) -> Negotiated {
        Negotiated { version, server, meta, log_level: None, mirrors: None }
    }

    /// Each request asks for log messages from `level` on. The modern era only.
    pub(crate) fn log(&mut self, level: LogLevel, options: &SessionOptions) {
        self.meta = modern_meta(self.version, options, For::Anybody, Some(level));
        self.log_level = Some(level);
    }
}

/// Why a handshake failed, before it is known how the connection ends.
pub(super) enum Failure {
    Ended(Arc<Disconnect>),
    Rejected(RpcError),
    Other(ConnectError),
}

/// The ways in which a server may be spoken to.
#[derive(Clone, Copy)]
struct Ways {
    eras: Eras,
    remembered: Option<Era>,
}

impl Ways {
    fn remembers(self, era: Era) -> bool {
        self.eras == Eras::Both && self.remembered == Some(era)
    }
}

/// Dials and negotiates within the limit for starting.
pub(crate) async fn open(
    dial: &Arc<dyn Dial>,
    options: &SessionOptions,
    parts: &Parts,
) -> Result<(Wire, Negotiated), ConnectError> {
    if options.config.as_ref().is_some_and(|it| serde_json::from_str::<IgnoredAny>(it.expose()).is_err()) {
        return Err(ConnectError::Invalid("the configuration for the server is no JSON".to_owned()));
    }
    let limit = options.limits.startup;
    let deadline = tokio::time::Instant::now().checked_add(limit).unwrap_or_else(super::far_away);
    let all = Ways { eras: options.eras, remembered: options.known_era };
    let mut ways = all;
    // A peer that ended its first connection is given another one.
    let mut again = true;
    let mut dial = Arc::clone(dial);
    // How the first wire was refused, while a second one is tried.
    let mut before: Option<RequestError> = None;
    loop {
        let wire = Wire::start(&dial, options, parts);
        let negotiation = async {
            match dial.handshake_mode() {
                HandshakeMode::Negotiate => negotiate(dial.as_ref(), &wire, options, ways, Epoch(0)).await,
                HandshakeMode::Resume => Ok(resumed()),
            }
        };
        let failure = match tokio::time::timeout_at(deadline, negotiation).await {
            Ok(Ok(negotiated)) => return Ok((wire, negotiated)),
            Ok(Err(failure)) => failure,
            Err(_) => {
                let heard = wire.heard();
                return Err(too_late(limit, heard, wire.stop(PARTING).await));
            }
        };
        let ended = wire.stop(PARTING).await;
        match failure {
            // What was remembered may be true no more: it is forgotten, and everything is tried.
            Failure::Ended(ended) if again && ways.remembers(Era::Legacy) && died(&ended) => {
                (again, ways.remembered) = (false, None);
            }
            // It may have died of the probe; without one it gets a second chance.
            Failure::Ended(ended) if again && ways.eras == Eras::Both && died(&ended) => {
                (again, ways.eras) = (false, Eras::Legacy);
            }
            Failure::Ended(ended) => return Err(ConnectError::ended(ended).after(before)),
            Failure::Rejected(error) => {
                return Err(ConnectError::Rejected {
                    error: cleaned(error, dial.as_ref()),
                    disconnect: ended,
                });
            }
            Failure::Other(ConnectError::Refused(fault)) if before.is_none() => match dial.fallback(&fault) {
                Some(other) => (dial, ways, again, before) = (other, all, true, Some(fault)),
                None => {
                    let other = dial.diagnostic_probe(&fault);
                    let fault = told(fault, other, (options, parts), deadline).await;
                    return Err(ConnectError::Refused(fault));
                }
            },
            Failure::Other(error) => return Err(error.after(before)),
        }
    }
}

/// The peer was there, and ended what we had with it.
fn died(ended: &Disconnect) -> bool {
    ended.evidence.exit.is_some()
        || matches!(ended.reason, DisconnectReason::PeerClosed | DisconnectReason::Broken(_))
}

/// Negotiates anew on a wire that lives, after the server has forgotten the session.
pub(crate) async fn reopen(
    dial: &dyn Dial,
    wire: &Wire,
    options: &SessionOptions,
    epoch: Epoch,
) -> Result<Negotiated, ConnectError> {
    let limit = options.limits.startup;
    let none = || Arc::new(Disconnect::new(crate::error::end::DisconnectReason::Stopped));
    match tokio::time::timeout(
        limit,
        negotiate(dial, wire, options, Ways { eras: Eras::Legacy, remembered: None }, epoch),
    )
    .await
    {
        Ok(Ok(negotiated)) => Ok(negotiated),
        Ok(Err(Failure::Ended(ended))) => Err(ConnectError::ended(ended)),
        Ok(Err(Failure::Rejected(error))) => {
            Err(ConnectError::Rejected { error: cleaned(error, dial), disconnect: none() })
        }
        Ok(Err(Failure::Other(error))) => Err(error),
        Err(_) => Err(ConnectError::TimedOut { after: limit, disconnect: none() }),
    }
}

/// A server's error without the secrets that the server was given: in data that has one, nothing is left.
pub(crate) fn cleaned(error: RpcError, dial: &dyn Dial) -> RpcError {
    let data = error.data.filter(|it| dial.redact(it.as_str()) == it.as_str());
    RpcError { code: error.code, message: dial.redact(&error.message), data }
}

/// A session that was taken up knows nothing about its server.
fn resumed() -> Negotiated {
    let server = ServerInfo { capabilities: ServerCapabilities::unknown(), ..ServerInfo::default() };
    Negotiated::new(ProtocolVersion::LATEST_LEGACY, server, String::new())
}

async fn negotiate(
    dial: &dyn Dial,
    wire: &Wire,
    options: &SessionOptions,
    ways: Ways,
    epoch: Epoch,
) -> Result<Negotiated, Failure> {
    match ways.eras {
        Eras::Legacy => initialize(wire, options, epoch).await,
        Eras::Modern => match discover(wire, options).await {
            Probe::Modern(negotiated) => Ok(negotiated),
            Probe::Legacy(failure) | Probe::Failed(failure) => Err(failure),
        },
        Eras::Both if ways.remembers(Era::Legacy) => match initialize(wire, options, epoch).await {
            // It is another server by now, or another version of it.
            Err(Failure::Rejected(_) | Failure::Other(_)) => {
                probe(dial, wire, options, PATIENCE, epoch).await
            }
            outcome => outcome,
        },
        Eras::Both if ways.remembers(Era::Modern) => {
            probe(dial, wire, options, PATIENCE_WITH_A_FRIEND, epoch).await
        }
        Eras::Both => probe(dial, wire, options, PATIENCE, epoch).await,
    }
}

async fn probe(
    dial: &dyn Dial,
    wire: &Wire,
    options: &SessionOptions,
    patience: Duration,
    epoch: Epoch,
) -> Result<Negotiated, Failure> {
    let mut discover = std::pin::pin!(discover(wire, options));
    let first = tokio::select! {
        answer = &mut discover => Some(answer),
        () = silence(dial, patience) => None,
    };
    match first {
        Some(Probe::Modern(negotiated)) => return Ok(negotiated),
        Some(Probe::Failed(failure)) => return Err(failure),
        Some(Probe::Legacy(_)) => return initialize(wire, options, epoch).await,
        None => {}
    }
    // From here on the old way counts, if it works: a server that answers both may have settled on what came last.
    let mut initialize = std::pin::pin!(initialize(wire, options, epoch));
    tokio::select! {
        biased;
        outcome = &mut initialize => match outcome {
            Ok(negotiated) => Ok(negotiated),
            // A server that knows no `initialize` may still be about to answer the probe.
            Err(failure) => tokio::select! {
                answer = discover => match answer {
                    Probe::Modern(negotiated) => Ok(negotiated),
                    Probe::Legacy(_) | Probe::Failed(_) => Err(failure),
                },
                () = silence(dial, PATIENCE) => Err(failure),
            },
        },
        answer = &mut discover => match answer {
            Probe::Modern(negotiated) => match tokio::time::timeout(PATIENCE, initialize).await {
                Ok(Ok(legacy)) => Ok(legacy),
                Ok(Err(_)) | Err(_) => Ok(negotiated),
            },
            Probe::Legacy(_) | Probe::Failed(_) => initialize.await,
        },
    }
}

/// What the probe said.
enum Probe {
    /// The server speaks the modern era.
    Modern(Negotiated),
    /// It does not, and this is how it said so.
    Legacy(Failure),
    /// It can be spoken to in neither way.
    Failed(Failure),
}

async fn discover(wire: &Wire, options: &SessionOptions) -> Probe {
    match discover_once(wire, options).await {
        Err(_) => {
            discover_once(wire, options).await.unwrap_or_else(|error| Probe::Failed(Failure::Rejected(error)))
        }
        Ok(probe) => probe,
    }
}

/// Fails where the server refuses the version, and says that it is one of those that it speaks: it may be asked again.
async fn discover_once(wire: &Wire, options: &SessionOptions) -> Result<Probe, RpcError> {
    let version = ProtocolVersion::LATEST;
    let meta = modern_meta(version, options, For::Anybody, None);
    let outcome = ask(wire, Epoch(0), "server/discover", Some(version), "", &meta).await;
    Ok(match outcome {
        Outcome::Answer { frame, is_error: false, payload } => {
            discovered(&frame[payload..], version, meta, options)
        }
        Outcome::Answer { frame, is_error: true, payload } => {
            let error = read_error(&frame[payload..]);
            match error.code {
                code::UNSUPPORTED_PROTOCOL_VERSION => unsupported(error)?,
                number if code::is_modern(number) => Probe::Failed(Failure::Rejected(error)),
                _ => Probe::Legacy(Failure::Rejected(error)),
            }
        }
        Outcome::LaneEnded(StreamError::Refused(fault)) => {
            let refused = |fault| Failure::Other(ConnectError::Refused(fault));
            match fault.status {
                // Nobody there, or nobody who would talk to us in any era.
                None | Some(401 | 403) => Probe::Failed(refused(fault)),
                Some(_) => match fault.error.clone() {
                    Some(error) if error.code == code::UNSUPPORTED_PROTOCOL_VERSION => unsupported(error)?,
                    Some(error) if code::is_modern(error.code) => Probe::Failed(Failure::Rejected(error)),
                    _ => Probe::Legacy(refused(fault)),
                },
            }
        }
        Outcome::LaneEnded(StreamError::Lost(fault)) => {
            Probe::Legacy(Failure::Other(ConnectError::Refused(fault)))
        }
        Outcome::LaneEnded(StreamError::TooLarge(limit)) => Probe::Legacy(too_large(limit)),
        Outcome::LaneEnded(StreamError::NotExecuted(_)) => {
            Probe::Legacy(unreadable("the server asks for a session"))
        }
        Outcome::Expired(_) => {
            unreachable!("the handshake as a whole has a deadline, its requests have none")
        }
        Outcome::Closed(ended) => Probe::Failed(Failure::Ended(ended)),
    })
}

fn discovered(payload: &[u8], version: ProtocolVersion, meta: String, options: &SessionOptions) -> Probe {
    #[derive(Deserialize)]
    struct Discovered<'a> {
        #[serde(rename = "supportedVersions")]
        supported: Vec<String>,
        #[serde(borrow)]
        capabilities: Option<&'a RawValue>,
        instructions: Option<String>,
        #[serde(borrow, rename = "_meta")]
        meta: Option<Meta<'a>>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/serverInfo")]
        server: Option<&'a RawValue>,
    }
    let found = match Discovered::deserialize(&mut serde_json::Deserializer::from_slice(payload)) {
        Ok(found) => found,
        // A server that answers anything to anything.
        Err(error) => return Probe::Legacy(unreadable(&error.to_string())),
    };
    if !found.supported.iter().any(|it| it == version.as_str()) {
        return match found
            .supported
            .iter()
            .any(|it| it.parse().is_ok_and(|it: ProtocolVersion| it.era() == Era::Legacy))
        {
            true => Probe::Legacy(version_failure(&found.supported)),
            false => Probe::Failed(version_failure(&found.supported)),
        };
    }
    let server = server_info(found.meta.and_then(|it| it.server), found.instructions, found.capabilities);
    let level = options.log_level.filter(|_| server.capabilities.logging);
    let mut negotiated = Negotiated::new(version, server, meta);
    if let Some(level) = level {
        negotiated.log(level, options);
    }
    Probe::Modern(negotiated)
}

/// The server says which versions it speaks instead.
fn unsupported(error: RpcError) -> Result<Probe, RpcError> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let supported =
        error.data.as_ref().and_then(|it| it.read::<Data>().ok()).map(|it| it.supported).unwrap_or_default();
    let speaks = |era| supported.iter().any(|it| it.parse().is_ok_and(|it: ProtocolVersion| it.era() == era));
    match (speaks(Era::Modern), speaks(Era::Legacy)) {
        (true, _) => Err(error),
        (false, true) => Ok(Probe::Legacy(Failure::Rejected(error))),
        (false, false) => Ok(Probe::Failed(version_failure(&supported))),
    }
}

pub(super) async fn initialize(
    wire: &Wire,
    options: &SessionOptions,
    epoch: Epoch,
) -> Result<Negotiated, Failure> {
    let asked = ProtocolVersion::LATEST_LEGACY;
    let params = format!(
        r#""protocolVersion":"{asked}","capabilities":{},"clientInfo":{}"#,
        declared(options),
        client_json(&options.client)
    );
    let frame = match ask(wire, epoch, "initialize", None, &params, "").await {
        Outcome::Answer { frame, is_error: false, payload } => frame.slice(payload..),
        Outcome::Answer { frame, is_error: true, payload } => {
            return Err(Failure::Rejected(read_error(&frame[payload..])));
        }
        Outcome::LaneEnded(StreamError::Refused(fault) | StreamError::Lost(fault)) => {
            return Err(Failure::Other(ConnectError::Refused(fault)));
        }
        Outcome::LaneEnded(StreamError::TooLarge(limit)) => return Err(too_large(limit)),
        Outcome::LaneEnded(StreamError::NotExecuted(_)) => {
            return Err(unreadable("the server asks for a session before it opens one"));
        }
        Outcome::Expired(_) => {
            unreachable!("the handshake as a whole has a deadline, its requests have none")
        }
        Outcome::Closed(ended) => return Err(Failure::Ended(ended)),
    };
    let negotiated = initialized(&frame)?;
    let head = MessageHead::new(None, "notifications/initialized".into(), Some(negotiated.version));
    let body = frame::notification("notifications/initialized", "", "");
    wire.engine().send(OutboundMessage { epoch, head, body });
    Ok(negotiated)
}

fn initialized(payload: &[u8]) -> Result<Negotiated, Failure> {
    #[derive(Deserialize)]
    struct Initialized<'a> {
        #[serde(rename = "protocolVersion")]
        version: String,
        #[serde(borrow)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, rename = "serverInfo")]
        server: Option<&'a RawValue>,
        instructions: Option<String>,
    }
    let found = Initialized::deserialize(&mut serde_json::Deserializer::from_slice(payload))
        .map_err(|it| unreadable(&it.to_string()))?;
    // The server's choice is checked: a version that we do not speak is not spoken.
    let version: ProtocolVersion =
        found.version.parse().map_err(|_| version_failure(std::slice::from_ref(&found.version)))?;
    // A revision without `initialize` cannot be what it settles on.
    if version.era() == Era::Modern {
        return Err(version_failure(std::slice::from_ref(&found.version)));
    }
    let server = server_info(found.server, found.instructions, found.capabilities);
    Ok(Negotiated::new(version, server, String::new()))
}

async fn ask(
    wire: &Wire,
    epoch: Epoch,
    method: &'static str,
    version: Option<ProtocolVersion>,
    params: &str,
    meta: &str,
) -> Outcome {
    let message = |id| OutboundMessage {
        epoch,
        head: MessageHead::new(Some(id), method.into(), version),
        body: frame::request(id, method, params, meta),
    };
    // `initialize` must not be cancelled; of a probe nobody needs to hear that it was given up.
    let terms = CallTerms { given_up: GivenUp::Silent, ..CallTerms::default() };
    let outcome = wire.engine().call(terms, message).await.1;
    if let Outcome::Answer { .. } = outcome {
        wire.hear();
    }
    outcome
}

fn server_info(
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
    ServerInfo { name, version, instructions, capabilities }
}

pub(super) fn read_error(payload: &[u8]) -> RpcError {
    RpcError::deserialize(&mut serde_json::Deserializer::from_slice(payload))
        .unwrap_or_else(|_| RpcError::new(code::INTERNAL_ERROR, "an error that cannot be read"))
}
