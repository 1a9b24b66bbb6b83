//! Requests as clients send them, held against agents as they declare themselves.

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

/// Everything that there is.
pub(crate) fn all() -> Capabilities {
    let custom = vec!["_pigeon".to_owned()];
    let mut capabilities = Capabilities::STDIO;
    capabilities.http = true;
    capabilities.sse = true;
    capabilities.acp = true;
    capabilities.custom = custom;
    capabilities
}

/// What a strict agent that has declared everything answers.
pub(crate) fn answer(
    version: AcpVersion,
    set_up: &SessionRequest,
) -> Result<ValidatedRequest, SessionRequestError> {
    validate(set_up, &AgentProfile::new(version, &all()))
}

/// The `error` of a refusal.
pub(crate) fn error(refusal: &SessionRequestError) -> Value {
    serde_json::to_value(refusal).unwrap()
}
