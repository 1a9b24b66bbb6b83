//! The host's own tools, with which a model releases leases, and restarts or disables servers (DM-077).

use std::sync::Arc;

use mcp_host_model::{ErrorKind, Exposure, NamePolicy, RawJson, ServerId, Tool, read_tools};
use mcp_host_registry::{CatalogServer, ServerLists};
use serde::Deserialize;

use crate::calls::supervisor_handle::{SupervisorHandle, not_loaded_error};
use crate::calls::tool_call::ToolCall;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::dialog::ReminderText;

/// Whether the host adds its own tools to the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AdminTools {
    /// The host adds no tools.
    #[default]
    Disabled,
    /// The host adds the toolset `mcp_admin` with `mcp_release`, `mcp_restart` and `mcp_disable` before all
    /// servers, so no server can take these names.
    Enabled,
}

/// Returns the default text of reminders. It names a tool only if the host has that tool.
pub(crate) fn default_reminder(admin_tools: AdminTools) -> ReminderText {
    Arc::new(move |server, _| {
        let statement = format!("This dialog has its own instance of the MCP server '{server}'.");
        match admin_tools {
            AdminTools::Enabled => format!(
                "{statement} Release it with mcp_release({{\"serverId\":\"{server}\"}}) when its tools are no \
                 longer needed."
            ),
            AdminTools::Disabled => {
                format!("{statement} It runs until the dialog ends or no longer uses it.")
            }
        }
    })
}

/// The name of the toolset.
pub(crate) const TOOLSET_NAME: &str = "mcp_admin";

/// The names and descriptions of the tools. Each has one argument, the server.
const TOOLS: [(&str, &str); 3] = [
    (
        "mcp_release",
        "Releases the instance of an MCP server that this dialog has leased. Waits for running calls.",
    ),
    ("mcp_restart", "Restarts an MCP server, also one that is disabled, and waits until it accepts calls."),
    ("mcp_disable", "Disables an MCP server for all dialogs, until it is restarted or its entry is changed."),
];

/// A parsed call of one of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AdminCommand {
    Release(ServerId),
    Restart(ServerId),
    Disable(ServerId),
}

/// Returns the toolset as a server of the catalog.
pub(crate) fn toolset() -> CatalogServer {
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "serverId": { "type": "string", "description": "The server's name in the configuration." } },
        "required": ["serverId"],
        "additionalProperties": false,
    });
    let tools = TOOLS.map(|(name, description)| {
        serde_json::json!({ "name": name, "description": description, "inputSchema": schema })
    });
    let page = RawJson::from_value(&serde_json::json!({ "tools": tools })).expect("a list of tools is JSON");
    let tools = read_tools(&page).expect("these tools are well formed").into_shared();
    CatalogServer::new(toolset_id(), Exposure::all(NamePolicy::Pass), Arc::new(ServerLists::of_tools(tools)))
}

/// Returns the name of the toolset as a server id.
pub(crate) fn toolset_id() -> ServerId {
    ServerId::parse(TOOLSET_NAME).expect("the name of the toolset is a server id")
}

/// Parses a call of one of the tools. The arguments were validated against the schema.
fn parse_command(tool: &str, arguments: &RawJson) -> Result<AdminCommand, HostError> {
    #[derive(Deserialize)]
    struct ArgumentsJson {
        #[serde(rename = "serverId")]
        server_id: String,
    }
    let invalid = || {
        let message = format!("Invalid arguments for tool '{tool}': 'serverId' is the name of a server");
        HostError::new(ErrorKind::Validation, message)
    };
    let ArgumentsJson { server_id } = arguments.read().map_err(|_| invalid())?;
    // No server has an invalid id.
    let server = ServerId::parse(&server_id).map_err(|_| not_loaded_error(&server_id))?;
    match tool {
        "mcp_release" => Ok(AdminCommand::Release(server)),
        "mcp_restart" => Ok(AdminCommand::Restart(server)),
        "mcp_disable" => Ok(AdminCommand::Disable(server)),
        other => Err(HostError::new(ErrorKind::ToolNotFound, format!("Tool '{other}' not found"))),
    }
}

/// Runs one of the host's own tools (DM-077). Returns the text of its result.
pub(super) async fn run_admin_command(
    supervisor: &SupervisorHandle,
    call: &ToolCall,
    tool: &Tool,
) -> Result<String, HostError> {
    let dialog = call.options.dialog.clone().unwrap_or_else(DialogId::anonymous);
    match parse_command(&tool.name, &call.arguments)? {
        AdminCommand::Release(server) => Ok(match supervisor.release(&dialog, &server).await? {
            true => format!("ok: released {server} for dialog {dialog}"),
            false => format!("ok: no active lease for {server} (or server is truely-stateless)"),
        }),
        AdminCommand::Restart(server) => {
            supervisor.restart(&server).await?;
            Ok(format!("ok: restarted {server}"))
        }
        AdminCommand::Disable(server) => {
            supervisor.disable(&server).await?;
            Ok(format!("ok: disabled {server}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, arguments: &str, want: &str) {
        let arguments = RawJson::parse(arguments.to_owned().into()).unwrap();
        let got = match parse_command(tool, &arguments) {
            Ok(AdminCommand::Release(server)) => format!("release {server}"),
            Ok(AdminCommand::Restart(server)) => format!("restart {server}"),
            Ok(AdminCommand::Disable(server)) => format!("disable {server}"),
            Err(failure) => failure.to_string(),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn dm_077_commands_name_a_server() {
        check("mcp_release", r#"{"serverId":"a"}"#, "release a");
        check("mcp_restart", r#"{"serverId":"a b"}"#, "restart a b");
        check("mcp_disable", r#"{"serverId":"a"}"#, "disable a");
        check("mcp_release", r#"{"serverId":"\u0007"}"#, "MCPToolError: MCP server '' is not loaded");
        check(
            "mcp_release",
            "{}",
            "ValidationError: Invalid arguments for tool 'mcp_release': 'serverId' is the name of a server",
        );
    }

    #[test]
    fn all_listed_tools_are_parsed() {
        let names: Vec<String> = toolset().lists.tools.iter().map(|it| it.name.to_string()).collect();
        assert_eq!(names, ["mcp_release", "mcp_restart", "mcp_disable"]);
    }
}
