//! Results: of tool calls, with their content blocks, and of completions.

pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod content;
