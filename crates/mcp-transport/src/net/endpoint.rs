//! An HTTP endpoint, which all connections to it share.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp_host_model::UrlEndpoint;
use url::Url;

use super::authorization::Authorization;
use super::headers;
use super::tls::Authorities;
use super::url_endpoint::{self, UrlOptions};
use crate::error::ConnectError;
use crate::redact::Redactor;

/// The URL of a server with its headers and limits.
pub(crate) struct HttpEndpoint {
    pub(crate) url: Url,
    /// Names the server in messages.
    pub(crate) label: String,
    /// The headers of a POST, without those of a session.
    pub(crate) headers: HeaderMap,
    /// Trusted in addition to the system's.
    pub(crate) authorities: Authorities,
    pub(crate) connect_timeout: Duration,
    /// Maximum silence of an event stream.
    pub(crate) stream_timeout: Duration,
    pub(crate) max_message_bytes: usize,
    pub(crate) redactor: Redactor,
    /// Provides the token of each request. `None` if an `Authorization` header or credentials in the URL are
    /// configured.
    pub(crate) authorization: Option<Arc<dyn Authorization>>,
}

impl HttpEndpoint {
    /// Checks the configuration. Does no I/O. No error message contains a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &UrlOptions) -> Result<HttpEndpoint, ConnectError> {
        if !matches!(endpoint.url.scheme(), "http" | "https") {
            return Err(ConnectError::Invalid(format!("{} is not an http or https URL", endpoint.label())));
        }
        let headers = headers::post_headers(endpoint)?;
        let is_authorized =
            headers.contains_key(AUTHORIZATION) || url_endpoint::basic_credentials(&endpoint.url).is_some();
        Ok(HttpEndpoint {
            url: endpoint.url.clone(),
            label: endpoint.label(),
            authorization: options.authorization.clone().filter(|_| !is_authorized),
            headers,
            authorities: options.authorities.clone(),
            connect_timeout: options.limits.connect,
            stream_timeout: options.limits.sse_read,
            max_message_bytes: options.limits.message_bytes,
            redactor: url_endpoint::redactor(endpoint, options),
        })
    }

    /// Whether all requests are waiting for a token or a login.
    pub(crate) fn is_awaiting_authorization(&self) -> bool {
        self.authorization.as_ref().is_some_and(|authorization| authorization.is_in_progress())
    }
}
