//! Where a server is: what stays the same from connection to connection.

use std::time::Duration;

use http::HeaderMap;
use mcp_model::{Limits, UrlEndpoint};
use url::Url;

use super::headers;
use crate::ConnectError;
use crate::redact::Redactor;

/// A server's URL, with what is sent there and how long it may take.
pub(crate) struct Place {
    pub(crate) url: Url,
    pub(crate) label: String,
    /// The headers of a POST, with nothing of a session.
    pub(crate) post: HeaderMap,
    pub(crate) connect: Duration,
    pub(crate) sse_read: Duration,
    pub(crate) message_bytes: usize,
    pub(crate) redactor: Redactor,
}

impl Place {
    /// Checks what was configured; does nothing yet. No message of an error holds a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, limits: &Limits) -> Result<Place, ConnectError> {
        if !matches!(endpoint.url.scheme(), "http" | "https") {
            return Err(ConnectError::Invalid(format!("{} is no http or https URL", endpoint.label())));
        }
        Ok(Place {
            url: endpoint.url.clone(),
            label: endpoint.label(),
            post: headers::prepare(endpoint)?,
            connect: limits.connect,
            sse_read: limits.sse_read,
            message_bytes: limits.message_bytes,
            redactor: Redactor::new(headers::secrets(endpoint).iter()),
        })
    }
}
