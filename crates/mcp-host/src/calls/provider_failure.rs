//! Handling of failed requests to a language model. mcp-registry decides whether to retry the request or to stop the
//! dialog.
//!
//! A request that is refused for its content (a tool's schema, a name) would be refused again. Therefore its dialog is
//! stopped until it is resumed, and a problem is published (DM-066).

use mcp_host_registry::{Problem, ProviderFailure, ProviderRejection, RetryDecision, decide_retry};

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
    /// The failure.
    pub failure: ProviderFailure,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The exposed name of the tool concerned, if known.
    pub tool: Option<String>,
    /// The provider's message. It is shown to users, cut to 2,000 bytes, and must not contain secrets.
    pub text: String,
}

impl ProviderFailureReport {
    /// Creates a report of a first attempt, without a tool and a message.
    pub fn new(
        provider: impl Into<String>,
        dialog: DialogId,
        failure: ProviderFailure,
    ) -> ProviderFailureReport {
        ProviderFailureReport {
            provider: provider.into(),
            dialog,
            failure,
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
    let ProviderFailureReport { provider, dialog, failure, attempt, tool, text } = report;
    let decision = decide_retry(&failure, attempt);
    match decision {
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
    decision
}
