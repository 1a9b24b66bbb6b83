//! Where a server is: what stays the same from connection to connection.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp_model::UrlEndpoint;
use url::Url;

use super::authorization::Authorization;
use super::tls::Authorities;
use super::{configured, headers};
use crate::dial::endpoint::DialOptions;
use crate::error::ConnectError;
use crate::redact::Redactor;

/// A server's URL, with what is sent there and how long it may take.
pub(crate) struct Place {
    pub(crate) url: Url,
    pub(crate) label: String,
    /// The headers of a POST, with nothing of a session.
    pub(crate) post: HeaderMap,
    /// Trusted besides the system's.
    pub(crate) authorities: Authorities,
    pub(crate) connect: Duration,
    pub(crate) sse_read: Duration,
    pub(crate) message_bytes: usize,
    pub(crate) redactor: Redactor,
    /// Who gives requests their token. A configured `Authorization`, or a user in the URL, stands instead of it.
    pub(crate) authorization: Option<Arc<dyn Authorization>>,
}

impl Place {
    /// Checks what was configured; does nothing yet. No message of an error holds a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<Place, ConnectError> {
        if !matches!(endpoint.url.scheme(), "http" | "https") {
            return Err(ConnectError::Invalid(format!("{} is no http or https URL", endpoint.label())));
        }
        let post = headers::prepare(endpoint)?;
        let own = post.contains_key(AUTHORIZATION) || configured::credentials(&endpoint.url).is_some();
        Ok(Place {
            url: endpoint.url.clone(),
            label: endpoint.label(),
            authorization: options.authorization.clone().filter(|_| !own),
            post,
            authorities: options.authorities.clone(),
            connect: options.limits.connect,
            sse_read: options.limits.sse_read,
            message_bytes: options.limits.message_bytes,
            redactor: Redactor::new(
                configured::secrets(endpoint)
                    .into_iter()
                    .chain(options.given_secrets())
                    .collect::<Vec<_>>()
                    .iter(),
            ),
        })
    }

    /// Does everything wait for its authorization at this moment?
    pub(crate) fn waits_for_authorization(&self) -> bool {
        self.authorization.as_ref().is_some_and(|it| it.is_under_way())
    }
}
