//! One violation of a schema.

/// One violation of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}{}{message}", if .pointer.is_empty() { "" } else { ": " })]
#[non_exhaustive]
pub struct SchemaViolation {
    /// What the schema expects; never the value that was given.
    pub message: String,
    /// JSON pointer to the value; empty for the whole value.
    pub pointer: String,
}

impl SchemaViolation {
    pub(super) fn whole(message: impl Into<String>) -> SchemaViolation {
        SchemaViolation { message: message.into(), pointer: String::new() }
    }
}
