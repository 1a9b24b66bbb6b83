//! Raw session requests of agent-client-protocol.
//!
//! The SDK's own types parse the list of servers before a handler runs: errors are lost, or reported with all values
//! of the request. These types keep the parameters as JSON, so that [`mcp_host_acp::validate`] can report the errors.
//! Parsing them never fails, and `Debug` prints no values. The SDK provides parameters as a `Value`, so duplicate
//! keys cannot be detected here.

use agent_client_protocol::{Error, JsonRpcMessage, JsonRpcRequest, UntypedMessage, v1::schema};
use mcp_host_acp::{AcpVersion, Capabilities, Policy, SessionMethod, SessionRequest, ValidatedRequest};
use mcp_host_model::RawJson;
use serde_json::Value;

use crate::error::SessionSetupError;
use crate::folder::{check_folder, validate_request};

/// A request that sets up a session, with its response type.
pub trait TypedSessionRequest: JsonRpcRequest + Sync {
    /// The protocol version.
    const VERSION: AcpVersion;
    /// The method.
    const METHOD: SessionMethod;

    /// Returns the raw request.
    fn session_request(&self) -> &SessionRequest;

    /// Validates the request against the advertised capabilities. Its folders are checked on another thread for at
    /// most 10 s, so a hanging disk blocks nothing else: that is [`SessionSetupError::FolderCheckTimeout`].
    ///
    /// # Panics
    ///
    /// When polled outside of a Tokio runtime.
    fn validate(
        &self,
        capabilities: &Capabilities,
        policy: Policy,
    ) -> impl Future<Output = Result<ValidatedRequest, SessionSetupError>> + Send {
        validate_request(
            self.session_request().clone(),
            Self::VERSION,
            capabilities.clone(),
            policy,
            check_folder,
        )
    }

    /// Returns the session id; `None` for `session/new`, and if the request has none.
    ///
    /// For `session/fork` this is the session that is forked, which continues: the servers of the request belong to the
    /// new session, and must not replace those of the forked one.
    fn session_id(&self) -> Option<String> {
        if Self::METHOD == SessionMethod::New {
            return None;
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WithSessionId {
            session_id: Option<String>,
        }
        self.session_request().params.read::<WithSessionId>().ok()?.session_id
    }
}

/// Defines a request type with its method, version and response.
macro_rules! request {
    ($(#[$documentation:meta])* $name:ident, $method:expr, $version:expr, $response:ty) => {
        $(#[$documentation])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(SessionRequest);

        impl JsonRpcMessage for $name {
            fn matches_method(method: &str) -> bool {
                method == $method.as_str()
            }

            fn method(&self) -> &str {
                $method.as_str()
            }

            fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
                to_untyped(&self.0)
            }

            fn parse_message(method: &str, params: &Value) -> Result<$name, Error> {
                read_request($method, method, params).map($name)
            }
        }

        impl JsonRpcRequest for $name {
            type Response = $response;
        }

        impl TypedSessionRequest for $name {
            const VERSION: AcpVersion = $version;
            const METHOD: SessionMethod = $method;

            fn session_request(&self) -> &SessionRequest {
                &self.0
            }
        }
    };
}

request!(
    /// `session/new`, version 1.
    NewSession, SessionMethod::New, AcpVersion::V1, schema::NewSessionResponse
);
request!(
    /// `session/load`, version 1. Version 2 has none.
    LoadSession, SessionMethod::Load, AcpVersion::V1, schema::LoadSessionResponse
);
request!(
    /// `session/resume`, version 1.
    ResumeSession, SessionMethod::Resume, AcpVersion::V1, schema::ResumeSessionResponse
);
#[cfg(feature = "session-fork")]
request!(
    /// `session/fork`, version 1.
    ForkSession, SessionMethod::Fork, AcpVersion::V1, schema::ForkSessionResponse
);
#[cfg(feature = "protocol-v2")]
request!(
    /// `session/new`, version 2.
    NewSessionV2, SessionMethod::New, AcpVersion::V2, agent_client_protocol::v2::schema::NewSessionResponse
);
#[cfg(feature = "protocol-v2")]
request!(
    /// `session/resume`, version 2.
    ResumeSessionV2, SessionMethod::Resume, AcpVersion::V2, agent_client_protocol::v2::schema::ResumeSessionResponse
);
#[cfg(all(feature = "protocol-v2", feature = "session-fork"))]
request!(
    /// `session/fork`, version 2.
    ForkSessionV2, SessionMethod::Fork, AcpVersion::V2, agent_client_protocol::v2::schema::ForkSessionResponse
);

fn to_untyped(request: &SessionRequest) -> Result<UntypedMessage, Error> {
    let params: Value = request.params.read().expect("raw JSON is JSON");
    UntypedMessage::new(request.method.as_str(), params)
}

fn read_request(expected: SessionMethod, method: &str, params: &Value) -> Result<SessionRequest, Error> {
    if method != expected.as_str() {
        return Err(Error::method_not_found());
    }
    // The SDK represents missing parameters as null.
    let params = match params {
        Value::Null => RawJson::empty_object(),
        params => RawJson::from_value(params).expect("a value is JSON"),
    };
    Ok(SessionRequest::new(expected, params))
}
