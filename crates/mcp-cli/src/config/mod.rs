//! The configuration file of a command: finding, reading and rejecting it, its lock file, and the user's secrets.

pub(crate) mod approval;
pub(crate) mod call_rules;
pub(crate) mod command_line_server;
pub(crate) mod context;
pub(crate) mod file;
pub(crate) mod file_error;
pub(crate) mod follow;
pub(crate) mod input_prompt;
pub(crate) mod locate;
pub(crate) mod lock;
pub(crate) mod lock_mode;
pub(crate) mod project_trust;
pub(crate) mod refusal;
pub(crate) mod start_text;
pub(crate) mod user_secrets;
pub(crate) mod views;
