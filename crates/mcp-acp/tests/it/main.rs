//! Tests of the validation of session requests.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod errors;
mod failures;
mod fixtures;
mod matrix;
mod policies;
mod protocol_types;
#[cfg(feature = "schema")]
mod schema;
mod secrets;

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, SessionMethod, SessionRequest, SessionRequestError,
    ValidatedRequest, validate,
};
use mcp_host_model::RawJson;
use serde_json::Value;

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec().into()).unwrap()
}

/// A request of this method with this list of servers, in the folder `/desk`.
pub(crate) fn request(method: SessionMethod, servers: &str) -> SessionRequest {
    let params = raw(&format!(r#"{{"cwd":"/desk","sessionId":"s","mcpServers":{servers}}}"#));
    SessionRequest::new(method, params)
}

/// All capabilities, with one custom transport.
pub(crate) fn all_capabilities() -> Capabilities {
    let custom = vec!["_pigeon".to_owned()];
    let mut capabilities = Capabilities::STDIO;
    capabilities.http = true;
    capabilities.sse = true;
    capabilities.acp = true;
    capabilities.custom = custom;
    capabilities
}

/// Validates as a strict agent that has declared all capabilities.
pub(crate) fn validate_with_all(
    version: AcpVersion,
    request: &SessionRequest,
) -> Result<ValidatedRequest, SessionRequestError> {
    validate(request, &AgentProfile::new(version, &all_capabilities()))
}

/// The JSON of a request error.
pub(crate) fn error_json(refusal: &SessionRequestError) -> Value {
    serde_json::to_value(refusal).unwrap()
}
