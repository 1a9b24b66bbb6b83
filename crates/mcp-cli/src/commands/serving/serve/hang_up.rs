//! SIGHUP of `serve`: reads the configuration again, and opens the audit log again.
//!
//! The system sends the same signal when a terminal is closed. It ends the command if that was its terminal.

use std::io::{IsTerminal, stderr};

use mcp_host_gateway::AuditLog;
use mcp_host_runtime::ReloadTrigger;

use crate::output::log::OPERATOR;
use crate::runtime::system::HangUp;

/// Handles each signal. Returns when the terminal of the command was closed.
pub(super) async fn handle_hang_ups(signal: Option<HangUp>, reload: ReloadTrigger, audit: Option<&AuditLog>) {
    let Some(mut signal) = signal else { return std::future::pending().await };
    let had_terminal = stderr().is_terminal();
    while signal.recv().await.is_some() {
        if had_terminal && !stderr().is_terminal() {
            return;
        }
        reload.reload();
        tracing::info!(target: OPERATOR, "reading the configuration again because of SIGHUP");
        if let Some(audit) = audit {
            audit.reopen();
            tracing::info!(target: OPERATOR, "opening the audit log again");
        }
    }
    std::future::pending().await
}
