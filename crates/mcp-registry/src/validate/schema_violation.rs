//! One violation of a schema.

use std::fmt;

/// One violation of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaViolation {
    /// What the schema expects; never the value that was given.
    pub message: String,
    /// JSON pointer to the value; empty for the whole value.
    pub pointer: String,
}

impl std::error::Error for SchemaViolation {}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

impl SchemaViolation {
    pub(super) fn whole(message: impl Into<String>) -> SchemaViolation {
        SchemaViolation { message: message.into(), pointer: String::new() }
    }
}
