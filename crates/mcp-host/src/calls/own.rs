//! What the host itself does on a call's behalf, and what it knows of its leases.

use mcp_model::{ServerId, Tool};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::result_format::{Form, Trouble};
use super::{Desk, Done, Ending, ToolCall};
use crate::calls::admin::{Order, not_loaded, own_id, read};
use crate::failure::HostError;
use crate::state::published::ServerState;
use crate::supervisor::committer::Command;
use crate::supervisor::dialog::{DialogId, LeaseReceipt, Reminder};
use crate::supervisor::machine::Answer;
use crate::telemetry::spans::CallRecord;

impl Desk {
    /// Does what one of the host's own tools is called for (DM-077).
    pub(super) async fn order<T: Form>(
        &self,
        call: &ToolCall,
        tool: &Tool,
        record: &CallRecord<'_>,
    ) -> Ending<T> {
        record.found(&own_id(), &tool.name);
        let outcome = match self.validate(call, &own_id(), tool) {
            Ok(()) => self.obey(call, tool).await,
            Err(failure) => Err(failure),
        };
        let outcome =
            outcome.map(|text| Done { request_id: None, value: T::own(text), warnings: Vec::new() });
        let outcome = outcome.map_err(Trouble::from);
        let tool = Some((own_id(), tool.name.to_string()));
        Ending { tool, budget: usize::MAX, duration: record.elapsed(), outcome }
    }

    async fn obey(&self, call: &ToolCall, tool: &Tool) -> Result<String, HostError> {
        let dialog = call.dialog.clone().unwrap_or_else(DialogId::none);
        match read(&tool.name, &call.arguments)? {
            Order::Release(server) => Ok(match self.release(&dialog, &server).await? {
                true => format!("ok: released {server} for dialog {dialog}"),
                false => format!("ok: no active lease for {server} (or server is truely-stateless)"),
            }),
            Order::Restart(server) => {
                self.restart(&server).await?;
                Ok(format!("ok: restarted {server}"))
            }
            Order::Disable(server) => {
                self.disable(&server).await?;
                Ok(format!("ok: disabled {server}"))
            }
        }
    }

    /// Gives a lease back, and waits until it is closed; false where there was none.
    pub(crate) async fn release(&self, dialog: &DialogId, server: &ServerId) -> Result<bool, HostError> {
        self.known(server)?;
        let (answer, taken) = oneshot::channel();
        let sent = self.commands.send(Command::Release(dialog.clone(), server.clone(), answer)).await;
        Ok(match (sent, taken.await) {
            (Ok(()), Ok(Answer::Released)) => true,
            // A host that is gone holds nothing.
            (Ok(()), Ok(Answer::NotHeld | Answer::Granted(_) | Answer::Refused(_) | Answer::Again))
            | (Ok(()), Err(_))
            | (Err(_), _) => false,
        })
    }

    /// Starts a server anew, and waits until it can be called.
    pub(crate) async fn restart(&self, server: &ServerId) -> Result<(), HostError> {
        self.known(server)?;
        let (answer, taken) = oneshot::channel();
        if self.commands.send(Command::Restart(server.clone(), answer)).await.is_ok() {
            // No answer means that the host was shut down meanwhile, which is published.
            let _ = taken.await;
        }
        let mut snapshot = self.snapshot.clone();
        let status = |it: &crate::supervisor::machine::Snapshot<_>| {
            it.published.servers.iter().find(|it| it.id == server.as_str()).cloned()
        };
        let settled = snapshot
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

    /// Switches a server off.
    pub(crate) async fn disable(&self, server: &ServerId) -> Result<(), HostError> {
        self.known(server)?;
        let (answer, taken) = oneshot::channel();
        if self.commands.send(Command::Disable(server.clone(), answer)).await.is_ok() {
            // A host that is shut down lets nothing run.
            let _ = taken.await;
        }
        Ok(())
    }

    /// What a dialog's model should keep in mind.
    pub(crate) fn reminders(&self, dialog: &DialogId) -> Vec<Reminder> {
        let table = self.leases.borrow();
        let own = table.reminders.iter().filter(|it| it.0 == *dialog);
        own.map(|(_, server)| Reminder { server: server.clone(), text: (self.reminder)(server, dialog) })
            .collect()
    }

    /// What is leased now, by server and dialog.
    pub(crate) fn receipts(&self) -> Vec<LeaseReceipt> {
        let (now, wall) = (Instant::now(), (self.wall_clock)());
        let table = std::sync::Arc::clone(&self.leases.borrow());
        let receipts = table.held.iter().map(|((dialog, server), held)| {
            let instance = &held.instance;
            let end = instance.unused().zip(self.idle).and_then(|(since, idle)| since.checked_add(idle));
            LeaseReceipt {
                server: server.clone(),
                dialog: dialog.clone(),
                pid: instance.pid(),
                started: instance.started(),
                last_used: instance.last_call().map(|it| instance.started() + it),
                expires: end.and_then(|it| wall.checked_add(it.saturating_duration_since(now))),
            }
        });
        let mut res: Vec<_> = receipts.collect();
        res.sort_by(|left, right| (&left.server, &left.dialog).cmp(&(&right.server, &right.dialog)));
        res
    }

    pub(crate) fn known(&self, server: &ServerId) -> Result<(), HostError> {
        let snapshot = self.latest();
        let servers = &snapshot.published.servers;
        let known = servers.iter().any(|it| it.id == server.as_str());
        if known { Ok(()) } else { Err(not_loaded(server.as_str())) }
    }
}
