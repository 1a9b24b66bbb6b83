//! Options of requests and tool calls.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::ServerId;
use mcp_host_transport::CallContext;

use crate::state::dialog_id::DialogId;

/// Options of a request.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// The server. Needed if the name or URI is ambiguous.
    pub server: Option<ServerId>,
    /// The servers that may be queried for a resource that no list contains, if there is no `server`. `None`: all
    /// servers with resources.
    pub servers: Option<Arc<[ServerId]>>,
    /// The user for whom the request is made, as rules for calls name it.
    pub user: Option<Arc<str>>,
    /// The dialog, which leases instances of servers that are not shared. All requests without a dialog use the
    /// same leases.
    pub dialog: Option<DialogId>,
    /// The maximum duration, including the start of a leased instance. A start continues after the deadline. `None`: a
    /// start is limited by `limits.startup` and the request by `limits.request`.
    pub deadline: Option<Duration>,
    /// The caller, and what is forwarded between it and the server. A request without a trace has that of
    /// [`TelemetryOptions::trace`](crate::TelemetryOptions::trace). If the request has no caller, the dialog's caller
    /// ([`Host::dialog_with_caller`](crate::host::Host::dialog_with_caller)) responds to server requests, or else the
    /// host's handlers. Only raw requests can return a result that requires input.
    pub context: CallContext,
}
