//! `tools/call`: arguments and results are forwarded unchanged.

use mcp_host_model::{APPS_EXTENSION, Era, ErrorKind, ProtocolVersion, RawJson, RpcError, ServerId, code};
use mcp_host_registry::{ExposedTool, ToolLookup};
use mcp_host_runtime::{RequestError, TaskHandling, ToolCall};
use serde_json::json;

use super::{RequestContext, printable};
use crate::lists::definitions::{ListKind, Target};
use crate::lists::listing::Listing;

impl RequestContext<'_> {
    /// Calls a tool.
    pub(super) async fn call_tool(&self) -> Result<RawJson, RpcError> {
        let (requested_name, arguments) = self.name_and_arguments()?;
        let (name, server) = self.tool(&requested_name)?;
        let tasks = self.task_handling(server.as_ref());
        let handled: &[&str] = if tasks == TaskHandling::Follow {
            // The host requests the task in the form of the server's era.
            &["name", "arguments", "task"]
        } else {
            &["name", "arguments"]
        };
        let mut call = ToolCall::new(name, arguments);
        call.options.dialog = self.caller.dialog_id();
        call.options.context.progress = self.progress_handler();
        call.options.context.trace = self.request.meta.trace.clone();
        call.options.context.caller = Some(self.upstream_caller());
        call.options.context.meta = self.request.meta.raw.clone();
        call.options.context.extra_params = self.extra_params(server.as_ref(), &requested_name, handled)?;
        call.options.context.input = self.input_handling();
        call.tasks = tasks;
        call.options.server = server;
        match self.gateway.host.call_raw(call).await {
            // A legacy result does not say that it is a task.
            Ok(result) if tasks == TaskHandling::Return && self.caller.era() == Era::Legacy => {
                let server = result.server.clone();
                let result = self.check_result(result, &requested_name)?;
                self.check_task(&server, result)
            }
            Ok(result) => self.check_result(result, &requested_name),
            Err(request_error) => self.tool_error(request_error),
        }
    }

    /// The tool's exposed name, and its server if that is known.
    fn tool(&self, name: &str) -> Result<(String, Option<ServerId>), RpcError> {
        let listing = self.listing();
        if let Some(target) = listing.find(ListKind::Tools, name) {
            self.admit_tool(target)?;
            let Target { server, name } = target;
            return Ok((name.clone(), Some(server.clone())));
        }
        let snapshot = self.gateway.snapshot();
        let found = snapshot.catalog.find(name);
        // The host has the best error message, and resolves an unqualified name that is unique.
        if self.caller.scope.is_all() && self.gateway.host.tool_budget().is_unlimited() {
            let server = match found {
                ToolLookup::Found(tool) => {
                    self.check_audience(tool)?;
                    let server = tool.server.clone();
                    self.admit_tool(&Target { server: server.clone(), name: tool.name.to_string() })?;
                    Some(server)
                }
                ToolLookup::Missing { .. } | ToolLookup::Ambiguous(_) => None,
            };
            return Ok((name.to_owned(), server));
        }
        if let Some(target) = only_visible(&listing, &found) {
            self.admit_tool(target)?;
            return Ok((target.name.clone(), Some(target.server.clone())));
        }
        Err(self.hidden_tool_error(&listing, &found, name))
    }

    /// The error for a tool that the client does not see. It does not reveal hidden tools.
    fn hidden_tool_error(&self, listing: &Listing, found: &ToolLookup<'_>, name: &str) -> RpcError {
        if let ToolLookup::Found(tool) = found
            && self.caller.scope.shows_tool(tool)
        {
            if let Err(error) = self.check_audience(tool) {
                return error;
            }
            if !self.gateway.host.tool_budget().is_unlimited() {
                let name = printable(name, 128);
                let message = format!(
                    "MCPToolNotFoundError: Tool '{name}' is left out, because there are too many tools"
                );
                return RpcError::new(code::INVALID_PARAMS, message);
            }
        }
        let similar = match found {
            ToolLookup::Missing { nearest: Some(nearest) } => Some(nearest.name.as_str()),
            ToolLookup::Found(tool) => Some(tool.name.as_str()),
            ToolLookup::Missing { nearest: None } | ToolLookup::Ambiguous(_) => None,
        };
        let is_visible = |similar: &&str| listing.find(ListKind::Tools, similar).is_some();
        let hint = match similar.filter(|similar| *similar != name).filter(is_visible) {
            Some(similar) => format!("; did you mean '{similar}'?"),
            None => String::new(),
        };
        let name = printable(name, 128);
        RpcError::new(code::INVALID_PARAMS, format!("MCPToolNotFoundError: Tool '{name}' not found{hint}"))
    }

    /// Refuses a tool that is for apps only if the client declares none.
    fn check_audience(&self, tool: &ExposedTool) -> Result<(), RpcError> {
        if self.caller.features.audience().includes(tool) {
            return Ok(());
        }
        let message = format!(
            "MCPToolNotFoundError: Tool '{}' is for apps only, and the client does not declare `{APPS_EXTENSION}`",
            tool.name
        );
        Err(RpcError::new(code::INVALID_PARAMS, message))
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

/// The visible tool of those with a server's own name, if it is the only one. An app calls its tools by these names.
fn only_visible<'a>(listing: &'a Listing, found: &ToolLookup<'_>) -> Option<&'a Target> {
    let tools = match found {
        ToolLookup::Found(tool) => std::slice::from_ref(tool),
        ToolLookup::Ambiguous(tools) => tools,
        ToolLookup::Missing { .. } => &[],
    };
    let mut visible = tools.iter().filter_map(|tool| listing.find(ListKind::Tools, tool.name.as_str()));
    visible.next().filter(|_| visible.next().is_none())
}
