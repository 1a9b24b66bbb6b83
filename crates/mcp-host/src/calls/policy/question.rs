//! Questions about calls, and the port through which they are asked.
//!
//! A question never goes to the client that wants the call, because a client can answer its own question.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use mcp_host_model::{RawJson, ServerId, ToolAction};

use crate::state::call_answers::CallSubject;
use crate::state::dialog_id::DialogId;

/// A question: may this call be sent?
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallQuestion {
    /// The server.
    pub server: ServerId,
    /// The server's own name of the tool.
    pub tool: String,
    /// What the tool does.
    pub action: ToolAction,
    /// The arguments, a JSON object. They may contain secrets.
    pub arguments: RawJson,
    /// The user of the call, if it has one.
    pub user: Option<Arc<str>>,
    /// The dialog of the call.
    pub dialog: Option<DialogId>,
    /// The rule that asks.
    pub rule: Arc<str>,
    /// What an answer for the session or for always is about.
    pub subject: CallSubject,
    /// Whether an answer exists that is about another definition of the tool or of its server.
    pub is_changed: bool,
}

impl fmt::Debug for CallQuestion {
    /// Prints the size of the arguments only, because they are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallQuestion { server, tool, action, arguments, user, dialog, rule, subject: _, is_changed } =
            self;
        f.debug_struct("CallQuestion")
            .field("server", server)
            .field("tool", tool)
            .field("action", action)
            .field("arguments", &format_args!("{} bytes", arguments.as_bytes().len()))
            .field("user", user)
            .field("dialog", dialog)
            .field("rule", rule)
            .field("is_changed", is_changed)
            .finish_non_exhaustive()
    }
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an answer is yes or no, and has a scope")]
pub struct CallAnswer {
    /// Whether the call is sent.
    pub verdict: AnswerVerdict,
    /// The calls that it is about.
    pub scope: AnswerScope,
}

/// The content of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a question has two answers")]
pub enum AnswerVerdict {
    /// The call is sent.
    Allow,
    /// The call is refused.
    Deny,
}

/// The calls that an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a host keeps an answer nowhere, in memory, or on disk")]
pub enum AnswerScope {
    /// This call.
    #[default]
    Once,
    /// Calls of this tool by the same user in the same dialog, until the host ends.
    Session,
    /// Calls of this tool by the same user, until the tool or its server changes.
    Always,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoAnswer {
    /// The reason, as the end of a sentence.
    pub reason: String,
    /// What to do, if known.
    pub help: Option<String>,
}

impl NoAnswer {
    /// Creates it without help.
    pub fn new(reason: impl Into<String>) -> NoAnswer {
        NoAnswer { reason: reason.into(), help: None }
    }
}

/// The future of an answer. Dropping it withdraws the question.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Result<CallAnswer, NoAnswer>> + Send>>;

/// Asks the user.
pub trait ApprovalPrompt: Send + Sync {
    /// Asks a question. The host limits the time.
    fn ask(&self, question: Arc<CallQuestion>) -> AnswerFuture;
}
