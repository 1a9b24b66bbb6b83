//! Execution of the host's own tools, and the lease and server operations behind them.

use mcp_host_model::{ServerId, Tool};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::result_format::{RequestError, ResultFormat};
use super::{CallOutcome, CallRouter, CallSuccess, ToolCall};
use crate::calls::admin::{AdminCommand, not_loaded, parse, toolset_id};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::published::ServerState;
use crate::supervisor::dialog::{LeaseSnapshot, Reminder};
use crate::supervisor::machine::{LeaseReply, MachineEvent, RoutingTable};
use crate::supervisor::task::Command;
use crate::telemetry::spans::CallGuard;

impl CallRouter {
    /// Calls one of the host's own tools (DM-077).
    pub(super) async fn call_admin_tool<T: ResultFormat>(
        &self,
        call: &ToolCall,
        tool: &Tool,
        guard: &CallGuard<'_>,
    ) -> CallOutcome<T> {
        guard.set_tool(&toolset_id(), &tool.name);
        let outcome = match self.validate(call, &toolset_id(), tool) {
            Ok(()) => self.run_admin_command(call, tool).await,
            Err(failure) => Err(failure),
        };
        let outcome = outcome.map(|text| CallSuccess {
            request_id: None,
            value: T::from_text(text),
            warnings: Vec::new(),
        });
        let outcome = outcome.map_err(RequestError::from);
        let tool = Some((toolset_id(), tool.name.to_string()));
        CallOutcome { tool, budget: usize::MAX, duration: guard.elapsed(), outcome }
    }

    async fn run_admin_command(&self, call: &ToolCall, tool: &Tool) -> Result<String, HostError> {
        let dialog = call.dialog.clone().unwrap_or_else(DialogId::anonymous);
        match parse(&tool.name, &call.arguments)? {
            AdminCommand::Release(server) => Ok(match self.release(&dialog, &server).await? {
                true => format!("ok: released {server} for dialog {dialog}"),
                false => format!("ok: no active lease for {server} (or server is truely-stateless)"),
            }),
            AdminCommand::Restart(server) => {
                self.restart(&server).await?;
                Ok(format!("ok: restarted {server}"))
            }
            AdminCommand::Disable(server) => {
                self.disable(&server).await?;
                Ok(format!("ok: disabled {server}"))
            }
        }
    }

    /// Releases a lease and waits until its instance is closed. False: there was none.
    pub(crate) async fn release(&self, dialog: &DialogId, server: &ServerId) -> Result<bool, HostError> {
        self.require_server(server)?;
        let (sender, reply) = oneshot::channel();
        let sent = self.commands.send(Command::Release(dialog.clone(), server.clone(), sender)).await;
        // A host that has ended holds no leases.
        Ok(sent.is_ok() && matches!(reply.await, Ok(LeaseReply::Released)))
    }

    /// Restarts a server and waits until it accepts calls.
    pub(crate) async fn restart(&self, server: &ServerId) -> Result<(), HostError> {
        self.require_server(server)?;
        Command::send_event(&self.commands, MachineEvent::Restart(server.clone())).await;
        let mut routing_tables = self.routing_table.clone();
        let status =
            |it: &RoutingTable<_>| it.snapshot.servers.iter().find(|it| it.id == server.as_str()).cloned();
        let settled = routing_tables
            .wait_for(|it| status(it).is_none_or(|it| it.state != ServerState::Starting))
            .await
            .map(|it| status(&it))
            .unwrap_or_default();
        match settled.map(|it| (it.state, it.error)) {
            Some((ServerState::Ready, None)) => Ok(()),
            Some((_, Some(failure))) => Err(failure),
            Some((_, None)) | None => Err(not_loaded(server.as_str())),
        }
    }

    /// Disables a server.
    pub(crate) async fn disable(&self, server: &ServerId) -> Result<(), HostError> {
        self.require_server(server)?;
        Command::send_event(&self.commands, MachineEvent::Disable(server.clone())).await;
        Ok(())
    }

    /// The current reminders of a dialog.
    pub(crate) fn reminders(&self, dialog: &DialogId) -> Vec<Reminder> {
        let table = self.leases.borrow();
        let own = table.reminders.iter().filter(|it| it.0 == *dialog);
        own.map(|(_, server)| Reminder { server: server.clone(), text: (self.reminder)(server, dialog) })
            .collect()
    }

    /// The current leases, by server and dialog.
    pub(crate) fn lease_snapshots(&self) -> Vec<LeaseSnapshot> {
        let (now, wall) = (Instant::now(), (self.shared.wall_clock)());
        let table = std::sync::Arc::clone(&self.leases.borrow());
        let snapshots = table.held.iter().map(|((dialog, server), held)| {
            let instance = &held.instance;
            let end = instance.idle_since().zip(self.idle).and_then(|(since, idle)| since.checked_add(idle));
            LeaseSnapshot {
                server: server.clone(),
                dialog: dialog.clone(),
                pid: instance.pid(),
                started: instance.started(),
                last_used: instance.last_used().map(|it| instance.started() + it),
                expires: end.and_then(|it| wall.checked_add(it.saturating_duration_since(now))),
            }
        });
        let mut res: Vec<_> = snapshots.collect();
        res.sort_by(|left, right| (&left.server, &left.dialog).cmp(&(&right.server, &right.dialog)));
        res
    }

    pub(crate) fn require_server(&self, server: &ServerId) -> Result<(), HostError> {
        let routing_table = self.latest();
        let servers = &routing_table.snapshot.servers;
        let known = servers.iter().any(|it| it.id == server.as_str());
        if known { Ok(()) } else { Err(not_loaded(server.as_str())) }
    }
}
