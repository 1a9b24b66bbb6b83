//! One turn: its place among those of its session, and its output, in no version's words.

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
    /// Held by the turn that is under way; those that come meanwhile wait for it.
    one: Arc<Mutex<()>>,
    /// Changes with every `session/cancel`, and with the end of the session.
    cancels: watch::Sender<u64>,
}

/// A prompt that waits for the turns before it.
pub(crate) struct Waiting {
    agent: Arc<Agent>,
    session: String,
    one: Arc<Mutex<()>>,
    stop: Stop,
}

/// The turn that is under way in its session.
pub(crate) struct Turn {
    servers: Arc<SessionMcp>,
    stop: Stop,
    _one: OwnedMutexGuard<()>,
}

/// How a turn ended.
pub(crate) enum Ended {
    /// By itself.
    Finished,
    /// It was cancelled, or its session closed.
    Cancelled,
}

/// What a turn has to say while it goes on.
pub(crate) enum Output {
    /// A tool is being called.
    Called {
        /// The name that was asked for.
        tool: String,
        /// Its arguments.
        arguments: Value,
    },
    /// The tool says how far it is.
    Progress(String),
    /// The tool has answered.
    Answered {
        /// Whether it has done what was asked.
        success: bool,
        /// The answer, or why there is none.
        text: String,
        /// All of it.
        raw: Value,
    },
    /// Something to read.
    Said(String),
}

/// What ends a turn before its time.
struct Stop {
    cancelled: watch::Receiver<u64>,
    withdrawn: RequestCancellation,
}

impl Stop {
    async fn comes(&mut self) {
        tokio::select! {
            // Fails when the session is gone.
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

    /// A turn of `session`, whose turns these are. What cancels it is listened to from now on.
    pub(crate) fn queue(self, agent: Arc<Agent>, session: String, withdrawn: RequestCancellation) -> Waiting {
        let stop = Stop { cancelled: self.cancels.subscribe(), withdrawn };
        Waiting { agent, session, one: self.one, stop }
    }
}

impl Waiting {
    /// Its turn, with the servers that its session has by then. `None` where it was cancelled, or its session closed.
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
    /// Carries a prompt out, unless it is cancelled; then so is the call at its server.
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
            // A line at a time, as a model would say it.
            for line in text.split_inclusive('\n') {
                out(Output::Said(line.to_owned()));
            }
        }
    }
}
