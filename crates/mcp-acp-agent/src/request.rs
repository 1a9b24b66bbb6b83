//! The requests of agent-client-protocol that set a session up, as they were sent.
//!
//! The SDK's own types have read the list of servers before a handler runs: what is wrong is gone by then, or told with
//! every value that was in the request. These keep the parameters as JSON, so that [`mcp_acp::validate`] can say what
//! is wrong with them; reading them never fails, and showing them shows nothing. The SDK hands parameters over as a
//! `Value`, so that of a key that stands twice only the last is left: that it stood twice cannot be told here.

use agent_client_protocol::{Error, JsonRpcMessage, JsonRpcRequest, UntypedMessage, v1::schema};
use mcp_acp::{AcpVersion, Capabilities, Policy, SessionMethod, SessionRequest, ValidatedRequest};
use mcp_model::{RawJson, RpcError};
use serde_json::Value;

use crate::SessionSetupError;
use crate::folder::{check_folder, validate_request};

/// A request that sets a session up, with the response of its version.
pub trait TypedSessionRequest: JsonRpcRequest + Sync {
    /// The version of the connections that it is for.
    const VERSION: AcpVersion;
    /// What it asks for.
    const METHOD: SessionMethod;

    /// The parameters as they were sent.
    fn session_request(&self) -> &SessionRequest;

    /// Holds it against what the agent has advertised. Its folders are looked at, on another thread and no longer than
    /// 10 s, so that a disk that hangs holds up nothing else: that is [`SessionSetupError::FolderCheckTimeout`].
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

    /// The session that it is about; `None` for `session/new`, whatever else it says, and where the request names none.
    ///
    /// For `session/fork` it is the session that is forked, which goes on: the servers are those of a new one, and must
    /// not take the place of its own.
    fn session_id(&self) -> Option<String> {
        match Self::METHOD {
            SessionMethod::New => return None,
            SessionMethod::Load | SessionMethod::Resume | SessionMethod::Fork => {}
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            session_id: Option<String>,
        }
        self.session_request().params.read::<Named>().ok()?.session_id
    }
}

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
                untyped(&self.0)
            }

            fn parse_message(method: &str, params: &Value) -> Result<$name, Error> {
                read($method, method, params).map($name)
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
    NewSession,
    SessionMethod::New,
    AcpVersion::V1,
    schema::NewSessionResponse
);
request!(
    /// `session/load`, version 1. Version 2 has none.
    LoadSession,
    SessionMethod::Load,
    AcpVersion::V1,
    schema::LoadSessionResponse
);
request!(
    /// `session/resume`, version 1.
    ResumeSession,
    SessionMethod::Resume,
    AcpVersion::V1,
    schema::ResumeSessionResponse
);
#[cfg(feature = "session-fork")]
request!(
    /// `session/fork`, version 1.
    ForkSession,
    SessionMethod::Fork,
    AcpVersion::V1,
    schema::ForkSessionResponse
);
#[cfg(feature = "protocol-v2")]
request!(
    /// `session/new`, version 2.
    NewSessionV2,
    SessionMethod::New,
    AcpVersion::V2,
    agent_client_protocol::v2::schema::NewSessionResponse
);
#[cfg(feature = "protocol-v2")]
request!(
    /// `session/resume`, version 2.
    ResumeSessionV2,
    SessionMethod::Resume,
    AcpVersion::V2,
    agent_client_protocol::v2::schema::ResumeSessionResponse
);
#[cfg(all(feature = "protocol-v2", feature = "session-fork"))]
request!(
    /// `session/fork`, version 2.
    ForkSessionV2,
    SessionMethod::Fork,
    AcpVersion::V2,
    agent_client_protocol::v2::schema::ForkSessionResponse
);

fn untyped(set_up: &SessionRequest) -> Result<UntypedMessage, Error> {
    UntypedMessage::new(set_up.method.as_str(), value(&set_up.params))
}

fn read(wanted: SessionMethod, method: &str, params: &Value) -> Result<SessionRequest, Error> {
    if method != wanted.as_str() {
        return Err(Error::method_not_found());
    }
    // The SDK says null where a message has no parameters.
    let params = match params {
        Value::Null => RawJson::empty_object(),
        params => RawJson::from_value(params).expect("what was read from JSON is JSON"),
    };
    Ok(SessionRequest { method: wanted, params })
}

fn value(json: &RawJson) -> Value {
    json.read().expect("a raw JSON is JSON")
}

/// An error of ours as the SDK's handlers answer it.
pub(crate) fn sdk_error(error: &RpcError) -> Error {
    let number =
        i32::try_from(error.code).unwrap_or(i32::from(agent_client_protocol::ErrorCode::INTERNAL_ERROR));
    let res = Error::new(number, error.message.clone());
    match &error.data {
        Some(data) => res.data(value(data)),
        None => res,
    }
}
