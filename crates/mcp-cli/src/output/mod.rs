//! What the program writes, and how it looks.
//!
//! Everything that comes from a server is a stranger's: it passes [`plain`] before a terminal sees it.

pub(crate) mod cause;
pub(crate) mod console;
pub(crate) mod json;
pub(crate) mod paint;
pub(crate) mod plain;
pub(crate) mod progress;
pub(crate) mod table;
