//! A handle of the supervisor task: its published routes and leases, and its queue of commands.

use std::sync::Arc;

use mcp_host_model::{ErrorKind, ServerId, Tool};
use mcp_host_registry::Problem;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::published::ServerState;
use crate::supervisor::command::SupervisorCommand;
use crate::supervisor::connector::SharedState;
use crate::supervisor::dialog_end::DialogEndCounter;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{LeaseReply, LeaseRequest, LeaseTable, MachineEvent, RoutingTable};
use crate::supervisor::tool_problem::ToolProblem;

/// Reads what the supervisor task publishes, and sends it commands.
pub(crate) struct SupervisorHandle {
    /// The latest routing table.
    pub(crate) routing_table: watch::Receiver<Arc<RoutingTable<InstanceRef>>>,
    /// The published leases.
    pub(crate) leases: watch::Receiver<Arc<LeaseTable<InstanceRef>>>,
    /// Commands to the supervisor task.
    pub(crate) commands: mpsc::Sender<SupervisorCommand>,
    /// Counts ended dialogs, to order lease requests and ends.
    pub(crate) dialog_ends: DialogEndCounter,
    pub(crate) shared: Arc<SharedState>,
}

impl SupervisorHandle {
    /// Returns the latest routing table.
    pub(crate) fn latest_routing_table(&self) -> Arc<RoutingTable<InstanceRef>> {
        Arc::clone(&self.routing_table.borrow())
    }

    /// Returns the current leases.
    pub(crate) fn lease_table(&self) -> Arc<LeaseTable<InstanceRef>> {
        Arc::clone(&self.leases.borrow())
    }

    /// Fails if the server is not configured.
    pub(crate) fn require_server(&self, server: &ServerId) -> Result<(), HostError> {
        let is_known = self.latest_routing_table().snapshot.server(server).is_some();
        if is_known { Ok(()) } else { Err(not_loaded_error(server.as_str())) }
    }

    /// Restarts a server and waits until it accepts calls.
    pub(crate) async fn restart(&self, server: &ServerId) -> Result<(), HostError> {
        self.require_server(server)?;
        SupervisorCommand::send_event(&self.commands, MachineEvent::Restart(server.clone())).await;
        let mut routing_tables = self.routing_table.clone();
        let status = |it: &RoutingTable<_>| it.snapshot.server(server).cloned();
        let final_status = routing_tables
            .wait_for(|it| status(it).is_none_or(|it| it.state != ServerState::Starting))
            .await
            .map(|it| status(&it))
            .unwrap_or_default();
        match final_status.map(|it| (it.state, it.error)) {
            Some((ServerState::Ready, None)) => Ok(()),
            Some((_, Some(failure))) => Err(failure),
            Some((_, None)) | None => Err(not_loaded_error(server.as_str())),
        }
    }

    /// Disables a server, and returns when that is published.
    pub(crate) async fn disable(&self, server: &ServerId) -> Result<(), HostError> {
        self.require_server(server)?;
        SupervisorCommand::send_event(&self.commands, MachineEvent::Disable(server.clone())).await;
        Ok(())
    }

    /// Releases a lease and waits until its instance is closed. Returns false if there was none.
    pub(crate) async fn release(&self, dialog: &DialogId, server: &ServerId) -> Result<bool, HostError> {
        self.require_server(server)?;
        let (sender, reply) = oneshot::channel();
        let sent =
            self.commands.send(SupervisorCommand::Release(dialog.clone(), server.clone(), sender)).await;
        // A host that has ended holds no leases.
        Ok(sent.is_ok() && matches!(reply.await, Ok(LeaseReply::Released)))
    }

    /// Requests a lease. Returns `None` if the host has shut down.
    pub(super) async fn request_lease(&self, request: LeaseRequest) -> Option<LeaseReply<InstanceRef>> {
        let (sender, reply) = oneshot::channel();
        let ends_seen = self.dialog_ends.current();
        // A host that has shut down sends no reply.
        let _ = self.commands.send(SupervisorCommand::Lease { request, ends_seen, reply: sender }).await;
        reply.await.ok()
    }

    /// Stops a dialog because of a problem.
    pub(super) async fn stop_dialog(&self, dialog: DialogId, problem: Problem) {
        let ends_seen = self.dialog_ends.current();
        let event = MachineEvent::StopDialog { dialog, problem, ends_seen };
        SupervisorCommand::send_event(&self.commands, event).await;
    }

    /// Returns the error of a stopped dialog; `None` if it is not stopped.
    pub(crate) fn stop_reason(&self, dialog: &DialogId) -> Option<HostError> {
        let stopped = Arc::clone(&self.routing_table.borrow().stopped_dialogs);
        let problem = &stopped.get(dialog)?.problem;
        let message = format!("dialog '{dialog}' is stopped: {}", problem.message);
        let help = Some("fix what the provider refused, then resume the dialog".to_owned());
        Some(HostError { help, ..HostError::new(ErrorKind::Validation, message) })
    }

    /// Resumes a dialog.
    pub(crate) async fn resume(&self, dialog: &DialogId) {
        SupervisorCommand::send_event(&self.commands, MachineEvent::ResumeDialog(dialog.clone())).await;
    }

    /// Returns whether a published problem meets a condition.
    pub(super) fn has_problem(&self, condition: impl Fn(&Problem) -> bool) -> bool {
        self.latest_routing_table().snapshot.problems.iter().any(|it| condition(&it.problem))
    }

    /// Reports a problem of a tool to the supervisor task, or withdraws it if there is no `reason`.
    pub(super) fn report_tool_problem(
        &self,
        server: &ServerId,
        tool: &Tool,
        problem: ToolProblem,
        reason: Option<String>,
    ) {
        let (server, tool) = (server.clone(), tool.name.to_string());
        self.report(MachineEvent::ToolProblem { server, tool, problem, reason });
    }

    /// Reports the outcome of writing a result to files. `None`: there is no problem any more.
    pub(super) fn report_spill(&self, problem: Option<Problem>) {
        self.report(MachineEvent::SetSpillProblem(problem));
    }

    /// Sends an event without waiting.
    fn report(&self, event: MachineEvent<InstanceRef>) {
        // If the queue is full, a later call reports the same again.
        let _ = self.commands.try_send(SupervisorCommand::event(event));
    }
}

/// Creates the error for an unknown server.
pub(super) fn not_loaded_error(server: &str) -> HostError {
    let server: String = server.chars().filter(|it| !it.is_control()).take(ServerId::MAX_LEN).collect();
    HostError::new(ErrorKind::Tool, format!("MCP server '{server}' is not loaded"))
}
