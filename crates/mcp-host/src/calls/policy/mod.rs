//! The policy for calls: whether a call is sent, asked about or refused. It is checked before anything is sent, for
//! each way in which a host is called.

mod asker;
pub(crate) mod pending_questions;
pub(crate) mod permit;
pub(crate) mod question;
pub(crate) mod rule_policy;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ServerId, Tool};

use crate::calls::tool_call::ToolCall;

/// Decides about calls. [`RulePolicy`](rule_policy::RulePolicy) is the default.
pub trait CallPolicy: Send + Sync {
    /// Decides about a call. It must not block: a question is a [`CallDecision::Ask`].
    fn decide(&self, call: &PolicyCall<'_>) -> CallDecision;
}

/// A call, as a policy sees it. Its tool was found, and its arguments are valid.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PolicyCall<'a> {
    /// The server.
    pub server: &'a ServerId,
    /// The server as it is configured; `None` for the host's own tools.
    pub configured: Option<&'a Arc<ResolvedServer>>,
    /// The tool.
    pub tool: &'a Arc<Tool>,
    /// Whether a lock file approves the definition of the tool.
    pub is_approved: bool,
    /// The call.
    pub call: &'a ToolCall,
    /// The time until the deadline of the call; `None` if it has none.
    pub remaining: Option<Duration>,
}

impl<'a> PolicyCall<'a> {
    /// Creates a call of a tool that is not approved, without a deadline.
    pub fn new(server: &'a ServerId, tool: &'a Arc<Tool>, call: &'a ToolCall) -> PolicyCall<'a> {
        PolicyCall { server, configured: None, tool, is_approved: false, call, remaining: None }
    }
}

/// The decision about a call.
#[expect(clippy::exhaustive_enums, reason = "a call is sent, is not sent, or waits")]
pub enum CallDecision {
    /// The call is sent. Without a ruling, no rule matched it.
    Allow(Option<CallRuling>),
    /// The call is refused.
    Refuse(CallRefusal),
    /// The decision takes time, for example because the user is asked. It must not take longer than
    /// [`PolicyCall::remaining`]. When the call is cancelled, this is dropped.
    Ask(Pin<Box<dyn Future<Output = CallDecision> + Send>>),
}

/// The rule that decided about a call, and the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRuling {
    /// The outcome.
    pub outcome: RulingOutcome,
    /// The rule.
    pub rule: Arc<str>,
}

impl CallRuling {
    /// Creates a ruling.
    pub fn new(outcome: RulingOutcome, rule: Arc<str>) -> CallRuling {
        CallRuling { outcome, rule }
    }
}

/// The outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum RulingOutcome {
    /// A rule allows the call.
    Allowed,
    /// The user approved the call.
    Approved,
    /// A rule refuses the call.
    Refused,
    /// The user declined the call.
    Declined,
    /// The user was not asked, or did not answer in time.
    Unanswered,
}

impl RulingOutcome {
    /// Returns the name of the outcome, such as `allowed`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRefusal {
    /// The rule.
    pub ruling: CallRuling,
    /// The reason, as the end of a sentence.
    pub reason: String,
    /// What to do, if known.
    pub help: Option<String>,
}

impl CallRefusal {
    /// Creates a refusal without help.
    pub fn new(ruling: CallRuling, reason: impl Into<String>) -> CallRefusal {
        CallRefusal { ruling, reason: reason.into(), help: None }
    }
}
