//! Supervision: one task owns the desired state, starts and stops instances, and publishes.

pub(crate) mod clock_jump;
pub(crate) mod committer;
pub(crate) mod connection_count;
pub(crate) mod connector;
pub(crate) mod dialog;
pub(crate) mod follow;
pub(crate) mod gate;
pub(crate) mod instance;
pub(crate) mod list_pacing;
pub(crate) mod lists;
pub(crate) mod machine;
pub(crate) mod pending;
pub(crate) mod publishers;
