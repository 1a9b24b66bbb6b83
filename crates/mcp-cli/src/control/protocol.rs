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
    /// What the host runs, and for whom.
    Status,
    /// Ends the host as a signal does.
    Stop,
    /// Restarts a server, and waits until it accepts calls.
    Restart { server: String },
    /// The last lines that a server wrote to standard error.
    Logs { server: String },
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
    /// What the host runs.
    Status(Box<HostStatus>),
    /// The lines of the instances of a server.
    Logs { instances: Vec<InstanceOutput> },
    /// The request was carried out.
    Done,
    /// The request was refused.
    Error { message: String },
}

/// What a host runs, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct HostStatus {
    /// How its clients connect: `stdio`, `shared` or `http`.
    pub(crate) kind: String,
    /// The version of the program.
    pub(crate) version: String,
    /// The configuration file.
    pub(crate) file: String,
    /// The log, if it is a file.
    pub(crate) log: Option<String>,
    /// How long it runs, in seconds.
    pub(crate) seconds: u64,
    pub(crate) servers: Vec<HostedServer>,
    /// The clients that share the host. Those over HTTP are not known.
    pub(crate) clients: Vec<HostedClient>,
}

/// A server of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostedServer {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) error: Option<String>,
    pub(crate) instances: Vec<ServerInstance>,
}

/// A running instance of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerInstance {
    /// Its process id, if it is a process.
    pub(crate) process: Option<u32>,
    /// How long it runs, in seconds.
    pub(crate) seconds: u64,
    /// Whether one client alone has it.
    pub(crate) leased: bool,
}

/// The last lines that an instance of a server wrote to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceOutput {
    /// Its process id, if it is a process.
    pub(crate) process: Option<u32>,
    /// The number of lines so far.
    pub(crate) count: u64,
    /// The last ones of them.
    pub(crate) lines: Vec<String>,
}

/// A client of a shared host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostedClient {
    /// The process id that it has started.
    pub(crate) process: u32,
    /// Its working folder.
    pub(crate) folder: String,
    /// How long it is connected, in seconds.
    pub(crate) seconds: u64,
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
