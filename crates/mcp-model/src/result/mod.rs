//! Results: their kinds, tool calls and their content blocks, tasks, and completions.

pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod content;
pub(crate) mod kind;
pub(crate) mod task;
