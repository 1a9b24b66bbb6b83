//! The messages of the control socket, one per line.

use mcp_host_runtime::{AnswerScope, AnswerVerdict, CallAnswer};
use serde::{Deserialize, Serialize};

/// The maximum size of a line, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

/// A request of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ControlRequest {
    /// The calls that wait for an approval.
    ListApprovals,
    /// The same, now and after each change, until the connection ends.
    WatchApprovals,
    /// Answers the question of a call.
    Answer {
        /// The number of the question.
        id: u64,
        allow: bool,
        #[serde(default)]
        remember: Remember,
    },
}

/// How long an answer is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Remember {
    #[default]
    Once,
    Session,
    Always,
}

/// A reply of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum ControlReply {
    /// The calls that wait.
    Approvals { waiting: Vec<WaitingCall> },
    /// The number of calls that an answer decided.
    Answered { calls: usize },
    /// The request was refused.
    Error { message: String },
}

/// A call that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingCall {
    /// The number of its question.
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) call: CallDescription,
}

/// What a question says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallDescription {
    pub(crate) server: String,
    pub(crate) tool: String,
    /// What the tool does: `reads`, `writes` or `destructive`.
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) user: Option<String>,
    pub(crate) rule: String,
    /// Whether an answer exists that is about another definition.
    pub(crate) changed: bool,
    /// How long it waits, in seconds.
    pub(crate) seconds: u64,
    /// The beginning of the arguments.
    pub(crate) arguments: String,
}

/// The answer with this content.
pub(crate) fn call_answer(allow: bool, remember: Remember) -> CallAnswer {
    CallAnswer {
        verdict: if allow { AnswerVerdict::Allow } else { AnswerVerdict::Deny },
        scope: match remember {
            Remember::Once => AnswerScope::Once,
            Remember::Session => AnswerScope::Session,
            Remember::Always => AnswerScope::Always,
        },
    }
}

/// The reply to a line that is no request. It does not repeat the line.
pub(crate) fn parse_request(line: &[u8]) -> Result<ControlRequest, ControlReply> {
    serde_json::from_slice(line).map_err(|error| ControlReply::Error {
        message: format!("not a request: invalid at column {}", error.column()),
    })
}

/// A message as a line.
pub(crate) fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("its keys are strings");
    line.push(b'\n');
    line
}
