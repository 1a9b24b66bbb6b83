//! The header names of MCP and of the gateway, and access to header values.

use http::{HeaderMap, HeaderName};
use mcp_host_model::RpcError;

use crate::http::reply::errors::invalid_request;

pub(crate) static MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) static MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) static MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) static MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(crate) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// [`DIALOG_HEADER`](crate::protocol::meta::DIALOG_HEADER).
pub(crate) static MCP_HOST_DIALOG: HeaderName = HeaderName::from_static("mcp-host-dialog");
/// The headers that select, in the order of [`SELECTIONS`](crate::access::scope::SELECTIONS).
pub(crate) static MCP_HOST_SELECTIONS: [HeaderName; 5] = [
    HeaderName::from_static("mcp-host-servers"),
    HeaderName::from_static("mcp-host-tools"),
    HeaderName::from_static("mcp-host-prompts"),
    HeaderName::from_static("mcp-host-resources"),
    HeaderName::from_static("mcp-host-hints"),
];

/// The first value of a header, if it is visible ASCII.
pub(crate) fn first_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The value of a header that must not be repeated and must be visible ASCII.
pub(crate) fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, RpcError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    // Fast path: most requests repeat no header.
    let is_repeated = headers.len() > headers.keys_len() && headers.get_all(name).iter().nth(1).is_some();
    match (value.to_str(), is_repeated) {
        (Ok(text), false) => Ok(Some(text)),
        (Ok(_), true) => Err(invalid_request(&format!("the header `{name}` is repeated"))),
        (Err(_), _) => Err(invalid_request(&format!("the header `{name}` is not visible ASCII"))),
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, HOST, ORIGIN};
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn repeated_and_unreadable_headers_are_errors() {
        let mut headers = HeaderMap::new();
        headers.append(HOST, HeaderValue::from_static("a"));
        headers.append(ACCEPT, HeaderValue::from_static("b"));
        headers.append(ACCEPT, HeaderValue::from_static("c"));
        headers.append(ORIGIN, HeaderValue::from_bytes("é".as_bytes()).unwrap());
        let only_value = |name: &HeaderName| only_value(&headers, name).map_err(|error| error.message);
        assert_eq!((first_value(&headers, &HOST), only_value(&HOST)), (Some("a"), Ok(Some("a"))));
        let repeated = "the header `accept` is repeated".to_owned();
        assert_eq!((first_value(&headers, &ACCEPT), only_value(&ACCEPT)), (Some("b"), Err(repeated)));
        let unreadable = "the header `origin` is not visible ASCII".to_owned();
        assert_eq!((first_value(&headers, &ORIGIN), only_value(&ORIGIN)), (None, Err(unreadable)));
        assert_eq!((first_value(&headers, &MCP_NAME), only_value(&MCP_NAME)), (None, Ok(None)));
    }
}
