//! The host's own tools: with them a model gives back what its dialog has leased, and mends servers (DM-077).

use std::sync::Arc;

use mcp_model::{ErrorKind, Exposure, NamePolicy, RawJson, ServerId, read_tools};
use mcp_registry::{ServerEntry, ServerLists};
use serde::Deserialize;

use crate::failure::HostError;

/// Whether a host shows tools of its own beside those of its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdminTools {
    /// It does not.
    #[default]
    Disabled,
    /// It shows the toolset `mcp_admin` with `mcp_release`, `mcp_restart` and `mcp_disable`, before all servers: none
    /// takes their names.
    Enabled,
}

/// The toolset's name.
pub(crate) const TOOLSET: &str = "mcp_admin";

/// What is said of the tools. One argument each, the server.
const TOOLS: [(&str, &str); 3] = [
    (
        "mcp_release",
        "Gives back the instance of an MCP server that this dialog has leased. Waits for calls that run.",
    ),
    (
        "mcp_restart",
        "Starts an MCP server anew, also one that was switched off, and waits until it can be used.",
    ),
    (
        "mcp_disable",
        "Switches an MCP server off for everybody, until it is restarted or its entry is changed.",
    ),
];

/// What a model orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    Release(ServerId),
    Restart(ServerId),
    Disable(ServerId),
}

/// The tools as a catalog takes them.
pub(crate) fn entry() -> ServerEntry {
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
    ServerEntry {
        id: own_id(),
        exposure: Exposure::all(NamePolicy::Pass),
        lists: Arc::new(ServerLists { tools, ..ServerLists::default() }),
    }
}

/// The toolset's name as that of a server.
pub(crate) fn own_id() -> ServerId {
    ServerId::parse(TOOLSET).expect("it is a plain word")
}

/// Reads an order from a call whose arguments fit the tool's schema.
pub(crate) fn read(tool: &str, arguments: &RawJson) -> Result<Order, HostError> {
    #[derive(Deserialize)]
    struct Arguments {
        #[serde(rename = "serverId")]
        server_id: String,
    }
    let invalid = || {
        let message = format!("Invalid arguments for tool '{tool}': 'serverId' is the name of a server");
        HostError::new(ErrorKind::Validation, message)
    };
    let Arguments { server_id } = arguments.read().map_err(|_| invalid())?;
    // What is no id is no server's either.
    let server = ServerId::parse(&server_id).map_err(|_| not_loaded(&server_id))?;
    match tool {
        "mcp_release" => Ok(Order::Release(server)),
        "mcp_restart" => Ok(Order::Restart(server)),
        "mcp_disable" => Ok(Order::Disable(server)),
        other => Err(HostError::new(ErrorKind::ToolNotFound, format!("Tool '{other}' not found"))),
    }
}

/// There is no such server.
pub(crate) fn not_loaded(server: &str) -> HostError {
    let server: String = server.chars().filter(|it| !it.is_control()).take(ServerId::MAX_LEN).collect();
    HostError::new(ErrorKind::Tool, format!("MCP server '{server}' is not loaded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, arguments: &str, want: &str) {
        let arguments = RawJson::parse(arguments.to_owned().into()).unwrap();
        let got = match read(tool, &arguments) {
            Ok(Order::Release(server)) => format!("release {server}"),
            Ok(Order::Restart(server)) => format!("restart {server}"),
            Ok(Order::Disable(server)) => format!("disable {server}"),
            Err(failure) => failure.to_string(),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn dm_077_orders_name_a_server() {
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
    fn the_tools_are_those_that_are_read() {
        let names: Vec<String> = entry().lists.tools.iter().map(|it| it.name.to_string()).collect();
        assert_eq!(names, ["mcp_release", "mcp_restart", "mcp_disable"]);
    }
}
