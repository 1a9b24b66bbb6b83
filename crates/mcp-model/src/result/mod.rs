//! Results: their kinds, those of tool calls with their content blocks, of tasks, and of completions.

pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod content;
pub(crate) mod kind;
pub(crate) mod task;
