//! Errors of session requests, as JSON-RPC errors of ACP. Their messages and data are part of the contract.
//!
//! They name servers and transports, and nothing else of the request, which may contain secrets.

use std::fmt;

use mcp_host_model::{RawJson, RpcError};
use serde::{Serialize, Serializer};
use serde_json::json;
use thiserror::Error;

use crate::code;
use crate::diagnostic::RequestDiagnostic;
use crate::version::{AcpTransport, AcpVersion, SessionMethod};

/// The error of a refused request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionRequestError {
    /// It is not a request.
    #[error("this is not a request: it has no `method`")]
    NotARequest,
    /// The method does not set up a session in this version.
    #[error("the method `{}` does not set up a session", sanitize(method))]
    MethodNotFound {
        /// The method.
        method: String,
    },
    /// The agent did not declare the method (ACPX-16). The caller checks this; [`validate`](crate::validate()) does
    /// not.
    #[error("{} not supported: agent did not declare {capability}", method.as_str())]
    MethodNotDeclared {
        /// The method.
        method: SessionMethod,
        /// The missing capability: [`SessionMethod::capability`].
        capability: &'static str,
    },
    /// The parameters are invalid, or require an undeclared capability (ACP-015, ACP-016).
    #[error(transparent)]
    InvalidParams(InvalidParams),
}

impl From<&SessionRequestError> for RpcError {
    fn from(error: &SessionRequestError) -> RpcError {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct UndeclaredMethod<'a> {
            method: &'a str,
            required_capability: &'a str,
            declared: bool,
        }
        let (code, data) = match error {
            SessionRequestError::NotARequest => (code::INVALID_REQUEST, None),
            SessionRequestError::MethodNotFound { method } => {
                (code::METHOD_NOT_FOUND, Some(RawJson::from_value(&json!({ "method": sanitize(method) }))))
            }
            SessionRequestError::MethodNotDeclared { method, capability } => {
                let method = method.as_str();
                let data = UndeclaredMethod { method, required_capability: capability, declared: false };
                (code::METHOD_NOT_FOUND, Some(RawJson::from_value(&data)))
            }
            SessionRequestError::InvalidParams(invalid) => return RpcError::from(invalid),
        };
        let data = data.map(|data| data.expect("texts and flags are JSON"));
        RpcError { data, ..RpcError::new(code, error.to_string()) }
    }
}

/// The error for invalid parameters (ACP-027 to ACP-029).
///
/// Invariant: contains at least one error. Prints the specified sentence if a capability is missing, else the first
/// error with its server, because many clients show nothing else. Serializes as the `error` member of a JSON-RPC
/// response.
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
    fn unsupported_transport(&self) -> Option<(&RequestDiagnostic, &AcpTransport)> {
        self.errors.iter().find_map(|error| Some((error, error.requested_transport.as_ref()?)))
    }

    /// Returns the error that the message states: one about an unsupported transport, else the first one.
    fn main_error(&self) -> Option<&RequestDiagnostic> {
        self.unsupported_transport().map(|(error, _)| error).or_else(|| self.errors.first())
    }
}

impl fmt::Display for InvalidParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.main_error() else { return Ok(()) };
        match first {
            // The specified sentence, and the only error of the request itself, are the whole message.
            RequestDiagnostic { requested_transport: Some(transport), .. } if !transport.is_other() => {
                return f.write_str(&first.message);
            }
            RequestDiagnostic { index: None, .. } if self.errors.len() == 1 => {
                return f.write_str(&first.message);
            }
            RequestDiagnostic { index: None, .. } => f.write_str("Invalid params: ")?,
            RequestDiagnostic { index: Some(_), server_name: Some(_), .. } => {
                f.write_str("Invalid mcpServers: ")?
            }
            RequestDiagnostic { index: Some(index), server_name: None, .. } => {
                write!(f, "Invalid mcpServers[{index}]: ")?
            }
        }
        first.write_with_server(f)?;
        match self.errors.len() - 1 {
            0 => Ok(()),
            1 => f.write_str(" (and 1 more error)"),
            more => write!(f, " (and {more} more errors)"),
        }
    }
}

impl std::error::Error for InvalidParams {}

impl From<&InvalidParams> for RpcError {
    fn from(invalid: &InvalidParams) -> RpcError {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct InvalidParamsData<'a> {
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
        let unsupported = invalid.unsupported_transport();
        let listed = &errors[..errors.len().min(MAX_LISTED_ERRORS)];
        let data = InvalidParamsData {
            requested_transport: unsupported.map(|(_, transport)| transport),
            declared_capability: unsupported.map(|_| false),
            supported_transports: supported,
            server_name: invalid.main_error().and_then(|error| error.server_name.as_deref()),
            errors: listed,
            omitted_errors: Some(errors.len() - listed.len()).filter(|count| *count > 0),
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
    let capabilities = match version {
        AcpVersion::V1 => "mcpCapabilities",
        AcpVersion::V2 => "session.mcp",
    };
    let name = match transport {
        AcpTransport::Sse if version == AcpVersion::V2 => {
            return "SSE transport not supported: protocol version 2 has no such transport".to_owned();
        }
        AcpTransport::Other(name) if version == AcpVersion::V1 || !name.starts_with('_') => {
            let number = version.number();
            return format!(
                "'{name}' transport not supported: protocol version {number} has no such transport"
            );
        }
        AcpTransport::Other(name) => format!("'{name}'"),
        AcpTransport::Stdio | AcpTransport::Http | AcpTransport::Sse | AcpTransport::Acp => {
            transport.as_str().to_ascii_uppercase()
        }
    };
    format!("{name} transport not supported: agent did not declare {capabilities}.{transport}")
}

/// Shortens a name from a request and removes control characters.
pub(crate) fn sanitize(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}
