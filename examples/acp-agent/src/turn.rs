//! One turn: from a prompt to its output, in no version's words.

use std::sync::Arc;

use mcp_acp_agent::{SessionMcp, ToolCall};
use mcp_model::CallResult;
use serde_json::Value;

use crate::prompt::Ask;

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
    Answered(Box<CallResult>),
    /// Something to read.
    Said(String),
}

/// Carries a prompt out. Dropping the future cancels the call at its server.
pub(crate) async fn run(servers: &SessionMcp, prompt: &str, out: Arc<dyn Fn(Output) + Send + Sync>) {
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
            out(Output::Answered(Box::new(result)));
            // A line at a time, as a model would say it.
            for line in text.split_inclusive('\n') {
                out(Output::Said(line.to_owned()));
            }
        }
    }
}
