//! Checks a server's result: it must be an object, and may request input only if the client supports that.
//!
//! A valid result is forwarded as bytes; only URIs and the members that describe its kind are changed. In any other
//! result the members are corrected that strict clients refuse.

use mcp_host_model::{
    Era, Method, MethodName, ProtocolVersion, RawJson, ResultInfo, ResultKind, ResultTypeMember, RpcError,
    ServerId, code,
};
use mcp_host_registry::{ClientResult, result_for_clients};
use mcp_host_runtime::{RawResult, RequestFailure};

use crate::methods::context::RequestContext;
use crate::protocol::message_writer::json_string;
use crate::protocol::request_state::StateBinding;
use crate::protocol::result_body::CheckedResult;
use crate::protocol::{json_splice, upstream_error};
use crate::session::pending_input::MAX_INPUT_REQUESTS;
use crate::session::supported_requests::SupportedRequests;

/// The member with the kind of result.
const RESULT_TYPE: &str = "resultType";

/// The message about a result that is ambiguous.
pub(super) const REPEATED_MEMBER: &str = "repeats a member that describes its result";

/// The members that results have in the modern era only.
const MODERN_MEMBERS: [&str; 3] = [RESULT_TYPE, "ttlMs", "cacheScope"];

impl RequestContext<'_> {
    /// Checks a server's result, and converts it for the client. `name` is the name or URI in the request; empty if it
    /// has none.
    pub(super) fn check_result(&self, raw: RawResult, name: &str) -> Result<CheckedResult, RpcError> {
        let RawResult { result, info, server, .. } = raw;
        self.note_server(&server);
        let object = self.check_result_kind(CheckedResult { object: result, info }, &server, name)?;
        Ok(CheckedResult { object: self.expose_uris(object, &server, name), info })
    }

    /// Checks the kind of a result, and changes the members that describe it to those of the client's era.
    fn check_result_kind(
        &self,
        CheckedResult { object, info }: CheckedResult,
        server: &ServerId,
        name: &str,
    ) -> Result<RawJson, RpcError> {
        let failed = |what: &str| Err(protocol_error(server, what));
        if !object.is_object() {
            return failed("returned a result that is not an object");
        }
        let object = self.correct_result(object, info, server, name)?;
        let is_legacy = self.client.era() == Era::Legacy;
        let is_cacheable = self.request.method.as_known().is_some_and(Method::has_cacheable_result);
        let object = match (info.result_type, info.kind) {
            (ResultTypeMember::Missing, _) if !is_cacheable => return Ok(object),
            (ResultTypeMember::Missing, _) => object,
            (ResultTypeMember::Ignored, _) => {
                let complete = |key: &str| (key == RESULT_TYPE).then(|| json_string("complete"));
                json_splice::replace_values(&object, |key, _| complete(key))
            }
            (ResultTypeMember::Present, ResultKind::Ambiguous) => return failed(REPEATED_MEMBER),
            (ResultTypeMember::Present, ResultKind::Complete | ResultKind::ToolError) => object,
            (ResultTypeMember::Present, ResultKind::Task) => return self.check_task(server, object),
            (ResultTypeMember::Present, ResultKind::InputRequired) => {
                return self.check_input_required(object, server, name);
            }
        };
        Ok(if is_legacy { json_splice::without_members(&object, &MODERN_MEMBERS) } else { object })
    }

    /// Corrects the members of a complete result that strict clients of the client's version refuse.
    fn correct_result(
        &self,
        object: RawJson,
        info: ResultInfo,
        server: &ServerId,
        name: &str,
    ) -> Result<RawJson, RpcError> {
        let version = self.client.version;
        let is_strict = info.is_strict_tool_result && version >= ProtocolVersion::V2025_06_18;
        let is_complete = matches!(info.kind, ResultKind::Complete | ResultKind::ToolError);
        let Some(method) = self.request.method.as_known().filter(|_| is_complete && !is_strict) else {
            return Ok(object);
        };
        let ClientResult { result, corrected, .. } = result_for_clients(method, name, &object, version)
            .map_err(|error| protocol_error(server, &error.to_string()))?;
        if !corrected.is_empty() {
            let members = corrected.join(", ");
            tracing::warn!(%server, %method, name, members, "members of a result were corrected for strict clients");
        }
        Ok(result)
    }

    /// Checks a result that requests input, and seals its state.
    fn check_input_required(
        &self,
        result: RawJson,
        server: &ServerId,
        name: &str,
    ) -> Result<RawJson, RpcError> {
        let failed = |what: &str| protocol_error(server, what);
        let members = result.members().ok_or_else(|| failed("returned a result with an invalid name"))?;
        let all =
            |name: &'static str| members.iter().filter(move |(key, _)| key == name).map(|(_, value)| value);
        if ["inputRequests", "requestState"].iter().any(|name| all(name).nth(1).is_some()) {
            return Err(failed(REPEATED_MEMBER));
        }
        if self.client.era() == Era::Legacy || !self.may_need_input() {
            return Err(failed("requests input where that is not allowed"));
        }
        let count = match all("inputRequests").next() {
            Some(requests) => check_input_requests(self.client.features.supported_requests, requests)
                .map_err(|reason| failed(&reason))?,
            None => 0,
        };
        let Some(state) = all("requestState").next() else {
            return match count {
                0 => Err(failed("requests input without naming any")),
                _ => Ok(result),
            };
        };
        let state =
            state.to_text().ok_or_else(|| failed("returned a `requestState` that is not a string"))?;
        let sealed = json_string(&self.gateway.state_sealer.seal(&self.state_binding(server, name), &state));
        Ok(json_splice::replace_values(&result, |key, _| (key == "requestState").then(|| sealed.clone())))
    }

    /// Converts a failed call into the error for the client.
    pub(super) fn call_error(&self, failure: RequestFailure) -> RpcError {
        upstream_error::convert_failure(failure, &self.client.features.capabilities)
    }

    /// The values that a `requestState` is bound to.
    pub(super) fn state_binding<'a>(&'a self, server: &'a ServerId, name: &'a str) -> StateBinding<'a> {
        StateBinding { principal: &self.client.principal, server, method: self.request.method.as_str(), name }
    }

    /// Whether a server may request input before it returns a result.
    pub(super) fn may_need_input(&self) -> bool {
        self.request.method.as_known().is_some_and(Method::can_require_input)
    }
}

/// The error for a result that breaks the protocol.
pub(super) fn protocol_error(server: &ServerId, what: &str) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, format!("MCPProtocolError: server '{server}' {what}"))
}

/// Checks that the client supports these requests for input, and returns their number.
pub(super) fn check_input_requests(supported: SupportedRequests, object: &RawJson) -> Result<usize, String> {
    let requests = object.members().ok_or("requests input without an object")?;
    if requests.len() > MAX_INPUT_REQUESTS {
        return Err(format!("requests more than {MAX_INPUT_REQUESTS} inputs at once"));
    }
    for (_, request) in &requests {
        check_input_request(supported, request).map_err(|reason| format!("requests input: {reason}"))?;
    }
    Ok(requests.len())
}

/// Checks that the client supports this request.
fn check_input_request(supported: SupportedRequests, request: &RawJson) -> Result<(), String> {
    let members = request.members().ok_or("a server request must be a JSON object")?;
    let all = |name: &'static str| members.iter().filter(move |(key, _)| key == name).map(|(_, value)| value);
    if all("method").nth(1).is_some() || all("params").nth(1).is_some() {
        return Err("a server request repeats a member".to_owned());
    }
    let method = all("method").next().and_then(RawJson::to_text).ok_or("a server request has no `method`")?;
    let params = all("params").next().cloned().unwrap_or_else(RawJson::empty_object);
    supported.check_params(&MethodName::from(&*method), &params).map_err(|error| error.message)
}
