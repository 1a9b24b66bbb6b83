//! A tool call with its options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{RawJson, ServerId, TraceContext};
use mcp_host_transport::{Caller, InputHandling, OnProgress};

use crate::state::dialog_id::DialogId;

/// A tool call.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool's exposed name, or its original name if only one server has it.
    pub name: String,
    /// The arguments, a JSON object.
    pub arguments: RawJson,
    /// Receives progress notifications.
    pub progress: Option<OnProgress>,
    /// The maximum duration of the call, including the start of a leased instance. A start continues after the
    /// deadline. `None`: a start is limited by `limits.startup` and the request by `limits.request`.
    pub deadline: Option<Duration>,
    /// The server, if the name is ambiguous without it.
    pub server: Option<ServerId>,
    /// The calling dialog, which leases instances of servers that are not shared. All calls without a dialog use
    /// the same leases.
    pub dialog: Option<DialogId>,
    /// The trace context that is sent to the server. `None`: that of
    /// [`TelemetryOptions::trace`](crate::TelemetryOptions::trace).
    pub trace: Option<TraceContext>,
    /// Answers the server requests that the call causes. `None`: the dialog's caller
    /// ([`Host::dialog_with`](crate::host::Host::dialog_with)), else the host's handlers.
    pub caller: Option<Arc<Caller>>,
    /// The caller's `_meta`. Members that concern only the caller's own connection are not forwarded
    /// ([`CallOptions::meta`](mcp_host_transport::CallOptions::meta)).
    pub meta: Option<RawJson>,
    /// Additional request parameters, a JSON object, that are forwarded.
    pub extra_params: Option<RawJson>,
    /// What is done with a result that requires input. Only [`Host::call_raw`](crate::host::Host::call_raw) can
    /// forward it.
    pub input: InputHandling,
    /// What is done with a call that its server makes a task.
    pub tasks: TaskHandling,
}

/// What is done with a call that its server makes a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TaskHandling {
    /// The host waits for the result of the task: for `deadline`, or for an hour after the server created it. A task is
    /// cancelled with its call. If the server requires it, a task is requested.
    #[default]
    Follow,
    /// The created task is the result. Only for [`Host::call_raw`](crate::host::Host::call_raw).
    Return,
}

impl ToolCall {
    /// A call of `name` with default options.
    pub fn new(name: impl Into<String>, arguments: RawJson) -> ToolCall {
        ToolCall {
            name: name.into(),
            arguments,
            progress: None,
            deadline: None,
            server: None,
            dialog: None,
            trace: None,
            caller: None,
            meta: None,
            extra_params: None,
            input: InputHandling::ByHandlers,
            tasks: TaskHandling::Follow,
        }
    }
}

impl fmt::Debug for ToolCall {
    /// Prints the size of the arguments only, because they are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ToolCall {
            name,
            arguments,
            progress: _,
            deadline,
            server,
            dialog,
            trace,
            caller,
            meta: _,
            extra_params: _,
            input,
            tasks,
        } = self;
        f.debug_struct("ToolCall")
            .field("name", name)
            .field("arguments", &format_args!("{} bytes", arguments.as_bytes().len()))
            .field("deadline", deadline)
            .field("server", server)
            .field("dialog", dialog)
            .field("trace", trace)
            .field("caller", caller)
            .field("input", input)
            .field("tasks", tasks)
            .finish_non_exhaustive()
    }
}
