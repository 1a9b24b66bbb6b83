//! A tool in the form that a provider accepts.

use mcp_host_model::{RawJson, ServerId};
use serde::Serialize;

use crate::name::exposed_name::ExposedName;

/// A tool in the form that a provider accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProjectedTool {
    /// The exposed name.
    pub name: ExposedName,
    /// The server.
    pub server: ServerId,
    /// The description, a JSON string.
    pub description: Option<RawJson>,
    /// The JSON Schema of the arguments; `None` if there are no arguments and the provider requires that none are
    /// declared.
    pub schema: Option<RawJson>,
    /// Whether the schema differs from the server's, for example in bounds or descriptions.
    #[serde(skip)]
    pub is_adapted: bool,
    /// Why OpenAI's strict mode does not accept the schema. The function then has `strict: false`. `None` for other
    /// tools and for other providers.
    #[serde(skip)]
    pub not_strict: Option<String>,
}
