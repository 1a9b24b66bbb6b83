//! What a dialog does when its model's provider refuses a request: mcp-registry judges, the dialog stops or tries again.
//!
//! A request that is refused because of what it says (a tool's schema, a name) is refused again for as long as nothing
//! changes. So its dialog is stopped, for all to see, until somebody says that it may go on (DM-066).

use std::sync::Arc;

use mcp_model::ErrorKind;
use mcp_registry::{Problem, ProviderFailure, ProviderRejection, RetryDecision, retry_decision};
use tokio::sync::oneshot;

use crate::calls::Desk;
use crate::failure::HostError;
use crate::supervisor::committer::Command;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::machine::Event;

/// A request to a language model that its provider refused, or that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFailureReport {
    /// The provider's name.
    pub provider: String,
    /// The dialog whose request it was.
    pub dialog: DialogId,
    /// What happened.
    pub rejection: ProviderFailure,
    /// Which attempt at this request it was, counted from 1.
    pub attempt: u32,
    /// The exposed name of the tool it is about, where that is known.
    pub tool: Option<String>,
    /// What the provider said. It is shown to users, cut to 2,000 bytes: no secret belongs into it.
    pub text: String,
}

impl Desk {
    /// Judges a refusal, and stops its dialog where a repeat would not mend it.
    pub(crate) async fn refused(&self, refusal: ProviderFailureReport) -> RetryDecision {
        let ProviderFailureReport { provider, dialog, rejection, attempt, tool, text } = refusal;
        let reaction = retry_decision(&rejection, attempt);
        match reaction {
            RetryDecision::Retry { after } => {
                tracing::debug!(provider, %dialog, attempt, ?after, "tried again")
            }
            RetryDecision::Stop => {
                let (tool, text) = (tool.as_deref(), text.as_str());
                let rejection =
                    ProviderRejection { provider: &provider, dialog: dialog.as_str(), tool, text };
                let problem = Problem::provider_rejected(&rejection);
                tracing::warn!(provider, %dialog, tool, attempt, problem = problem.message, "dialog stopped");
                let asked = self.ends.so_far();
                self.tell(Event::Rejected { dialog, problem, asked }).await;
            }
        }
        reaction
    }

    /// Why a dialog is stopped, if it is.
    pub(crate) fn stopped(&self, dialog: &DialogId) -> Option<HostError> {
        let stopped = Arc::clone(&self.snapshot.borrow().stopped);
        let problem = &stopped.get(dialog)?.problem;
        let message = format!("dialog '{dialog}' is stopped: {}", problem.message);
        let help = Some("mend what was refused, then let the dialog go on".to_owned());
        Some(HostError { kind: ErrorKind::Validation, message, help })
    }

    /// Lets a dialog go on.
    pub(crate) async fn resume(&self, dialog: &DialogId) {
        self.tell(Event::Resume(dialog.clone())).await;
    }

    async fn tell(&self, event: Event<crate::supervisor::committer::Shared>) {
        let (answer, taken) = oneshot::channel();
        if self.commands.send(Command::Dialog(event, answer)).await.is_ok() {
            // No answer means that the host was shut down meanwhile, and no call is taken at all.
            let _ = taken.await;
        }
    }
}
