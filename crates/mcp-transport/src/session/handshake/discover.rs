//! The modern probe: `server/discover`, and what its response says about the server's era.

use mcp_host_model::{Era, Method, ProtocolVersion, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ConnectError;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::request_owner::OwnerHint;
use crate::session::handshake::failure::{HandshakeFailure, invalid_response, too_large, version_failure};
use crate::session::handshake::request::HandshakeConnection;
use crate::session::negotiated::Negotiated;
use crate::session::negotiated::client_meta::modern_meta;
use crate::session::negotiated::server::server_info;
use crate::session::options::SessionOptions;
use crate::session::server_error::read_error;
use crate::transport::StreamError;

/// The outcome of the probe.
pub(super) enum ProbeOutcome {
    /// The server speaks the modern era.
    Modern(Negotiated),
    /// The server does not speak the modern era. Contains the failure to report if `initialize` is not tried.
    Legacy(HandshakeFailure),
    /// The server can be used in neither era.
    Failed(HandshakeFailure),
}

impl HandshakeConnection<'_> {
    /// Sends `server/discover`, and once more if the server refuses a version that it supports.
    pub(super) async fn discover(self) -> ProbeOutcome {
        match self.send_discover().await {
            Err(_) => self
                .send_discover()
                .await
                .unwrap_or_else(|error| ProbeOutcome::Failed(HandshakeFailure::Rejected(error))),
            Ok(probe) => probe,
        }
    }

    /// Sends `server/discover` once. Returns an error if the server refuses the version although it supports a modern
    /// one; the caller may repeat the request.
    async fn send_discover(self) -> Result<ProbeOutcome, RpcError> {
        let version = ProtocolVersion::LATEST;
        let meta = modern_meta(version, self.options, &OwnerHint::None, None, false);
        let outcome = self.send_request(Method::Discover, Some(version), "", &meta).await;
        Ok(match outcome {
            RpcOutcome::Response { frame, is_error: false, payload_start } => {
                parse_discover(&frame[payload_start..], version, meta, self.options)
            }
            RpcOutcome::Response { frame, is_error: true, payload_start } => {
                let error = read_error(&frame[payload_start..]);
                match error.code {
                    code::UNSUPPORTED_PROTOCOL_VERSION => refused_version(error)?,
                    number if code::is_modern(number) => {
                        ProbeOutcome::Failed(HandshakeFailure::Rejected(error))
                    }
                    _ => ProbeOutcome::Legacy(HandshakeFailure::Rejected(error)),
                }
            }
            // The other era would fail too.
            RpcOutcome::StreamFailed(StreamError::Unreachable(error)) => {
                ProbeOutcome::Failed(HandshakeFailure::Other(ConnectError::Refused(error)))
            }
            RpcOutcome::StreamFailed(StreamError::Refused(error)) => {
                let refused = |error| HandshakeFailure::Other(ConnectError::Refused(error));
                match error.status() {
                    // The server was not reached, or it refuses access: the other era would fail too.
                    None | Some(401 | 403) => ProbeOutcome::Failed(refused(error)),
                    Some(_) => match error.rpc_error().cloned() {
                        Some(error) if error.code == code::UNSUPPORTED_PROTOCOL_VERSION => {
                            refused_version(error)?
                        }
                        Some(error) if code::is_modern(error.code) => {
                            ProbeOutcome::Failed(HandshakeFailure::Rejected(error))
                        }
                        _ => ProbeOutcome::Legacy(refused(error)),
                    },
                }
            }
            RpcOutcome::StreamFailed(StreamError::Lost(error)) => {
                ProbeOutcome::Legacy(HandshakeFailure::Other(ConnectError::Refused(error)))
            }
            RpcOutcome::StreamFailed(StreamError::TooLarge(limit)) => ProbeOutcome::Legacy(too_large(limit)),
            RpcOutcome::StreamFailed(StreamError::NotExecuted(_)) => {
                ProbeOutcome::Legacy(invalid_response("the server asks for a session"))
            }
            RpcOutcome::Expired(_) => {
                unreachable!("the handshake as a whole has a deadline, its requests have none")
            }
            RpcOutcome::Closed(disconnect) => ProbeOutcome::Failed(HandshakeFailure::Ended(disconnect)),
        })
    }
}

/// Reads the result of `server/discover`.
fn parse_discover(
    payload_start: &[u8],
    version: ProtocolVersion,
    meta: String,
    options: &SessionOptions,
) -> ProbeOutcome {
    #[derive(Deserialize)]
    struct DiscoverResult<'a> {
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
    let result = match DiscoverResult::deserialize(&mut serde_json::Deserializer::from_slice(payload_start)) {
        Ok(result) => result,
        // Some servers respond to an unknown request with any result.
        Err(error) => return ProbeOutcome::Legacy(invalid_response(&error.to_string())),
    };
    if !result.supported.iter().any(|it| it == version.as_str()) {
        return match result
            .supported
            .iter()
            .any(|it| it.parse().is_ok_and(|it: ProtocolVersion| it.era() == Era::Legacy))
        {
            true => ProbeOutcome::Legacy(version_failure(&result.supported)),
            false => ProbeOutcome::Failed(version_failure(&result.supported)),
        };
    }
    let server = server_info(result.meta.and_then(|it| it.server), result.instructions, result.capabilities);
    let level = options.log_level.filter(|_| server.capabilities.logging);
    let mut negotiated = Negotiated::new(version, server, meta);
    if level.is_some() || negotiated.server.capabilities.tasks.call {
        negotiated.set_log_level(level, options);
    }
    ProbeOutcome::Modern(negotiated)
}

/// Decides about a server that refused the version, by the supported versions in its error. Returns the error if
/// they include a modern one: the request may be repeated.
fn refused_version(error: RpcError) -> Result<ProbeOutcome, RpcError> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let supported =
        error.data.as_ref().and_then(|it| it.read::<Data>().ok()).map(|it| it.supported).unwrap_or_default();
    let speaks = |era| supported.iter().any(|it| it.parse().is_ok_and(|it: ProtocolVersion| it.era() == era));
    match (speaks(Era::Modern), speaks(Era::Legacy)) {
        (true, _) => Err(error),
        (false, true) => Ok(ProbeOutcome::Legacy(HandshakeFailure::Rejected(error))),
        (false, false) => Ok(ProbeOutcome::Failed(version_failure(&supported))),
    }
}
