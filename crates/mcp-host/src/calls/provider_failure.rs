//! Handling of failed requests to a language model: mcp-registry decides whether to retry or to stop the dialog.
//!
//! A request that is refused for its content (a tool's schema, a name) would be refused again. Its dialog is stopped
//! and a problem is published until it is resumed (DM-066).

use mcp_host_registry::{Problem, ProviderFailure, ProviderRejection, RetryDecision, retry_decision};

use crate::calls::supervisor_handle::SupervisorHandle;
use crate::state::dialog_id::DialogId;

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

/// Decides whether to retry after a failure, and stops the dialog if a retry would not help.
pub(crate) async fn report_provider_failure(
    supervisor: &SupervisorHandle,
    report: ProviderFailureReport,
) -> RetryDecision {
    let ProviderFailureReport { provider, dialog, rejection, attempt, tool, text } = report;
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
            supervisor.stop_dialog(dialog, problem).await;
        }
    }
    reaction
}
