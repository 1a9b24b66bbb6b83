//! Handles requests: one file for each family of methods, independent of the transport.

pub(crate) mod call_record;
mod completion;
pub(crate) mod context;
pub(crate) mod dispatch;
pub(crate) mod initialize;
mod lists;
mod logging;
mod prompts;
mod request_span;
mod resources;
mod server_result;
mod skills;
pub(crate) mod subscriptions;
mod task_watch;
mod tasks;
mod tools;

/// How long a client may cache a list, in milliseconds. A subscription reports changes sooner.
const LIST_TTL_MS: u32 = 5000;
