//! Tool calls with their options.

use std::fmt;

use mcp_host_model::RawJson;

use crate::calls::request_options::RequestOptions;
use crate::calls::tool_ref::ToolRef;

/// A tool call.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool.
    pub tool: CalledTool,
    /// The arguments, a JSON object.
    pub arguments: RawJson,
    /// The handling of a task, if the server continues the call as one.
    pub tasks: TaskHandling,
    /// The options that all kinds of requests have.
    pub options: RequestOptions,
}

/// The tool of a call.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a tool is named, or it was found")]
pub enum CalledTool {
    /// The tool's exposed name, or its original name if only one server has it.
    Named(String),
    /// A tool that was found in a snapshot.
    Found(ToolRef),
}

/// The handling of a call that its server continues as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TaskHandling {
    /// The host waits for the result of the task, until the deadline of the call, or for an hour after the server
    /// created the task. The task is cancelled with its call. If the tool requires a task, one is requested.
    #[default]
    Follow,
    /// The created task is the result. Only for [`Host::call_raw`](crate::host::Host::call_raw).
    Return,
}

impl ToolCall {
    /// Creates a call of the tool with this exposed or original name, with default options.
    pub fn new(name: impl Into<String>, arguments: RawJson) -> ToolCall {
        ToolCall::of(CalledTool::Named(name.into()), arguments)
    }

    /// Creates a call of a tool with default options.
    pub fn of(tool: CalledTool, arguments: RawJson) -> ToolCall {
        ToolCall { tool, arguments, tasks: TaskHandling::Follow, options: RequestOptions::default() }
    }

    /// Returns the name of the tool in the call.
    pub fn name(&self) -> &str {
        match &self.tool {
            CalledTool::Named(name) => name,
            CalledTool::Found(tool) => tool.tool().name.as_str(),
        }
    }
}

impl fmt::Debug for ToolCall {
    /// Prints the size of the arguments only, because they are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ToolCall { tool, arguments, tasks, options } = self;
        let RequestOptions { server, servers: _, user, dialog, deadline, context } = options;
        f.debug_struct("ToolCall")
            .field("tool", tool)
            .field("arguments", &format_args!("{} bytes", arguments.as_bytes().len()))
            .field("tasks", tasks)
            .field("server", server)
            .field("user", user)
            .field("dialog", dialog)
            .field("deadline", deadline)
            .field("trace", &context.trace)
            .field("caller", &context.caller)
            .field("input", &context.input)
            .finish_non_exhaustive()
    }
}
