//! Commands that call tools.

pub(crate) mod call;
pub(crate) mod record;
pub(crate) mod shell;
pub(crate) mod tasks;
