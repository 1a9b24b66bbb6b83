//! Commands that call tools and get prompts.

pub(crate) mod approvals;
pub(crate) mod call;
mod elicitation;
pub(crate) mod prompt;
pub(crate) mod record;
pub(crate) mod shell;
pub(crate) mod tasks;
