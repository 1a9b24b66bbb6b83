//! The tools `env` and `header`: they return an environment variable of this server, or a header of the request.
//!
//! Only variables whose names begin with `DEMO_` are returned, because others may be secrets. All headers are
//! returned, because the client sent them itself.

use axum::http::request::Parts;
use rmcp::model::CallToolResponse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::call::{ToolCall, ToolError, text_result};

/// The prefix of variables that may be returned.
const PREFIX: &str = "DEMO_";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Env {
    /// The name of the variable; it begins with `DEMO_`
    name: String,
}

pub(super) fn env(arguments: Env) -> Result<CallToolResponse, ToolError> {
    if !arguments.name.starts_with(PREFIX) || arguments.name.contains(['=', '\0']) {
        return Err(ToolError::tool(format!("only variables that begin with `{PREFIX}` can be read")));
    }
    match std::env::var(&arguments.name) {
        Ok(value) => Ok(text_result(value)),
        Err(_) => Err(ToolError::tool("the variable is not set or not valid UTF-8")),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The name of the header
    name: String,
}

pub(super) fn header(call: &ToolCall<'_>, arguments: Header) -> Result<CallToolResponse, ToolError> {
    let Some(request) = call.context.extensions.get::<Parts>() else {
        return Err(ToolError::tool("this call has no headers"));
    };
    let value = request.headers.get(&arguments.name).and_then(|value| value.to_str().ok());
    value.map(text_result).ok_or_else(|| ToolError::tool("the header is missing or not text"))
}
