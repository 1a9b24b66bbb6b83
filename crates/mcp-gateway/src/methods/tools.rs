//! `tools/call`: arguments and results are forwarded unchanged.

use std::sync::Arc;

use mcp_host::{RequestError, ToolCall};
use mcp_model::{ErrorKind, ProtocolVersion, RawJson, RpcError, ServerId, code};
use mcp_registry::ToolLookup;
use serde_json::json;

use super::RequestContext;
use crate::access::scope::{LeasedServers, NameStyle, Scope};
use crate::lists::definitions::Target;
use crate::lists::listing::Listing;
use crate::protocol::meta::{DIALOG_HEADER, DIALOG_KEY};

impl RequestContext<'_> {
    /// Calls a tool.
    pub(super) async fn call_tool(&self) -> Result<RawJson, RpcError> {
        let (requested_name, arguments) = self.name_and_arguments()?;
        let (name, server) = self.tool(&requested_name)?;
        let call = ToolCall {
            dialog: self.dialog(),
            progress: self.progress_handler(),
            trace: self.request.meta.trace.clone(),
            caller: Some(self.upstream_caller()),
            meta: self.request.meta.raw.clone(),
            extra_params: self.extra_params(server.as_ref(), &requested_name, &["name", "arguments"])?,
            input: self.input_mode(),
            server,
            ..ToolCall::new(name, arguments)
        };
        match self.gateway.host.call_raw(call).await {
            Ok(result) => self.check_result(result, &requested_name),
            Err(request_error) => self.tool_error(request_error),
        }
    }

    /// The tool's exposed name, and its server if that is known.
    fn tool(&self, name: &str) -> Result<(String, Option<ServerId>), RpcError> {
        let listing = self.listing();
        if let Some(Target { server, name }) = listing.tool(name) {
            return Ok((name.clone(), Some(server.clone())));
        }
        // The host has the best error message, and resolves an unqualified name that is unique.
        if self.caller.scope.is_all() {
            let published = self.gateway.published();
            let server = match published.catalog.find(name) {
                ToolLookup::Found(tool) => Some(tool.server.clone()),
                ToolLookup::Missing { .. } | ToolLookup::Ambiguous(_) => None,
            };
            return Ok((name.to_owned(), server));
        }
        // An unlisted tool may belong to a server that is not running. The host knows this and reports it.
        if self.sees_all_shared_tools() && self.is_missing(name) {
            return Ok((name.to_owned(), None));
        }
        Err(self.hidden_tool_error(&listing, name))
    }

    /// Whether only leased servers are hidden from the client.
    fn sees_all_shared_tools(&self) -> bool {
        self.caller.scope.is_whole() && self.caller.scope.names == NameStyle::Exposed
    }

    /// Whether the catalog has no such tool.
    fn is_missing(&self, name: &str) -> bool {
        matches!(self.gateway.published().catalog.find(name), ToolLookup::Missing { .. })
    }

    /// The error for a tool that the client does not see. It does not reveal hidden tools.
    fn hidden_tool_error(&self, listing: &Listing, name: &str) -> RpcError {
        if self.caller.scope.leased == LeasedServers::Hidden {
            let offered = Scope { leased: LeasedServers::Offered, ..(*self.caller.scope).clone() };
            if self.gateway.listing(&Arc::new(offered)).tool(name).is_some() {
                let message = format!(
                    "MCPToolNotFoundError: Tool '{name}' is one of a server that each dialog has for itself: name yours \
                     with the header {DIALOG_HEADER}, or with `{DIALOG_KEY}` in `_meta`"
                );
                return RpcError::new(code::INVALID_PARAMS, message);
            }
        }
        let published = self.gateway.published();
        let near = match published.catalog.find(name) {
            ToolLookup::Missing { nearest: Some(nearest) } => Some(nearest.name.as_str()),
            ToolLookup::Found(tool) => Some(tool.name.as_str()),
            ToolLookup::Missing { nearest: None } | ToolLookup::Ambiguous(_) => None,
        };
        let short: String = name.chars().filter(|it| !it.is_control()).take(128).collect();
        let hint = match near.filter(|it| *it != name && listing.tool(it).is_some()) {
            Some(near) => format!("; did you mean '{near}'?"),
            None => String::new(),
        };
        RpcError::new(code::INVALID_PARAMS, format!("MCPToolNotFoundError: Tool '{short}' not found{hint}"))
    }

    /// A failed call. Invalid arguments become a result with an error, so that a model can correct them, if the
    /// version has that.
    fn tool_error(&self, request_error: RequestError) -> Result<RawJson, RpcError> {
        let is_correctable = request_error.error.kind == ErrorKind::Validation
            && request_error.rpc.is_none()
            && self.caller.version >= ProtocolVersion::V2025_11_25;
        if !is_correctable {
            return Err(self.call_error(request_error));
        }
        let content = json!([{"type": "text", "text": request_error.error.to_string()}]);
        Ok(RawJson::from_value(&json!({"content": content, "isError": true})).expect("its keys are strings"))
    }
}
