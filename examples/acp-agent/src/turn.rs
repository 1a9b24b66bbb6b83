//! Turns: their queue in a session, and their output, independent of the version.

use std::sync::Arc;

use agent_client_protocol::{Error, RequestCancellation};
use mcp_host_acp_agent::{ServerSource, SessionServers, ToolCall};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::agent::Agent;
use crate::prompt::Command;

/// The queue of turns of a session.
#[derive(Clone)]
pub(crate) struct TurnQueue {
    /// Held by the running turn; later ones wait for it.
    turn_lock: Arc<Mutex<()>>,
    /// Changes on each `session/cancel`, and at the end of the session.
    cancellations: watch::Sender<u64>,
}

/// A queued prompt.
pub(crate) struct QueuedTurn {
    agent: Arc<Agent>,
    session: String,
    turn_lock: Arc<Mutex<()>>,
    cancellation: Cancellation,
}

/// The running turn of a session.
pub(crate) struct Turn {
    servers: Arc<SessionServers>,
    cancellation: Cancellation,
    _lock: OwnedMutexGuard<()>,
}

/// How a turn ended.
pub(crate) enum TurnOutcome {
    /// It completed.
    Finished,
    /// It was cancelled, or its session closed.
    Cancelled,
}

/// The output of a running turn.
pub(crate) enum Output {
    /// A tool call starts.
    CallStarted {
        /// The requested name.
        tool: String,
        /// The arguments.
        arguments: Value,
    },
    /// The tool reports progress.
    Progress(String),
    /// The tool call ends.
    CallEnded {
        /// Whether it succeeded.
        success: bool,
        /// The result, or the error, as text.
        text: String,
        /// The complete result.
        raw: Value,
    },
    /// Text.
    Text(String),
}

/// The cancellation of a turn.
struct Cancellation {
    session: watch::Receiver<u64>,
    request: RequestCancellation,
}

impl Cancellation {
    async fn cancelled(&mut self) {
        tokio::select! {
            // An error means that the session has ended.
            _ = self.session.changed() => {}
            () = self.request.cancelled() => {}
        }
    }
}

impl TurnQueue {
    pub(crate) fn new() -> TurnQueue {
        TurnQueue { turn_lock: Arc::default(), cancellations: watch::Sender::new(0) }
    }

    pub(crate) fn cancel(&self) {
        self.cancellations.send_modify(|count| *count += 1);
    }

    /// Queues a turn of `session`. Its cancellation is observed from now on.
    pub(crate) fn queue(
        self,
        agent: Arc<Agent>,
        session: String,
        request: RequestCancellation,
    ) -> QueuedTurn {
        let cancellation = Cancellation { session: self.cancellations.subscribe(), request };
        QueuedTurn { agent, session, turn_lock: self.turn_lock, cancellation }
    }
}

impl QueuedTurn {
    /// Waits for the turn, and returns it with the session's current servers, which are started if they were idle.
    /// `None` if it was cancelled, or the session closed.
    pub(crate) async fn start(self) -> Result<Option<Turn>, Error> {
        let QueuedTurn { agent, session, turn_lock, mut cancellation } = self;
        let lock = tokio::select! {
            biased;
            () = cancellation.cancelled() => return Ok(None),
            lock = turn_lock.lock_owned() => lock,
        };
        let servers = tokio::select! {
            biased;
            () = cancellation.cancelled() => return Ok(None),
            servers = agent.sessions.acquire(&session) => servers?,
        };
        Ok(servers.map(|servers| Turn { servers, cancellation, _lock: lock }))
    }
}

impl Turn {
    /// Runs a prompt. A cancellation also cancels the call at the server.
    pub(crate) async fn run(
        mut self,
        prompt: &str,
        output: impl Fn(Output) + Send + Sync + 'static,
    ) -> TurnOutcome {
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => TurnOutcome::Cancelled,
            () = run(&self.servers, prompt, Arc::new(output)) => TurnOutcome::Finished,
        }
    }
}

async fn run(servers: &SessionServers, prompt: &str, output: Arc<dyn Fn(Output) + Send + Sync>) {
    match Command::parse(prompt) {
        Command::Tools => {
            let tools = servers.tools();
            let statuses = servers.statuses();
            let is_own = |server: &str| {
                statuses.iter().any(|status| status.name == server && status.source == ServerSource::Agent)
            };
            let lines = tools.iter().map(|tool| {
                let source = if is_own(tool.server.as_str()) { " (agent)" } else { "" };
                format!("{} of {}{source}", tool.name, tool.server)
            });
            output(Output::Text(lines.collect::<Vec<_>>().join("\n")));
        }
        Command::Servers => {
            let statuses = servers.statuses().into_iter();
            let lines = statuses.map(|status| serde_json::to_string(&status).unwrap_or_default());
            output(Output::Text(lines.collect::<Vec<_>>().join("\n")));
        }
        Command::Invalid(reply) => output(Output::Text(reply)),
        Command::Call { tool, arguments } => {
            output(Output::CallStarted {
                tool: tool.clone(),
                arguments: arguments.read().unwrap_or_default(),
            });
            let mut call = ToolCall::new(tool, arguments);
            let progress_output = Arc::clone(&output);
            call.options.context.progress = Some(Arc::new(move |progress| {
                let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
                progress_output(Output::Progress(format!("{}{total}", progress.progress)));
            }));
            let result = servers.call(call).await;
            let text = match &result.error {
                Some(error) => format!("{}: {}", error.kind, error.message),
                None => result.text(),
            };
            let raw = serde_json::to_value(&result).unwrap_or_default();
            output(Output::CallEnded { success: result.success, text: text.clone(), raw });
            // One line at a time, like a model.
            for line in text.split_inclusive('\n') {
                output(Output::Text(line.to_owned()));
            }
        }
    }
}
