//! One violation of a schema.

/// One violation of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}{}{message}", if .pointer.is_empty() { "" } else { ": " })]
#[non_exhaustive]
pub struct SchemaViolation {
    /// What the schema expects. Never contains the actual value.
    pub message: String,
    /// JSON pointer to the value; empty for the whole value.
    pub pointer: String,
}

impl SchemaViolation {
    /// A violation by the value as a whole.
    pub(super) fn of_whole_value(message: impl Into<String>) -> SchemaViolation {
        SchemaViolation { message: message.into(), pointer: String::new() }
    }
}
