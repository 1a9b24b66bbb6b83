//! The modern probe: `server/discover`, and what its response says about the server's era.

use mcp_host_model::{Era, Method, ProtocolVersion, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ConnectError;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::request_owner::CallOwner;
use crate::session::handshake::failure::{
    HandshakeFailure, invalid_response_failure, too_large_failure, unsupported_version_failure,
};
use crate::session::handshake::request::HandshakeConnection;
use crate::session::handshake::version_refusal::supported_versions;
use crate::session::negotiated::NegotiatedSession;
use crate::session::negotiated::client_meta::modern_meta;
use crate::session::negotiated::server::read_server_info;
use crate::session::options::SessionOptions;
use crate::session::server_error::read_error;
use crate::transport::StreamError;

/// The outcome of the probe.
pub(super) enum ProbeOutcome {
    /// The server speaks the modern era.
    Modern(NegotiatedSession),
    /// The server does not speak the modern era. The failure is reported if `initialize` is not tried.
    Legacy(HandshakeFailure),
    /// The server can be used in neither era.
    Failed(HandshakeFailure),
}

impl HandshakeConnection<'_> {
    /// Sends `server/discover`, and a second time if the first request may be repeated.
    pub(super) async fn discover(self) -> ProbeOutcome {
        if let Ok(outcome) = self.send_discover().await {
            return outcome;
        }
        match self.send_discover().await {
            Ok(outcome) => outcome,
            Err(error) => ProbeOutcome::Failed(HandshakeFailure::Rejected(error)),
        }
    }

    /// Sends `server/discover` once. Returns the server's error if the request may be repeated: the server refused the
    /// version although it supports a modern one.
    async fn send_discover(self) -> Result<ProbeOutcome, RpcError> {
        let version = ProtocolVersion::LATEST;
        let meta = modern_meta(version, self.options, &CallOwner::None, None, false);
        let outcome = self.send_request(Method::Discover, Some(version), "", &meta).await;
        Ok(match outcome {
            RpcOutcome::Response { frame, is_error: false, payload_start } => {
                read_discover_result(&frame[payload_start..], version, meta, self.options)
            }
            RpcOutcome::Response { frame, is_error: true, payload_start } => {
                let error = read_error(&frame[payload_start..]);
                match error.code {
                    code::UNSUPPORTED_PROTOCOL_VERSION => classify_version_refusal(error)?,
                    number if code::is_modern(number) => {
                        ProbeOutcome::Failed(HandshakeFailure::Rejected(error))
                    }
                    _ => ProbeOutcome::Legacy(HandshakeFailure::Rejected(error)),
                }
            }
            // The server says when it can respond, so its era is not known yet.
            RpcOutcome::StreamFailed(StreamError::Refused(error) | StreamError::Lost(error))
                if error.retry_after().is_some() =>
            {
                ProbeOutcome::Failed(HandshakeFailure::Other(ConnectError::Refused(error)))
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
                            classify_version_refusal(error)?
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
            RpcOutcome::StreamFailed(StreamError::TooLarge(limit)) => {
                ProbeOutcome::Legacy(too_large_failure(limit))
            }
            RpcOutcome::StreamFailed(StreamError::NotExecuted(_)) => {
                ProbeOutcome::Legacy(invalid_response_failure("the server asks for a session"))
            }
            RpcOutcome::Expired(_) => {
                unreachable!("the handshake as a whole has a deadline, its requests have none")
            }
            RpcOutcome::Closed(disconnect) => ProbeOutcome::Failed(HandshakeFailure::Ended(disconnect)),
        })
    }
}

/// Reads the result of `server/discover`.
fn read_discover_result(
    payload: &[u8],
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
    let result = match DiscoverResult::deserialize(&mut serde_json::Deserializer::from_slice(payload)) {
        Ok(result) => result,
        // Some servers respond to an unknown request with any result.
        Err(error) => return ProbeOutcome::Legacy(invalid_response_failure(&error.to_string())),
    };
    if !result.supported.iter().any(|it| it == version.as_str()) {
        let failure = unsupported_version_failure(&result.supported);
        return if supports_era(&result.supported, Era::Legacy) {
            ProbeOutcome::Legacy(failure)
        } else {
            ProbeOutcome::Failed(failure)
        };
    }
    let server =
        read_server_info(result.meta.and_then(|it| it.server), result.instructions, result.capabilities);
    let level = options.log_level.filter(|_| server.capabilities.logging);
    let mut negotiated = NegotiatedSession::new(version, server, meta);
    if level.is_some() || negotiated.server.capabilities.tasks.call {
        negotiated.set_log_level(level, options);
    }
    ProbeOutcome::Modern(negotiated)
}

/// Decides by the supported versions in the error of a server that refused the version. Returns the error if they
/// include a modern one: the request may be repeated.
fn classify_version_refusal(error: RpcError) -> Result<ProbeOutcome, RpcError> {
    let supported = supported_versions(&error);
    if supports_era(&supported, Era::Modern) {
        Err(error)
    } else if supports_era(&supported, Era::Legacy) {
        Ok(ProbeOutcome::Legacy(HandshakeFailure::Rejected(error)))
    } else {
        Ok(ProbeOutcome::Failed(unsupported_version_failure(&supported)))
    }
}

/// Whether one of these versions is a known version of `era`.
fn supports_era(versions: &[String], era: Era) -> bool {
    versions.iter().any(|it| it.parse().is_ok_and(|version: ProtocolVersion| version.era() == era))
}
