//! The policy by rules: those of the host come first, then those of the server's entry, then the default.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ahash::AHashMap;
use mcp_host_config::ResolvedServer;
use mcp_host_model::{CallEffect, CallRule, Tool, ToolAction};
use mcp_host_registry::{CallFacts, find_call_rule, tool_action};
use parking_lot::RwLock;

use crate::calls::policy::asker::{Asker, PreparedQuestion};
use crate::calls::policy::question::ApprovalPrompt;
use crate::calls::policy::{CallDecision, CallPolicy, CallRefusal, CallRuling, PolicyCall, RulingOutcome};
use crate::state::call_answers::CallAnswers;

/// The maximum number of known decisions. At the limit all are forgotten.
const MAX_KNOWN: usize = 8192;

/// The longest time that a call without a deadline waits for an answer.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);

/// The rules of a host.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallRuleOptions {
    /// The rules that precede those of the servers' entries.
    pub rules: Vec<CallRule>,
    /// The effect on calls that no rule matches; `allow` unless set.
    pub default: CallEffect,
    /// Asks the user. `None`: calls that need an approval are refused.
    pub prompt: Option<Arc<dyn ApprovalPrompt>>,
    /// The file with the answers for always. `None`: such an answer lasts until the host ends.
    pub answers: Option<CallAnswers>,
}

impl Default for CallRuleOptions {
    fn default() -> CallRuleOptions {
        CallRuleOptions { rules: Vec::new(), default: CallEffect::Allow, prompt: None, answers: None }
    }
}

/// Decides by rules, and asks the user if a rule says so.
pub struct RulePolicy {
    rules: Vec<CallRule>,
    default: CallEffect,
    asker: Arc<Asker>,
    /// The decisions that were made, because a long list of rules takes longer than a lookup.
    known: RwLock<AHashMap<CallKey, KnownDecision>>,
}

/// What a decision depends on. Tools and servers are named by their addresses.
#[derive(PartialEq, Eq, Hash)]
struct CallKey {
    tool: usize,
    server: usize,
    /// Whether the definition of the tool is approved.
    is_approved: bool,
    user: Option<Arc<str>>,
}

/// A decision, with what keeps the addresses of its key from being used again.
struct KnownDecision {
    decision: RuleDecision,
    _tool: Weak<Tool>,
    _server: Option<Weak<ResolvedServer>>,
}

/// The effect of the rules on a call, and the deciding rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleDecision {
    /// The effect.
    pub effect: CallEffect,
    /// The deciding rule and its place; `None` if no rule matches.
    pub rule: Option<Arc<str>>,
}

impl RulePolicy {
    /// Creates a policy.
    pub fn new(options: CallRuleOptions) -> RulePolicy {
        let CallRuleOptions { rules, default, prompt, answers } = options;
        let known = RwLock::default();
        RulePolicy { rules, default, asker: Arc::new(Asker::new(prompt, answers)), known }
    }

    /// Returns the decision about a call, and the rule that made it. The rules of the host come first, then those of
    /// the server's entry (`configured`). In the entry of a file that was found in a project, `allow` has no more
    /// effect than the default of the host.
    pub fn explain(&self, configured: Option<&ResolvedServer>, facts: &CallFacts<'_>) -> RuleDecision {
        if let Some(rule) = find_call_rule(&self.rules, facts) {
            return RuleDecision { effect: rule.effect, rule: Some(rule.to_string().into()) };
        }
        if let Some(server) = configured
            && let Some(rule) = find_call_rule(server.spec.calls.iter(), facts)
        {
            let text = format!("{rule} (entry '{}')", facts.server);
            let is_own = !server.needs_approval || rule.effect != CallEffect::Allow;
            let effect = if is_own { rule.effect } else { self.default };
            return RuleDecision { effect, rule: Some(text.into()) };
        }
        RuleDecision { effect: self.default, rule: None }
    }

    /// Returns the decision about a call, which is remembered.
    fn rule_of(&self, call: &PolicyCall<'_>) -> RuleDecision {
        let key = CallKey {
            tool: Arc::as_ptr(call.tool) as usize,
            server: call.configured.map_or(0, |it| Arc::as_ptr(it) as usize),
            is_approved: call.is_approved,
            user: call.call.options.user.clone(),
        };
        if let Some(known) = self.known.read().get(&key) {
            return known.decision.clone();
        }
        let facts = CallFacts {
            server: call.server,
            tool: &call.tool.name,
            action: action_of(call),
            user: key.user.as_deref(),
        };
        let decision = self.explain(call.configured.map(|it| &**it), &facts);
        let known = KnownDecision {
            decision: decision.clone(),
            _tool: Arc::downgrade(call.tool),
            _server: call.configured.map(Arc::downgrade),
        };
        let mut all = self.known.write();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(key, known);
        decision
    }
}

impl CallPolicy for RulePolicy {
    fn decide(&self, call: &PolicyCall<'_>) -> CallDecision {
        let has_own_rules = call.configured.is_some_and(|it| !it.spec.calls.is_empty());
        if self.rules.is_empty() && !has_own_rules && self.default == CallEffect::Allow {
            return CallDecision::Allow(None);
        }
        let RuleDecision { effect, rule } = self.rule_of(call);
        let rule = rule.unwrap_or_else(|| format!("{} by default", effect.as_str()).into());
        match effect {
            CallEffect::Allow => CallDecision::Allow(Some(CallRuling::new(RulingOutcome::Allowed, rule))),
            CallEffect::Deny => {
                let reason = format!("the rule `{rule}` refuses it");
                let ruling = CallRuling::new(RulingOutcome::Refused, rule);
                CallDecision::Refuse(CallRefusal::new(ruling, reason))
            }
            CallEffect::Ask => {
                let question = PreparedQuestion {
                    server: call.server.clone(),
                    configured: call.configured.cloned(),
                    tool: Arc::clone(call.tool),
                    action: action_of(call),
                    arguments: call.call.arguments.clone(),
                    user: call.call.options.user.clone(),
                    dialog: call.call.options.dialog.clone(),
                    rule,
                };
                let limit = call.remaining.map_or(MAX_WAIT, |it| it.min(MAX_WAIT));
                CallDecision::Ask(Box::pin(Arc::clone(&self.asker).ask(question, limit)))
            }
        }
    }
}

fn action_of(call: &PolicyCall<'_>) -> ToolAction {
    tool_action(call.tool.hints, call.is_approved)
}
