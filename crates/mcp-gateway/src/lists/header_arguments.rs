//! Header arguments: the arguments of a tool that its calls repeat in headers, so that a proxy can route by them.

use http::HeaderName;
use mcp_host_model::RawJson;
use memchr::memmem;

use crate::protocol::json_splice;

/// An argument that a request repeats in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderArgument {
    pub(crate) argument: String,
    pub(crate) header: HeaderName,
    /// The name of the header for messages, with capital letters.
    pub(crate) label: String,
}

/// The arguments that a schema marks with `x-mcp-header`.
pub fn header_arguments(schema: &RawJson) -> Vec<HeaderArgument> {
    // Fast path: most schemas mark none.
    if memmem::find(schema.as_bytes(), b"x-mcp-header").is_none() {
        return Vec::new();
    }
    let properties = json_splice::member(schema, "properties").unwrap_or_else(RawJson::empty_object);
    let marked = json_splice::members(&properties).into_iter().filter_map(|(name, property)| {
        let suffix = json_splice::member(&property, "x-mcp-header")?;
        let suffix = suffix.to_text()?;
        // A suffix that cannot be part of a header name cannot be sent, so it is not required.
        let header = HeaderName::try_from(format!("mcp-param-{suffix}")).ok()?;
        Some(HeaderArgument { argument: name.into_owned(), header, label: format!("Mcp-Param-{suffix}") })
    });
    marked.collect()
}
