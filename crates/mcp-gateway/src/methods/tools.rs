//! `tools/call`: the arguments go to the server as they came, and its result comes back as it is.

use std::sync::Arc;

use mcp_host::{RequestError, ToolCall};
use mcp_model::{ErrorKind, ProtocolVersion, RawJson, RpcError, ServerId, code};
use mcp_registry::ToolLookup;
use serde_json::json;

use super::Asked;
use crate::access::scope::{Leased, Names, Scope};
use crate::http::DIALOG_HEADER;
use crate::lists::definitions::Target;
use crate::lists::listing::Listing;
use crate::protocol::meta::DIALOG_KEY;

impl Asked<'_> {
    /// Calls a tool.
    pub(super) async fn call_tool(&self) -> Result<RawJson, RpcError> {
        let (asked, arguments) = self.named()?;
        let (name, server) = self.tool(&asked)?;
        let call = ToolCall {
            dialog: self.dialog(),
            progress: self.progress(),
            trace: self.request.meta.trace.clone(),
            caller: Some(self.upstream_caller()),
            meta: self.request.meta.raw.clone(),
            extra_params: self.more(server.as_ref(), &asked, &["name", "arguments"])?,
            input: self.input(),
            server,
            ..ToolCall::new(name, arguments)
        };
        match self.gateway.host.call_raw(call).await {
            Ok(received) => self.received(received, &asked),
            Err(unanswered) => self.not_called(unanswered),
        }
    }

    /// The tool that is meant, by its exposed name, and its server where that is certain.
    fn tool(&self, name: &str) -> Result<(String, Option<ServerId>), RpcError> {
        let listing = self.listing();
        if let Some(Target { server, name }) = listing.tool(name) {
            return Ok((name.clone(), Some(server.clone())));
        }
        // The host says best why there is none, and takes a bare name that only one server has.
        match self.caller.scope.is_all() {
            true => {
                let published = self.gateway.published();
                let server = match published.catalog.find(name) {
                    ToolLookup::Found(tool) => Some(tool.server.clone()),
                    ToolLookup::Missing { .. } | ToolLookup::Ambiguous(_) => None,
                };
                Ok((name.to_owned(), server))
            }
            // What nobody sees now may be a tool of a server that is down, and the host knows whose.
            false if self.sees_all_that_is_shared() && self.is_missing(name) => Ok((name.to_owned(), None)),
            false => Err(self.hidden(&listing, name)),
        }
    }

    /// Is nothing kept from the client but servers of which nobody has an instance?
    fn sees_all_that_is_shared(&self) -> bool {
        self.caller.scope.is_whole() && self.caller.scope.names == Names::Exposed
    }

    /// Is there no tool of this name for anybody?
    fn is_missing(&self, name: &str) -> bool {
        matches!(self.gateway.published().catalog.find(name), ToolLookup::Missing { .. })
    }

    /// There is no such tool among those that the client sees. Of others nothing is said.
    fn hidden(&self, listing: &Listing, name: &str) -> RpcError {
        if self.caller.scope.leased == Leased::Hidden {
            let offered = Scope { leased: Leased::Offered, ..(*self.caller.scope).clone() };
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

    /// A call without a result. What a model can mend by itself it is told as a result, where the version has it so.
    fn not_called(&self, unanswered: RequestError) -> Result<RawJson, RpcError> {
        let mends_itself = unanswered.error.kind == ErrorKind::Validation
            && unanswered.rpc.is_none()
            && self.caller.version >= ProtocolVersion::V2025_11_25;
        if !mends_itself {
            return Err(self.refused(unanswered));
        }
        let content = json!([{"type": "text", "text": unanswered.error.to_string()}]);
        Ok(RawJson::from_value(&json!({"content": content, "isError": true})).expect("its keys are strings"))
    }
}
