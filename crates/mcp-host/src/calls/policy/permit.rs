//! The permission of a call: what the policy allowed, and a question that waits.
//!
//! A permission is for the definition that was decided about. If the tool or its server changes while the user is
//! asked, the policy decides again.

use std::pin::Pin;
use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, Tool};

use crate::calls::policy::{CallDecision, CallPolicy, CallRefusal, CallRuling, PolicyCall};
use crate::calls::tool_lookup::display_name;
use crate::error::HostError;

/// The maximum number of questions about one call.
const MAX_QUESTIONS: u32 = 3;

/// The permission of one call.
#[derive(Default)]
pub(in crate::calls) struct CallPermit {
    /// What the user approved.
    approved: Option<ApprovedCall>,
    /// A decision that the call waits for, and what it is about.
    pending: Option<(PendingDecision, ApprovedCall)>,
    questions: u32,
    /// The rule that decided.
    pub(in crate::calls) ruling: Option<CallRuling>,
}

type PendingDecision = Pin<Box<dyn Future<Output = CallDecision> + Send>>;

/// What a decision is about.
struct ApprovedCall {
    configured: Option<Arc<ResolvedServer>>,
    tool: Arc<Tool>,
}

impl ApprovedCall {
    fn of(call: &PolicyCall<'_>) -> ApprovedCall {
        ApprovedCall { configured: call.configured.cloned(), tool: Arc::clone(call.tool) }
    }

    /// Whether it is about the same definitions of the tool and its server.
    fn covers(&self, call: &PolicyCall<'_>) -> bool {
        let is_same_server = match (&self.configured, call.configured) {
            (Some(own), Some(other)) => {
                Arc::ptr_eq(own, other)
                    || (own.endpoint == other.endpoint && own.spec.calls == other.spec.calls)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same_server && (Arc::ptr_eq(&self.tool, call.tool) || self.tool.raw == call.tool.raw)
    }
}

impl CallPermit {
    /// Checks a call. Fails if it is refused, or if [`CallPermit::wait`] has to be called first.
    pub(in crate::calls) fn check(
        &mut self,
        policy: &dyn CallPolicy,
        call: &PolicyCall<'_>,
    ) -> Result<(), HostError> {
        if self.approved.as_ref().is_some_and(|it| it.covers(call)) {
            return Ok(());
        }
        match policy.decide(call) {
            CallDecision::Allow(ruling) => {
                self.ruling = ruling;
                Ok(())
            }
            CallDecision::Refuse(refusal) => Err(self.refuse(call.call.name(), refusal)),
            CallDecision::Ask(decision) => {
                self.questions += 1;
                if self.questions > MAX_QUESTIONS {
                    let name = display_name(call.call.name());
                    let message =
                        format!("Tool '{name}' was not called: it changed each time it was approved");
                    return Err(HostError::new(ErrorKind::CallRefused, message));
                }
                self.pending = Some((decision, ApprovedCall::of(call)));
                Err(HostError::new(ErrorKind::CallRefused, "the call waits for an approval"))
            }
        }
    }

    /// Whether the last check needs a decision that takes time.
    pub(in crate::calls) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Waits for the decision that the last check needs. Fails if it refuses the call. `name` is that of the tool.
    pub(in crate::calls) async fn wait(&mut self, name: &str) -> Result<(), HostError> {
        let Some((mut decision, about)) = self.pending.take() else { return Ok(()) };
        loop {
            match decision.await {
                CallDecision::Ask(next) => decision = next,
                CallDecision::Refuse(refusal) => return Err(self.refuse(name, refusal)),
                CallDecision::Allow(ruling) => {
                    self.ruling = ruling;
                    self.approved = Some(about);
                    return Ok(());
                }
            }
        }
    }

    fn refuse(&mut self, name: &str, refusal: CallRefusal) -> HostError {
        let CallRefusal { ruling, reason, help } = refusal;
        self.ruling = Some(ruling);
        let message = format!("Tool '{}' was not called: {reason}", display_name(name));
        HostError { help, ..HostError::new(ErrorKind::CallRefused, message) }
    }
}
