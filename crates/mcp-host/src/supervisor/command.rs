//! The commands that the host and its dialogs send to the supervisor task.

use mcp_host_model::ServerId;
use tokio::sync::{mpsc, oneshot};

use crate::state::dialog_id::DialogId;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{LeaseReply, LeaseRequest, MachineEvent};

/// A command from the host to the supervisor task.
pub(crate) enum SupervisorCommand {
    /// Handle an event, and reply when its effects are published.
    Event(Box<MachineEvent<InstanceRef>>, Option<oneshot::Sender<()>>),
    /// Lease an instance.
    Lease {
        request: LeaseRequest,
        /// The number of dialogs that had ended before the request, to detect that its own dialog has ended since.
        ends_seen: u64,
        reply: oneshot::Sender<LeaseReply<InstanceRef>>,
    },
    /// Release a lease, and reply when its instance is closed.
    Release(DialogId, ServerId, oneshot::Sender<LeaseReply<InstanceRef>>),
}

impl SupervisorCommand {
    /// Returns a command to handle an event, without a reply.
    pub(crate) fn event(event: MachineEvent<InstanceRef>) -> SupervisorCommand {
        SupervisorCommand::Event(Box::new(event), None)
    }

    /// Sends an event, and waits until its effects are published or the host has ended. Cancel-safe: a sent event is
    /// handled.
    pub(crate) async fn send_event(
        commands: &mpsc::Sender<SupervisorCommand>,
        event: MachineEvent<InstanceRef>,
    ) {
        let (reply, published) = oneshot::channel();
        if commands.send(SupervisorCommand::Event(Box::new(event), Some(reply))).await.is_ok() {
            // No reply means that the host has shut down or failed, which is published.
            let _ = published.await;
        }
    }
}
