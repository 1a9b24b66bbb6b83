//! Turns: their queue in a session, and their output, independent of the version.

use std::sync::Arc;

use agent_client_protocol::RequestCancellation;
use mcp_acp_agent::{SessionMcp, ToolCall};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::agent::Agent;
use crate::prompt::Ask;

/// The turns of a session.
#[derive(Clone)]
pub(crate) struct Turns {
    /// Held by the running turn; later ones wait for it.
    one: Arc<Mutex<()>>,
    /// Changes on each `session/cancel`, and at the end of the session.
    cancels: watch::Sender<u64>,
}

/// A queued prompt.
pub(crate) struct Waiting {
    agent: Arc<Agent>,
    session: String,
    one: Arc<Mutex<()>>,
    stop: Stop,
}

/// The running turn of a session.
pub(crate) struct Turn {
    servers: Arc<SessionMcp>,
    stop: Stop,
    _one: OwnedMutexGuard<()>,
}

/// How a turn ended.
pub(crate) enum Ended {
    /// It completed.
    Finished,
    /// It was cancelled, or its session closed.
    Cancelled,
}

/// The output of a running turn.
pub(crate) enum Output {
    /// A tool call starts.
    Called {
        /// The requested name.
        tool: String,
        /// The arguments.
        arguments: Value,
    },
    /// The tool reports progress.
    Progress(String),
    /// The tool call ends.
    Answered {
        /// Whether it succeeded.
        success: bool,
        /// The result, or the error, as text.
        text: String,
        /// The complete result.
        raw: Value,
    },
    /// Text.
    Said(String),
}

/// The cancellation of a turn.
struct Stop {
    cancelled: watch::Receiver<u64>,
    withdrawn: RequestCancellation,
}

impl Stop {
    async fn comes(&mut self) {
        tokio::select! {
            // An error means that the session is gone.
            _ = self.cancelled.changed() => {}
            () = self.withdrawn.cancelled() => {}
        }
    }
}

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns { one: Arc::default(), cancels: watch::Sender::new(0) }
    }

    pub(crate) fn cancel(&self) {
        self.cancels.send_modify(|it| *it += 1);
    }

    /// Queues a turn of `session`. Its cancellation is observed from now on.
    pub(crate) fn queue(self, agent: Arc<Agent>, session: String, withdrawn: RequestCancellation) -> Waiting {
        let stop = Stop { cancelled: self.cancels.subscribe(), withdrawn };
        Waiting { agent, session, one: self.one, stop }
    }
}

impl Waiting {
    /// Waits for the turn, and returns it with the session's current servers. `None` if it was cancelled, or the
    /// session closed.
    pub(crate) async fn begins(self) -> Option<Turn> {
        let Waiting { agent, session, one, mut stop } = self;
        let one = tokio::select! {
            biased;
            () = stop.comes() => return None,
            one = one.lock_owned() => one,
        };
        let servers = agent.sessions.get(&session)?;
        Some(Turn { servers, stop, _one: one })
    }
}

impl Turn {
    /// Runs a prompt. A cancellation also cancels the call at the server.
    pub(crate) async fn run(mut self, prompt: &str, out: impl Fn(Output) + Send + Sync + 'static) -> Ended {
        tokio::select! {
            biased;
            () = self.stop.comes() => Ended::Cancelled,
            () = run(&self.servers, prompt, Arc::new(out)) => Ended::Finished,
        }
    }
}

async fn run(servers: &SessionMcp, prompt: &str, out: Arc<dyn Fn(Output) + Send + Sync>) {
    match Ask::read(prompt) {
        Ask::Tools => {
            let tools = servers.tools();
            let lines = tools.iter().map(|it| format!("{} of {}", it.name, it.server));
            out(Output::Said(lines.collect::<Vec<_>>().join("\n")));
        }
        Ask::Servers => {
            let lines =
                servers.statuses().into_iter().map(|it| serde_json::to_string(&it).unwrap_or_default());
            out(Output::Said(lines.collect::<Vec<_>>().join("\n")));
        }
        Ask::Unclear(words) => out(Output::Said(words)),
        Ask::Call { tool, arguments } => {
            out(Output::Called { tool: tool.clone(), arguments: arguments.read().unwrap_or_default() });
            let mut call = ToolCall::new(tool, arguments);
            let hears = Arc::clone(&out);
            call.progress = Some(Arc::new(move |it| {
                let total = it.total.map(|total| format!(" of {total}")).unwrap_or_default();
                hears(Output::Progress(format!("{}{total}", it.progress)));
            }));
            let result = servers.call(call).await;
            let text = match &result.error {
                Some(error) => format!("{}: {}", error.kind, error.message),
                None => result.text(),
            };
            let raw = serde_json::to_value(&result).unwrap_or_default();
            out(Output::Answered { success: result.success, text: text.clone(), raw });
            // One line at a time, like a model.
            for line in text.split_inclusive('\n') {
                out(Output::Said(line.to_owned()));
            }
        }
    }
}
