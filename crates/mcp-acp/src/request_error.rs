//! Errors of session requests, as JSON-RPC errors of ACP. Their messages and data are part of the contract.
//!
//! They name servers and transports, and nothing else of the request, which may contain secrets.

use std::collections::BTreeMap;
use std::fmt;

use mcp_model::{RawJson, RpcError};
use serde::{Serialize, Serializer};

use crate::code;
use crate::diagnostic::RequestDiagnostic;
use crate::version::{AcpTransport, AcpVersion, SessionMethod};

/// The error of a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRequestError {
    /// It is not a request.
    NotARequest,
    /// The method does not set up a session in this version.
    MethodNotFound {
        /// The method.
        method: String,
    },
    /// The agent did not declare the method (ACPX-16). The caller checks this; [`validate`](crate::validate()) does
    /// not.
    MethodNotDeclared {
        /// The method.
        method: SessionMethod,
        /// The missing capability: [`SessionMethod::capability`].
        capability: &'static str,
    },
    /// The parameters are invalid, or require an undeclared capability (ACP-015, ACP-016).
    InvalidParams(InvalidParams),
}

impl fmt::Display for SessionRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionRequestError::NotARequest => f.write_str("this is no request: it has no `method`"),
            SessionRequestError::MethodNotFound { method } => {
                write!(f, "the method `{}` sets no session up", sanitize(method))
            }
            SessionRequestError::MethodNotDeclared { method, capability } => {
                write!(f, "{} not supported: agent did not declare {capability}", method.as_str())
            }
            SessionRequestError::InvalidParams(it) => it.fmt(f),
        }
    }
}

impl std::error::Error for SessionRequestError {}

impl From<&SessionRequestError> for RpcError {
    fn from(refusal: &SessionRequestError) -> RpcError {
        match refusal {
            SessionRequestError::NotARequest => RpcError::new(code::INVALID_REQUEST, refusal.to_string()),
            SessionRequestError::MethodNotFound { method } => {
                let data = BTreeMap::from([("method", sanitize(method))]);
                let data = RawJson::from_value(&data).expect("a map of texts is JSON");
                let error = RpcError::new(code::METHOD_NOT_FOUND, refusal.to_string());
                RpcError { data: Some(data), ..error }
            }
            SessionRequestError::MethodNotDeclared { method, capability } => {
                #[derive(Serialize)]
                #[serde(rename_all = "camelCase")]
                struct Data<'a> {
                    method: &'a str,
                    required_capability: &'a str,
                    declared: bool,
                }
                let data = Data { method: method.as_str(), required_capability: capability, declared: false };
                let data = RawJson::from_value(&data).expect("texts and flags are JSON");
                let error = RpcError::new(code::METHOD_NOT_FOUND, refusal.to_string());
                RpcError { data: Some(data), ..error }
            }
            SessionRequestError::InvalidParams(it) => RpcError::from(it),
        }
    }
}

/// The error for invalid parameters (ACP-027 to ACP-029).
///
/// Invariant: contains at least one error. Prints the specified sentence if a capability is missing, and serializes
/// as the `error` member of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidParams {
    errors: Vec<RequestDiagnostic>,
    supported: Vec<AcpTransport>,
}

/// The maximum number of items in `data.errors`; `data.omittedErrors` counts the others.
const MAX_LISTED_ERRORS: usize = 200;

impl InvalidParams {
    /// Creates an error from all diagnostics, in the order of the request, and the supported transports; `None`
    /// without diagnostics.
    pub fn new(errors: Vec<RequestDiagnostic>, supported: Vec<AcpTransport>) -> Option<InvalidParams> {
        (!errors.is_empty()).then_some(InvalidParams { errors, supported })
    }

    /// Returns all errors, in the order of the request.
    pub fn errors(&self) -> &[RequestDiagnostic] {
        &self.errors
    }

    /// Returns the supported transports.
    pub fn supported(&self) -> &[AcpTransport] {
        &self.supported
    }

    /// Returns the first error about an unsupported transport.
    fn unsupported(&self) -> Option<(&RequestDiagnostic, &AcpTransport)> {
        self.errors.iter().find_map(|it| Some((it, it.requested_transport.as_ref()?)))
    }
}

impl fmt::Display for InvalidParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((error, _)) = self.unsupported() {
            return f.write_str(&error.message);
        }
        match &self.errors[..] {
            errors if errors.iter().any(|it| it.index.is_some()) => {
                write!(f, "Invalid mcpServers: {} errors", errors.len())
            }
            [error] => f.write_str(&error.message),
            errors => write!(f, "Invalid params: {} errors", errors.len()),
        }
    }
}

impl std::error::Error for InvalidParams {}

impl From<&InvalidParams> for RpcError {
    fn from(invalid: &InvalidParams) -> RpcError {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            requested_transport: Option<&'a AcpTransport>,
            #[serde(skip_serializing_if = "Option::is_none")]
            declared_capability: Option<bool>,
            supported_transports: &'a [AcpTransport],
            #[serde(skip_serializing_if = "Option::is_none")]
            server_name: Option<&'a str>,
            errors: &'a [RequestDiagnostic],
            #[serde(skip_serializing_if = "Option::is_none")]
            omitted_errors: Option<usize>,
        }
        let InvalidParams { errors, supported } = invalid;
        let unsupported = invalid.unsupported();
        let about = unsupported.map(|it| it.0).or_else(|| errors.first());
        let listed = &errors[..errors.len().min(MAX_LISTED_ERRORS)];
        let data = Data {
            requested_transport: unsupported.map(|it| it.1),
            declared_capability: unsupported.map(|_| false),
            supported_transports: supported,
            server_name: about.and_then(|it| it.server_name.as_deref()),
            errors: listed,
            omitted_errors: Some(errors.len() - listed.len()).filter(|it| *it > 0),
        };
        let data = RawJson::from_value(&data).expect("texts, flags and lists of them are JSON");
        RpcError { data: Some(data), ..RpcError::new(code::INVALID_PARAMS, invalid.to_string()) }
    }
}

impl Serialize for InvalidParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RpcError::from(self).serialize(serializer)
    }
}

impl Serialize for SessionRequestError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RpcError::from(self).serialize(serializer)
    }
}

/// Returns the specified sentence for an unsupported transport (ACP-027, ACP-029).
pub(crate) fn unsupported_message(version: AcpVersion, transport: &AcpTransport) -> String {
    let (word, place) = (
        transport.as_str(),
        match version {
            AcpVersion::V1 => "mcpCapabilities",
            AcpVersion::V2 => "session.mcp",
        },
    );
    match (version, transport) {
        (AcpVersion::V2, AcpTransport::Sse) => {
            "SSE transport not supported: protocol version 2 has no such transport".to_owned()
        }
        (_, AcpTransport::Other(word)) => {
            format!("'{word}' transport not supported: agent did not declare {place}.{word}")
        }
        (_, AcpTransport::Stdio | AcpTransport::Http | AcpTransport::Sse | AcpTransport::Acp) => {
            let name = word.to_ascii_uppercase();
            format!("{name} transport not supported: agent did not declare {place}.{word}")
        }
    }
}

/// Shortens a name from a request and removes control characters.
pub(crate) fn sanitize(word: &str) -> String {
    word.chars().take(64).flat_map(char::escape_debug).collect()
}
