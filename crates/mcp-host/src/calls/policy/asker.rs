//! Asks the user about a call, unless an earlier answer is about it, and remembers the answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{RawJson, ServerId, Tool, ToolAction};
use parking_lot::Mutex;

use crate::calls::policy::question::{
    AnswerScope, AnswerVerdict, ApprovalPrompt, CallAnswer, CallQuestion, NoAnswer,
};
use crate::calls::policy::{CallDecision, CallRefusal, CallRuling, RulingOutcome};
use crate::state::call_answers::{CallAnswers, CallSubject, KnownAnswer};
use crate::state::dialog_id::DialogId;

/// The maximum number of answers for a session. At the limit all are forgotten.
const MAX_SESSION_ANSWERS: usize = 8192;

/// Asks the user.
pub(super) struct Asker {
    prompt: Option<Arc<dyn ApprovalPrompt>>,
    stored: Option<CallAnswers>,
    /// The answers that last until the host ends.
    session: Mutex<HashMap<SessionKey, AnswerVerdict>>,
}

/// The calls that an answer for a session is about. `dialog` is `None` for an answer for always that is not stored.
#[derive(PartialEq, Eq, Hash)]
struct SessionKey {
    /// The fingerprint of the question's subject.
    fingerprint: String,
    dialog: Option<Option<DialogId>>,
}

/// What is asked. The subject is computed later, because it reads files.
pub(super) struct PreparedQuestion {
    pub(super) server: ServerId,
    pub(super) configured: Option<Arc<ResolvedServer>>,
    pub(super) tool: Arc<Tool>,
    pub(super) action: ToolAction,
    pub(super) arguments: RawJson,
    pub(super) user: Option<Arc<str>>,
    pub(super) dialog: Option<DialogId>,
    pub(super) rule: Arc<str>,
}

impl Asker {
    pub(super) fn new(prompt: Option<Arc<dyn ApprovalPrompt>>, stored: Option<CallAnswers>) -> Asker {
        Asker { prompt, stored, session: Mutex::default() }
    }

    /// Returns the user's decision about a call, for at most `limit`. Dropping the future withdraws the question.
    pub(super) async fn ask(self: Arc<Self>, prepared: PreparedQuestion, limit: Duration) -> CallDecision {
        let rule = Arc::clone(&prepared.rule);
        let answer = match tokio::time::timeout(limit, self.find_or_ask(prepared)).await {
            Ok(answer) => answer,
            Err(_) => {
                let reason = format!("nobody answered within {} s", limit.as_secs_f64());
                let help = "`mcp-host approvals` shows the calls that wait".to_owned();
                Err(NoAnswer { reason, help: Some(help) })
            }
        };
        let ruling = |outcome| CallRuling::new(outcome, Arc::clone(&rule));
        match answer {
            Ok(AnswerVerdict::Allow) => CallDecision::Allow(Some(ruling(RulingOutcome::Approved))),
            Ok(AnswerVerdict::Deny) => {
                let reason = format!("the user declined it, who was asked because of the rule `{rule}`");
                CallDecision::Refuse(CallRefusal::new(ruling(RulingOutcome::Declined), reason))
            }
            Err(NoAnswer { reason, help }) => {
                let reason = format!("the rule `{rule}` requires an approval, and {reason}");
                let refusal = CallRefusal::new(ruling(RulingOutcome::Unanswered), reason);
                CallDecision::Refuse(CallRefusal { help, ..refusal })
            }
        }
    }

    /// Returns the answer that is known, or asks.
    async fn find_or_ask(&self, prepared: PreparedQuestion) -> Result<AnswerVerdict, NoAnswer> {
        let (subject, known) = self.look_up(&prepared).await?;
        let new_key = |dialog| SessionKey { fingerprint: subject.fingerprint.clone(), dialog };
        let (session_key, always_key) = (new_key(Some(prepared.dialog.clone())), new_key(None));
        let in_session = {
            let session = self.session.lock();
            session.get(&session_key).or_else(|| session.get(&always_key)).copied()
        };
        if let Some(verdict) = in_session {
            return Ok(verdict);
        }
        if let KnownAnswer::Answered(allowed) = known {
            return Ok(if allowed { AnswerVerdict::Allow } else { AnswerVerdict::Deny });
        }
        let PreparedQuestion { server, configured: _, tool, action, arguments, user, dialog, rule } =
            prepared;
        let Some(prompt) = &self.prompt else { return Err(NoAnswer::new("nobody can be asked")) };
        tracing::info!(%server, tool = &*tool.name, rule = &*rule, "a call waits for an approval");
        let question = CallQuestion {
            server,
            tool: tool.name.to_string(),
            action,
            arguments,
            user,
            dialog,
            rule,
            subject: subject.clone(),
            is_changed: known == KnownAnswer::Changed,
        };
        let CallAnswer { verdict, scope } = prompt.ask(Arc::new(question)).await?;
        match scope {
            AnswerScope::Once => {}
            AnswerScope::Session => self.remember(session_key, verdict),
            AnswerScope::Always => {
                if !self.store(subject, verdict).await {
                    self.remember(always_key, verdict);
                }
            }
        }
        Ok(verdict)
    }

    /// Computes the subject of a call, and looks it up in the stored answers.
    async fn look_up(&self, prepared: &PreparedQuestion) -> Result<(CallSubject, KnownAnswer), NoAnswer> {
        let PreparedQuestion { server, configured, tool, user, .. } = prepared;
        let (server, configured) = (server.clone(), configured.clone());
        let (tool, user, stored) = (Arc::clone(tool), user.clone(), self.stored.clone());
        let work = move || {
            let subject = CallSubject::of(&server, configured.as_deref(), &tool, user.as_deref());
            let known = stored.map_or(Ok(KnownAnswer::Unknown), |it| it.find(&subject));
            // A broken file answers nothing, so the user is asked.
            let known = known.unwrap_or_else(|error| {
                tracing::warn!(%error, "the stored answers about calls cannot be read");
                KnownAnswer::Unknown
            });
            (subject, known)
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| NoAnswer::new("its server cannot be identified"))
    }

    fn remember(&self, key: SessionKey, verdict: AnswerVerdict) {
        let mut session = self.session.lock();
        if session.len() >= MAX_SESSION_ANSWERS {
            session.clear();
        }
        session.insert(key, verdict);
    }

    /// Stores an answer for always. Returns false if that failed, which is logged.
    async fn store(&self, subject: CallSubject, verdict: AnswerVerdict) -> bool {
        let Some(stored) = self.stored.clone() else { return false };
        let allowed = verdict == AnswerVerdict::Allow;
        let work = move || stored.store(subject, allowed, SystemTime::now());
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the answer is not stored; it lasts until the host ends");
                false
            }
            Err(_) => false,
        }
    }
}
