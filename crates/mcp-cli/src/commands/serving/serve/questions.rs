//! Questions about calls: they wait for `mcp-host approvals`, and the log names them.

use std::sync::Arc;

use mcp_host_runtime::{AnswerFuture, ApprovalPrompt, CallQuestion, PendingQuestions};

use crate::output::log::OPERATOR;
use crate::output::sanitize;

/// Logs each question, and lets it wait.
pub(super) struct LoggedQuestions(pub(super) PendingQuestions);

impl ApprovalPrompt for LoggedQuestions {
    fn ask(&self, question: Arc<CallQuestion>) -> AnswerFuture {
        let (tool, rule) = (sanitize::line(&question.tool), sanitize::line(&question.rule));
        tracing::info!(
            target: OPERATOR,
            "a call of `{tool}` of server {} waits because of the rule `{rule}`; `mcp-host approvals` answers it",
            question.server
        );
        self.0.ask(question)
    }
}
