//! Execution of the host's own tools.

use mcp_host_model::Tool;

use crate::calls::admin::{AdminCommand, parse_command};
use crate::calls::supervisor_handle::SupervisorHandle;
use crate::calls::tool_call::ToolCall;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;

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
