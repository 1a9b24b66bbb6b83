//! The tools that tell what a host gave this server besides its arguments: a variable of the environment, a header.
//!
//! A variable has to say in its name that it is meant for the demo server: what else stands in the environment of this
//! process, secrets among it, is nobody's. A header came from the caller itself.

use axum::http::request::Parts;
use rmcp::model::CallToolResponse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Fault, text};

/// How the name of a variable begins that may be told.
const OURS: &str = "DEMO_";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Env {
    /// The name of the variable; it begins with `DEMO_`
    name: String,
}

pub(super) fn env(arguments: Env) -> Result<CallToolResponse, Fault> {
    if !arguments.name.starts_with(OURS) || arguments.name.contains(['=', '\0']) {
        return Err(Fault::tool(format!("only variables that begin with `{OURS}` are told")));
    }
    match std::env::var(&arguments.name) {
        Ok(value) => Ok(text(value)),
        Err(_) => Err(Fault::tool("there is no such variable, or its value is no text")),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The name of the header
    name: String,
}

pub(super) fn header(call: &Call<'_>, arguments: Header) -> Result<CallToolResponse, Fault> {
    let Some(request) = call.context.extensions.get::<Parts>() else {
        return Err(Fault::tool("this call came without headers"));
    };
    let value = request.headers.get(&arguments.name).and_then(|it| it.to_str().ok());
    value.map(text).ok_or_else(|| Fault::tool("there is no such header, or its value is no text"))
}
