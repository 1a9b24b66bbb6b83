//! Checks a server's result: it must be an object, and may request input only if its era has that and the client
//! supports it.
//!
//! Only the members that describe the kind of result are changed; everything else is forwarded as bytes.

use std::sync::LazyLock;

use mcp_host::{RawResult, RequestError};
use mcp_model::{Era, RawJson, RpcError, code};
use memchr::memmem::Finder;

use super::RequestContext;
use crate::protocol::request_state::StateBinding;
use crate::protocol::{json_splice, response, upstream_error};
use crate::session::elicitation::SupportedRequests;
use crate::session::pending_input::MAX_INPUT_REQUESTS;

/// The member with the kind of result.
const KIND: &str = "resultType";

impl RequestContext<'_> {
    /// The result for the client. `name` is the name in the request.
    pub(super) fn check_result(&self, raw: RawResult, name: &str) -> Result<RawJson, RpcError> {
        let RawResult { result, server, request_id: _ } = raw;
        let failed = |what: &str| {
            RpcError::new(code::INTERNAL_ERROR, format!("MCPProtocolError: server '{server}' {what}"))
        };
        if !result.is_object() {
            return Err(failed("returned a result that is no object"));
        }
        // Fast path: most results do not contain the member's name.
        let text = result.as_bytes();
        static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(KIND));
        if FINDER.find(text).is_none() && memchr::memchr(b'\\', text).is_none() {
            return Ok(result);
        }
        let Some(members) = json_splice::ordered_members(&result) else {
            return Err(failed("returned no JSON object"));
        };
        let all = |key: &'static str| members.iter().filter(move |(name, _)| name == key).map(|(_, it)| it);
        if all(KIND).next().is_none() {
            return Ok(result);
        }
        // In the legacy era the member has no meaning: every result is complete.
        if self.gateway.era(&server) == Some(Era::Legacy) {
            let complete = response::text("complete");
            let other = |key: &str, value: &str| (key == KIND && value != complete).then(|| complete.clone());
            return Ok(json_splice::replace_values(&result, other));
        }
        if [KIND, "inputRequests", "requestState"].iter().any(|it| all(it).nth(1).is_some()) {
            return Err(failed("repeats a member that describes its result"));
        }
        if all(KIND).next().and_then(RawJson::to_text).as_deref() != Some("input_required") {
            return Ok(result);
        }
        if self.caller.era() == Era::Legacy || !self.may_need_input() {
            return Err(failed("requests input where that is not allowed"));
        }
        let requests = match all("inputRequests").next() {
            Some(it) => {
                json_splice::ordered_members(it).ok_or_else(|| failed("requests input without an object"))?
            }
            None => Vec::new(),
        };
        if requests.len() > MAX_INPUT_REQUESTS {
            return Err(failed(&format!("requests more than {MAX_INPUT_REQUESTS} inputs at once")));
        }
        let supported = self.caller.features.supported_requests();
        for (_, request) in &requests {
            check_input_request(supported, request).map_err(|it| failed(&format!("requests input: {it}")))?;
        }
        let Some(state) = all("requestState").next() else {
            return if requests.is_empty() {
                Err(failed("requests input without naming any"))
            } else {
                Ok(result)
            };
        };
        let state = state.to_text().ok_or_else(|| failed("returned a `requestState` that is no string"))?;
        let sealed = self.gateway.sealer.seal(&self.state_binding(&server, name), &state);
        let sealed = response::text(&sealed);
        Ok(json_splice::replace_values(&result, |key, _| (key == "requestState").then(|| sealed.clone())))
    }

    /// The error for a call without a result.
    pub(super) fn call_error(&self, request_error: RequestError) -> RpcError {
        upstream_error::server_error(request_error, &self.caller.features.capabilities)
    }

    /// The values that a `requestState` is bound to.
    pub(super) fn state_binding<'a>(
        &'a self,
        server: &'a mcp_model::ServerId,
        name: &'a str,
    ) -> StateBinding<'a> {
        StateBinding { principal: &self.caller.principal, server, method: &self.request.method, name }
    }

    /// Whether a server may request input before it returns a result.
    pub(super) fn may_need_input(&self) -> bool {
        matches!(&*self.request.method, "tools/call" | "prompts/get" | "resources/read")
    }
}

/// Checks that the client supports this request.
fn check_input_request(supported: SupportedRequests, request: &RawJson) -> Result<(), String> {
    let members = json_splice::ordered_members(request).ok_or("a server request must be a JSON object")?;
    let all = |key: &'static str| members.iter().filter(move |(name, _)| name == key).map(|(_, it)| it);
    if all("method").nth(1).is_some() || all("params").nth(1).is_some() {
        return Err("a server request repeats a member".to_owned());
    }
    let method = all("method").next().and_then(RawJson::to_text).ok_or("a server request has no `method`")?;
    let params = all("params").next().cloned().unwrap_or_else(RawJson::empty_object);
    supported.check_params(&method, &params).map_err(|it| it.message)
}
