//! `tools/call`: arguments and results are forwarded unchanged.

use mcp_host_model::{
    APPS_EXTENSION, Era, ErrorKind, ProtocolVersion, RawJson, ResultInfo, ResultKind, RpcError, ServerId,
    code,
};
use mcp_host_registry::{ExposedTool, ToolLookup};
use mcp_host_runtime::{CalledTool, RequestFailure, TaskHandling, ToolCall, ToolRef};
use serde_json::json;

use crate::lists::definitions::{CatalogList, CatalogTarget};
use crate::lists::listing::Listing;
use crate::lists::resolution::Resolution;
use crate::methods::context::{MAX_NAME_CHARS, RequestContext, to_printable};
use crate::protocol::result_body::CheckedResult;

impl RequestContext<'_> {
    /// Calls a tool.
    pub(super) async fn call_tool(&self) -> Result<CheckedResult, RpcError> {
        let (requested_name, arguments) = self.name_and_arguments()?;
        let tool = self.find_tool(&requested_name)?;
        let mut call = ToolCall::of(tool, arguments);
        let server = match &call.tool {
            CalledTool::Found(tool) => Some(&tool.tool().server),
            CalledTool::Named(_) => None,
        };
        let tasks = self.task_handling(server);
        let handled: &[&str] = if tasks == TaskHandling::Follow {
            // The host requests the task in the form of the server's era.
            &["name", "arguments", "task"]
        } else {
            &["name", "arguments"]
        };
        call.options.context = self.call_context(server, &requested_name, handled)?;
        call.options.dialog = self.client.dialog_id();
        call.options.user = self.client.principal.user();
        call.tasks = tasks;
        let result = self.gateway.host.call_raw(call).await;
        self.note_ruling(match &result {
            Ok(result) => result.ruling.as_ref(),
            Err(failure) => failure.ruling.as_deref(),
        });
        match result {
            // A legacy result does not say that it is a task.
            Ok(result) if tasks == TaskHandling::Return && self.client.era() == Era::Legacy => {
                let server = result.server.clone();
                let CheckedResult { object, info } = self.check_result(result, &requested_name)?;
                Ok(CheckedResult { object: self.check_task(&server, object)?, info })
            }
            Ok(result) => self.check_result(result, &requested_name),
            Err(failure) => self.tool_error(failure),
        }
    }

    /// Finds the called tool, and counts the call for rate limits. Returns the name alone if there is no such tool and
    /// the host's error message is the best one.
    fn find_tool(&self, name: &str) -> Result<CalledTool, RpcError> {
        let resolution = self.resolution();
        if let Some((tool, target)) = resolution.called_tool() {
            self.admit_tool(target)?;
            return Ok(CalledTool::Found(tool.clone()));
        }
        let Resolution { listing, snapshot, .. } = resolution;
        // The host has the best error message, and resolves an unqualified name that is unique.
        let tool = if self.client.scope.is_whole_catalog() && self.gateway.host.tool_budget().is_unlimited() {
            match snapshot.catalog.find_exactly(name) {
                ToolLookup::Found(tool) => {
                    self.check_audience(tool)?;
                    ToolRef::of(snapshot, tool)
                }
                ToolLookup::Missing { .. } | ToolLookup::Ambiguous(_) => None,
            }
        } else {
            let found = snapshot.catalog.find(name);
            match find_only_visible(listing, &found) {
                Some(at) => ToolRef::new(snapshot, at),
                None => return Err(self.hidden_tool_error(listing, &found, name)),
            }
        };
        let Some(found) = tool else { return Ok(CalledTool::Named(name.to_owned())) };
        let tool = found.tool();
        self.admit_tool(&CatalogTarget { server: tool.server.clone(), name: tool.name.to_string() })?;
        Ok(CalledTool::Found(found))
    }

    /// The error for a tool that is not listed for the client. It does not reveal hidden tools.
    fn hidden_tool_error(&self, listing: &Listing, found: &ToolLookup<'_>, name: &str) -> RpcError {
        if let ToolLookup::Found(tool) = found
            && self.client.scope.shows_tool(tool)
        {
            if let Err(error) = self.check_audience(tool) {
                return error;
            }
            if !self.gateway.host.tool_budget().is_unlimited() {
                let name = to_printable(name, MAX_NAME_CHARS);
                let message = format!(
                    "MCPToolNotFoundError: Tool '{name}' is left out, because there are too many tools"
                );
                return RpcError::new(code::INVALID_PARAMS, message);
            }
        }
        if let ToolLookup::Missing { .. } = found {
            let scope = &self.client.scope;
            let may_own = |server: &ServerId| scope.may_show(server, |view| view.tools.contains(name));
            if let Some(error) = self.gateway.host.unavailable_tool(name, may_own) {
                return self.call_error(error.into());
            }
        }
        let similar = match found {
            ToolLookup::Missing { nearest: Some(nearest) } => Some(nearest.name.as_str()),
            ToolLookup::Found(tool) => Some(tool.name.as_str()),
            ToolLookup::Missing { nearest: None } | ToolLookup::Ambiguous(_) => None,
        };
        let is_visible = |similar: &&str| listing.find(CatalogList::Tools, similar).is_some();
        let hint = match similar.filter(|similar| *similar != name).filter(is_visible) {
            Some(similar) => format!("; did you mean '{similar}'?"),
            None => String::new(),
        };
        let name = to_printable(name, MAX_NAME_CHARS);
        RpcError::new(code::INVALID_PARAMS, format!("MCPToolNotFoundError: Tool '{name}' not found{hint}"))
    }

    /// Refuses a tool that is for apps only, if the client does not declare apps.
    fn check_audience(&self, tool: &ExposedTool) -> Result<(), RpcError> {
        if self.client.features.audience.includes(tool) {
            return Ok(());
        }
        let message = format!(
            "MCPToolNotFoundError: Tool '{}' is for apps only, and the client does not declare `{APPS_EXTENSION}`",
            tool.name
        );
        Err(RpcError::new(code::INVALID_PARAMS, message))
    }

    /// Converts a failed call. If the version allows it, invalid arguments become a result with an error, so that a
    /// model can correct them.
    fn tool_error(&self, failure: RequestFailure) -> Result<CheckedResult, RpcError> {
        let is_correctable = failure.error.kind == ErrorKind::Validation
            && failure.rpc.is_none()
            && self.client.version >= ProtocolVersion::V2025_11_25;
        if !is_correctable {
            return Err(self.call_error(failure));
        }
        let content = json!([{"type": "text", "text": failure.error.to_string()}]);
        let result = json!({"content": content, "isError": true});
        let object = RawJson::from_value(&result).expect("its keys are strings");
        Ok(CheckedResult { object, info: ResultInfo::of_kind(ResultKind::ToolError) })
    }
}

/// Returns the position of the visible one of the tools that a lookup found, if it is the only one. An app calls its
/// tools by the names that their server gave them, which may be ambiguous.
fn find_only_visible(listing: &Listing, found: &ToolLookup<'_>) -> Option<usize> {
    let tools = match found {
        ToolLookup::Found(tool) => std::slice::from_ref(tool),
        ToolLookup::Ambiguous(tools) => tools,
        ToolLookup::Missing { .. } => &[],
    };
    let mut visible =
        tools.iter().filter_map(|tool| listing.position(CatalogList::Tools, tool.name.as_str()));
    visible.next().filter(|_| visible.next().is_none())
}
