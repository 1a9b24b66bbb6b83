//! The error of an edit.

use mcp_host_model::Dialect;

/// The reason why a file was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// A mistake prevents reading the whole file.
    #[error("line {line} prevents editing the file: {message}")]
    InvalidFile {
        /// The line of the mistake, from 1.
        line: usize,
        /// The mistake.
        message: String,
    },
    /// No server has this name.
    #[error("there is no server '{name}'")]
    NoSuchServer {
        /// The name.
        name: String,
        /// The existing names.
        names: Vec<String>,
    },
    /// The server is a comment, as [`set_enabled`](crate::set_enabled()) writes it for some programs.
    #[error("the server '{name}' is a comment")]
    CommentedOut {
        /// The name.
        name: String,
    },
    /// The server has no such field, or no such item in it.
    #[error("the server '{server}' has no '{field}' to remove")]
    NoSuchField {
        /// The name of the server.
        server: String,
        /// The field.
        field: String,
    },
    /// The list has no such item.
    #[error(
        "'{list}' of the server '{server}' has {len} items and no '{field}': count items from 0, or append one"
    )]
    NoSuchItem {
        /// The name of the server.
        server: String,
        /// The field of the item.
        field: String,
        /// The key of the list.
        list: String,
        /// The number of its items.
        len: usize,
    },
    /// A server has this name already.
    #[error("a server '{name}' already exists")]
    AlreadyExists {
        /// The name.
        name: String,
    },
    /// More than one server has this name.
    #[error("more than one server is named '{name}'")]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// The dialect cannot disable a server.
    #[error("a server of {} cannot be disabled, only removed", .0.as_str())]
    CannotDisable(Dialect),
    /// The program of the file obeys no key that disables a server.
    #[error("{program} obeys no key that disables a server; {own_way}")]
    NoDisablingKey {
        /// The program.
        program: &'static str,
        /// How the program itself disables a server.
        own_way: &'static str,
    },
    /// The servers of a session are part of a request, not of a file.
    #[error("the servers of an ACP session are part of a request, not of a file")]
    SessionRequest,
    /// The dialect cannot express the server.
    #[error("the server cannot be written there: {field}: {reason}")]
    Unsupported {
        /// The field.
        field: String,
        /// The reason.
        reason: String,
    },
    /// The edited file would have a new mistake.
    #[error("the edited file would have a mistake: {message}")]
    InvalidResult {
        /// The mistake.
        message: String,
    },
    /// The layout of the file is not supported.
    #[error("the file cannot be edited safely: {reason}")]
    UnsupportedLayout {
        /// What is not supported.
        reason: String,
    },
}
