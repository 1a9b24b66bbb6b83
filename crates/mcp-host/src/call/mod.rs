//! A call from its name to its result. Whatever goes wrong becomes a result that says so.

mod bound;
mod find;

use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{CallMetadata, CallResult, Content, Kind, RawJson, ServerId, Tool, ToolResult};
use mcp_registry::{Checked, Validators};
use mcp_transport::{Answer, CallError, CallOptions, OnProgress, Replay};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::Instrument;

use crate::Failure;
use crate::committer::{Command, Shared};
use crate::connector::{about, call_failure};
use crate::excerpt::excerpt;
use crate::instance::Instance;
use crate::machine::Snapshot;
use bound::bound;
use find::{find, shown};

/// How much longer than its deadline a call may take in all. The session keeps the deadline itself and says more
/// about it; this bound is for what it cannot see.
const OVERTIME: Duration = Duration::from_secs(1);

/// A call to be made.
#[derive(Clone)]
pub struct ToolCall {
    /// The tool's exposed name, or its original name where no other server has one of that name.
    pub name: String,
    /// A JSON object.
    pub arguments: RawJson,
    /// Hears the call's progress.
    pub progress: Option<OnProgress>,
    /// The absolute deadline; the server's `limits.request` where `None`.
    pub deadline: Option<Duration>,
    /// The server that is meant, where the name alone is not enough.
    pub server: Option<ServerId>,
}

impl ToolCall {
    /// A call of `name` with nothing special about it.
    pub fn new(name: impl Into<String>, arguments: RawJson) -> ToolCall {
        ToolCall { name: name.into(), arguments, progress: None, deadline: None, server: None }
    }
}

/// Where calls are taken.
pub(crate) struct Desk {
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot<Shared>>>,
    pub(crate) validators: Validators,
    pub(crate) commands: mpsc::Sender<Command>,
}

/// A call that may begin: what was found under its name.
struct Target {
    server: Arc<ResolvedServer>,
    instance: Arc<Instance>,
    tool: Tool,
}

/// How a call ended.
struct Ending {
    target: Option<Target>,
    outcome: Result<Answer<ToolResult>, Failure>,
}

impl Desk {
    /// Makes a call.
    pub(crate) async fn call(&self, call: ToolCall) -> CallResult {
        let begun = Instant::now();
        let span = tracing::info_span!("call", server = tracing::field::Empty, tool = tracing::field::Empty);
        async {
            let ending = self.make(&call).await;
            let result = result(&call, ending, begun.elapsed());
            let outcome = result.error.as_ref().map_or("success", |it| it.kind.as_str());
            tracing::info!(outcome, duration = ?result.metadata.duration, "called");
            result
        }
        .instrument(span)
        .await
    }

    async fn make(&self, call: &ToolCall) -> Ending {
        // A gate that is retired means that the server was replaced or stopped since the look-up, and that its
        // successor, or its absence, was published before. So one more look-up is enough.
        for _ in 0..2 {
            let target = match self.target(call) {
                Ok(target) => target,
                Err(failure) => return Ending { target: None, outcome: Err(failure) },
            };
            let Some(guard) = target.instance.gate.begin() else { continue };
            let outcome = self.send(call, &target).await;
            drop(guard);
            return Ending { target: Some(target), outcome };
        }
        let message = format!("Tool '{}' is not available: its server is being replaced", shown(&call.name));
        Ending { target: None, outcome: Err(Failure::new(Kind::Connection, message)) }
    }

    fn target(&self, call: &ToolCall) -> Result<Target, Failure> {
        let snapshot = Arc::clone(&self.snapshot.borrow());
        let (tool, route) = find(&snapshot, &call.name, call.server.as_ref())?;
        Ok(Target {
            server: Arc::clone(&route.server),
            instance: Arc::clone(&route.instance),
            tool: tool.tool.clone(),
        })
    }

    async fn send(&self, call: &ToolCall, target: &Target) -> Result<Answer<ToolResult>, Failure> {
        let Target { server, instance, tool } = target;
        let span = tracing::Span::current();
        span.record("server", server.spec.id.as_str()).record("tool", &*tool.name);
        self.validate(call, target)?;
        let limits = &server.spec.limits;
        let deadline = call.deadline.unwrap_or(limits.request);
        let replay = if tool.hints.repeatable() { Replay::Allowed } else { Replay::Forbidden };
        let options = CallOptions {
            deadline: Some(deadline),
            idle: limits.idle,
            replay,
            progress: call.progress.clone(),
        };
        let answer = instance.session.call_tool(&tool.name, &call.arguments, options);
        match tokio::time::timeout(deadline.saturating_add(OVERTIME), answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error @ CallError::Closed(_))) if replay == Replay::Forbidden => {
                let mut res = call_failure(server, &error);
                res.message.push_str("; it is not known whether the call ran");
                Err(res)
            }
            Ok(Err(error)) => Err(call_failure(server, &error)),
            Err(_) => {
                let what = format!("no answer within {} s", deadline.as_secs_f64());
                Err(about(server, Kind::Timeout, what))
            }
        }
    }

    /// Checks the arguments against the tool's schema, before anything is sent.
    fn validate(&self, call: &ToolCall, target: &Target) -> Result<(), Failure> {
        let Target { server, instance: _, tool } = target;
        let invalid = |what: &str| {
            let message = format!("Invalid arguments for tool '{}': {what}", shown(&call.name));
            Failure::new(Kind::Validation, message)
        };
        if !call.arguments.is_object() {
            return Err(invalid("they must be a JSON object"));
        }
        match self.validators.check(&tool.input_schema, &call.arguments) {
            Ok(Checked::Valid) => {}
            Ok(Checked::Unvalidated(reason)) => {
                tracing::debug!(reason, "arguments are passed on unchecked");
                let (server, tool) = (server.spec.id.clone(), tool.name.to_string());
                // A full queue only means that the problem is shown after another call.
                let reason = excerpt(reason);
                let _ = self.commands.try_send(Command::Unvalidated { server, tool, reason });
            }
            Err(errors) => return Err(invalid(&excerpt(errors.to_string().replace('\n', "; ")))),
        }
        Ok(())
    }
}

fn result(call: &ToolCall, ending: Ending, duration: Duration) -> CallResult {
    let Ending { target, outcome } = ending;
    let mut metadata = CallMetadata {
        server: target.as_ref().map(|it| it.server.spec.id.clone()),
        tool: target.as_ref().map_or_else(|| call.name.clone(), |it| it.tool.name.to_string()),
        duration,
        request_id: None,
        structured_content: None,
    };
    let answer = match outcome {
        Ok(answer) => answer,
        Err(failure) => {
            let error = Some(failure.into_call_failure());
            return CallResult { success: false, content: Vec::new(), error, metadata };
        }
    };
    let budget = target.map_or(usize::MAX, |it| it.server.spec.limits.result_bytes);
    let ToolResult { content, structured, is_error } = answer.value;
    let (content, structured) = bound(content, structured, budget);
    metadata.request_id = Some(answer.request_id);
    metadata.structured_content = structured;
    let error = is_error.then(|| Failure::new(Kind::Tool, failed_tool(&content)).into_call_failure());
    CallResult { success: !is_error, content, error, metadata }
}

/// What a tool that failed said, or that it said nothing. Its content is there in full.
fn failed_tool(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::text).collect();
    let res = texts.join("\n");
    if res.trim().is_empty() {
        return "the tool failed and did not say why".to_owned();
    }
    excerpt(res)
}
