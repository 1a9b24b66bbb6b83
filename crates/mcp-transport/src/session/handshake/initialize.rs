//! The handshake of the legacy era: `initialize`.

use mcp_host_model::{Era, Method, ProtocolVersion};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ConnectError;
use crate::rpc::frame;
use crate::rpc::outcome::RpcOutcome;
use crate::session::handshake::failure::{
    HandshakeFailure, invalid_response_failure, too_large_failure, unsupported_version_failure,
};
use crate::session::handshake::request::HandshakeConnection;
use crate::session::handshake::version_refusal::{offered_legacy_version, supported_versions};
use crate::session::negotiated::NegotiatedSession;
use crate::session::negotiated::client_meta::{client_json, legacy_capabilities};
use crate::session::negotiated::server::read_server_info;
use crate::session::server_error::read_error;
use crate::transport::{MessageHead, OutboundMessage, StreamError};

impl HandshakeConnection<'_> {
    /// Sends `initialize` and then `notifications/initialized`. If the server refuses the version and names another one
    /// that is supported here, sends both again with that one.
    pub(super) async fn initialize(self) -> Result<NegotiatedSession, HandshakeFailure> {
        let latest = ProtocolVersion::LATEST_LEGACY;
        let failure = match self.initialize_with(latest).await {
            Err(failure) => failure,
            negotiated => return negotiated,
        };
        let Some(error) = failure.rpc_error() else { return Err(failure) };
        if let Some(version) = offered_legacy_version(error, latest) {
            return self.initialize_with(version).await;
        }
        let supported = supported_versions(error);
        Err(if supported.is_empty() { failure } else { unsupported_version_failure(&supported) })
    }

    /// Sends `initialize` with this version, and then `notifications/initialized`.
    async fn initialize_with(self, version: ProtocolVersion) -> Result<NegotiatedSession, HandshakeFailure> {
        let params = format!(
            r#""protocolVersion":"{version}","capabilities":{},"clientInfo":{}"#,
            legacy_capabilities(self.options),
            client_json(&self.options.client)
        );
        let frame = match self.send_request(Method::Initialize, None, &params, "").await {
            RpcOutcome::Response { frame, is_error: false, payload_start } => frame.slice(payload_start..),
            RpcOutcome::Response { frame, is_error: true, payload_start } => {
                return Err(HandshakeFailure::Rejected(read_error(&frame[payload_start..])));
            }
            RpcOutcome::StreamFailed(
                StreamError::Unreachable(error) | StreamError::Refused(error) | StreamError::Lost(error),
            ) => {
                return Err(HandshakeFailure::Other(ConnectError::Refused(error)));
            }
            RpcOutcome::StreamFailed(StreamError::TooLarge(limit)) => return Err(too_large_failure(limit)),
            RpcOutcome::StreamFailed(StreamError::NotExecuted(_)) => {
                return Err(invalid_response_failure("the server asks for a session before it opens one"));
            }
            RpcOutcome::Expired(_) => {
                unreachable!("the handshake as a whole has a deadline, its requests have none")
            }
            RpcOutcome::Closed(disconnect) => return Err(HandshakeFailure::Ended(disconnect)),
        };
        let negotiated = read_initialize_result(&frame)?;
        let head = MessageHead::new(None, Method::Initialized, Some(negotiated.version));
        let body = frame::notification(Method::Initialized.as_str(), "", "");
        self.connection.engine.send(OutboundMessage { epoch: self.epoch, head, body });
        Ok(negotiated)
    }
}

/// Reads the result of `initialize`.
fn read_initialize_result(payload: &[u8]) -> Result<NegotiatedSession, HandshakeFailure> {
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
    let result = InitializeResult::deserialize(&mut serde_json::Deserializer::from_slice(payload))
        .map_err(|it| invalid_response_failure(&it.to_string()))?;
    // The server chooses the version; one that we do not know is an error.
    let version: ProtocolVersion = result
        .version
        .parse()
        .map_err(|_| unsupported_version_failure(std::slice::from_ref(&result.version)))?;
    // The modern era has no `initialize`, so its result must not contain a modern version.
    if version.era() == Era::Modern {
        return Err(unsupported_version_failure(std::slice::from_ref(&result.version)));
    }
    let server = read_server_info(result.server, result.instructions, result.capabilities);
    Ok(NegotiatedSession::new(version, server, String::new()))
}
