//! Where a server is: what stays the same from connection to connection.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp_model::UrlEndpoint;
use url::Url;

use super::authorization::Authorization;
use super::tls::Authorities;
use super::{headers, url_endpoint};
use crate::dial::options::DialOptions;
use crate::error::ConnectError;
use crate::redact::Redactor;

/// A server's URL, with what is sent there and how long it may take.
pub(crate) struct HttpEndpoint {
    pub(crate) url: Url,
    pub(crate) label: String,
    /// The headers of a POST, with nothing of a session.
    pub(crate) headers: HeaderMap,
    /// Trusted besides the system's.
    pub(crate) authorities: Authorities,
    pub(crate) connect_timeout: Duration,
    pub(crate) stream_timeout: Duration,
    pub(crate) max_message_bytes: usize,
    pub(crate) redactor: Redactor,
    /// Who gives requests their token. A configured `Authorization`, or a user in the URL, stands instead of it.
    pub(crate) authorization: Option<Arc<dyn Authorization>>,
}

impl HttpEndpoint {
    /// Checks what was configured; does nothing yet. No message of an error holds a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<HttpEndpoint, ConnectError> {
        if !matches!(endpoint.url.scheme(), "http" | "https") {
            return Err(ConnectError::Invalid(format!("{} is no http or https URL", endpoint.label())));
        }
        let post = headers::post_headers(endpoint)?;
        let own =
            post.contains_key(AUTHORIZATION) || url_endpoint::basic_credentials(&endpoint.url).is_some();
        Ok(HttpEndpoint {
            url: endpoint.url.clone(),
            label: endpoint.label(),
            authorization: options.authorization.clone().filter(|_| !own),
            headers: post,
            authorities: options.authorities.clone(),
            connect_timeout: options.limits.connect,
            stream_timeout: options.limits.sse_read,
            max_message_bytes: options.limits.message_bytes,
            redactor: Redactor::new(
                url_endpoint::secrets(endpoint)
                    .into_iter()
                    .chain(options.all_extra_secrets())
                    .collect::<Vec<_>>()
                    .iter(),
            ),
        })
    }

    /// Does everything wait for its authorization at this moment?
    pub(crate) fn is_awaiting_authorization(&self) -> bool {
        self.authorization.as_ref().is_some_and(|it| it.is_in_progress())
    }
}
