//! MCP sessions: one connection to one server, after its handshake.
//!
//! A session lives from [`Session::connect`] to its end and is never revived; a supervisor starts a new one. All
//! methods may be called concurrently from many tasks. Every call ends, and dropping a call's future cancels it at the
//! server. A call makes progress only while its future is polled: over Streamable HTTP the calling task usually reads
//! the response itself.

mod cache;
mod connect;
mod connection;
mod forwarded_meta;
mod handshake;
mod incoming;
mod list_changes;
mod list_result;
mod negotiated;
mod options;
mod requests;
mod server_error;
mod session_state;
mod session_trust;
mod state;
mod subscriptions;

pub use forwarded_meta::{CONNECTION_META_KEYS, ForwardedMeta};
pub use incoming::server_event_router::{OnSessionNotification, SessionNotification};
pub use list_changes::ListChangeCounts;
pub use list_result::{ListDefect, ListResult};
pub use negotiated::era_reason::EraReason;
pub use negotiated::server::{ServerCapabilities, ServerInfo, TaskCapabilities};
pub use options::{
    CallContext, CallOptions, ClientInfo, Eras, InputHandling, RetryPolicy, SessionOptions, TaskRequest,
};
pub use requests::resources::{CompletionArgument, CompletionReference};
pub use requests::response::CallResponse;
pub use requests::tasks::{DEFAULT_TASK_TIMEOUT, StartedCall};
pub use session_state::SessionState;
pub use state::{Session, SessionCounters};

#[cfg(test)]
mod tests;
