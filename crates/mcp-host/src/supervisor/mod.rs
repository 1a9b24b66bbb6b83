//! Supervision of servers: one task owns the desired state, starts and stops instances, and publishes snapshots.

pub(crate) mod clock_jump;
pub(crate) mod command;
pub(crate) mod connection_count;
pub(crate) mod connector;
pub(crate) mod dialog;
pub(crate) mod dialog_end;
pub(crate) mod event_batcher;
pub(crate) mod gate;
pub(crate) mod instance;
pub(crate) mod instance_watch;
pub(crate) mod lease_policy;
pub(crate) mod list_pacing;
pub(crate) mod list_reads;
pub(crate) mod lists;
pub(crate) mod machine;
pub(crate) mod publishers;
pub(crate) mod recording;
pub(crate) mod server_error;
pub(crate) mod task;
pub(crate) mod task_registry;
pub(crate) mod tool_problem;
