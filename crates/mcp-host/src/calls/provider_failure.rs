//! Handling of failed requests to a language model: mcp-registry decides whether to retry or to stop the dialog.
//!
//! A request that is refused for its content (a tool's schema, a name) would be refused again. Its dialog is stopped
//! and a problem is published until it is resumed (DM-066).

use std::sync::Arc;

use mcp_host_model::ErrorKind;
use mcp_host_registry::{Problem, ProviderFailure, ProviderRejection, RetryDecision, retry_decision};

use crate::calls::CallRouter;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::machine::MachineEvent;
use crate::supervisor::task::Command;

/// A failed request to a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderFailureReport {
    /// The provider's name.
    pub provider: String,
    /// The dialog of the request.
    pub dialog: DialogId,
    /// What happened.
    pub rejection: ProviderFailure,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The exposed name of the tool concerned, if known.
    pub tool: Option<String>,
    /// The provider's message. It is shown to users, cut to 2,000 bytes, and must not contain secrets.
    pub text: String,
}

impl ProviderFailureReport {
    /// A report of a first attempt, without a tool and a message.
    pub fn new(
        provider: impl Into<String>,
        dialog: DialogId,
        rejection: ProviderFailure,
    ) -> ProviderFailureReport {
        ProviderFailureReport {
            provider: provider.into(),
            dialog,
            rejection,
            attempt: 1,
            tool: None,
            text: String::new(),
        }
    }
}

impl CallRouter {
    /// Decides whether to retry after a failure, and stops the dialog if a retry would not help.
    pub(crate) async fn report_provider_failure(&self, refusal: ProviderFailureReport) -> RetryDecision {
        let ProviderFailureReport { provider, dialog, rejection, attempt, tool, text } = refusal;
        let reaction = retry_decision(&rejection, attempt);
        match reaction {
            RetryDecision::Retry { after } => {
                tracing::debug!(provider, %dialog, attempt, ?after, "the request is retried")
            }
            RetryDecision::Stop => {
                let (tool, text) = (tool.as_deref(), text.as_str());
                let mut rejection = ProviderRejection::new(&provider, dialog.as_str(), text);
                rejection.tool = tool;
                let problem = Problem::provider_rejected(&rejection);
                tracing::warn!(provider, %dialog, tool, attempt, problem = problem.message, "dialog stopped");
                let ends_seen = self.ends.current();
                let event = MachineEvent::StopDialog { dialog, problem, ends_seen };
                Command::send_event(&self.commands, event).await;
            }
        }
        reaction
    }

    /// The error of a stopped dialog; `None` if it is not stopped.
    pub(crate) fn stop_reason(&self, dialog: &DialogId) -> Option<HostError> {
        let stopped = Arc::clone(&self.routing_table.borrow().stopped);
        let problem = &stopped.get(dialog)?.problem;
        let message = format!("dialog '{dialog}' is stopped: {}", problem.message);
        let help = Some("fix what the provider refused, then resume the dialog".to_owned());
        Some(HostError { help, ..HostError::new(ErrorKind::Validation, message) })
    }

    /// Resumes a dialog.
    pub(crate) async fn resume(&self, dialog: &DialogId) {
        Command::send_event(&self.commands, MachineEvent::ResumeDialog(dialog.clone())).await;
    }
}
