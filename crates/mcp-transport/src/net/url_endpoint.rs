//! The headers, credentials and secrets of a configured URL endpoint.
//!
//! No message contains a value. Header names are no secrets and may be printed.

use std::borrow::Cow;
#[cfg(any(feature = "http", feature = "sse"))]
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_host_model::{Limits, Secret, UrlEndpoint};
use percent_encoding::percent_decode_str;
use url::Url;

#[cfg(any(feature = "http", feature = "sse"))]
use super::authorization::Authorization;
use super::tls::Authorities;
use crate::error::ConnectError;
use crate::redact::Redactor;

/// A segment of a URL's path of at least this length may be a token, so it is redacted.
const MIN_TOKEN_SEGMENT: usize = 32;

/// The options of a transport, in addition to its URL endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct UrlOptions {
    pub(crate) limits: Limits,
    /// Trusted in addition to the system's.
    pub(crate) authorities: Authorities,
    /// Provides the token of each request.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub(crate) authorization: Option<Arc<dyn Authorization>>,
    /// Secrets to redact in addition to those of the endpoint.
    pub(crate) extra_secrets: Vec<Secret>,
}

/// Checks the configured headers. Those in `own` are omitted, because we set their value. One in `forbidden`
/// is an error.
pub(crate) fn configured_headers(
    endpoint: &UrlEndpoint,
    own: &[HeaderName],
    forbidden: &[HeaderName],
) -> Result<HeaderMap, ConnectError> {
    let mut res = HeaderMap::with_capacity(endpoint.headers.len() + 8);
    for (name, value) in &endpoint.headers {
        let Ok(header) = HeaderName::try_from(name.as_str()) else {
            return Err(ConnectError::Invalid(format!("{name:?} is not a valid header name")));
        };
        if forbidden.contains(&header) {
            return Err(ConnectError::Invalid(format!("the header {name} cannot be configured")));
        }
        if own.contains(&header) {
            continue;
        }
        // Bytes, so that text beyond ASCII is sent as UTF-8.
        let Ok(mut value) = HeaderValue::from_bytes(value.expose().as_bytes()) else {
            let message = format!("the value of the header {name} contains characters that are not allowed");
            return Err(ConnectError::Invalid(message));
        };
        value.set_sensitive(true);
        res.append(header, value);
    }
    Ok(res)
}

/// The credentials of a URL for basic authentication: `user:password` in base64. `None` if the URL has none.
pub(crate) fn basic_credentials(url: &Url) -> Option<String> {
    let (user, password) = (url.username(), url.password().unwrap_or_default());
    let is_present = !user.is_empty() || !password.is_empty();
    is_present.then(|| STANDARD.encode(format!("{}:{}", decode_percent(user), decode_percent(password))))
}

/// A redactor for the secrets of an endpoint and of its options.
pub(crate) fn redactor(endpoint: &UrlEndpoint, options: &UrlOptions) -> Redactor {
    let secrets: Vec<Secret> = secrets(endpoint);
    Redactor::new(secrets.iter().chain(&options.extra_secrets))
}

/// The secrets of an endpoint, which must not appear in a message: header values and their parts (a server may repeat a
/// token without its `Bearer`), the session id, and possible secrets in the URL.
pub(crate) fn secrets(endpoint: &UrlEndpoint) -> Vec<Secret> {
    let mut res = Vec::new();
    let values = endpoint.headers.iter().map(|(_, value)| value).chain(&endpoint.session_id);
    for value in values {
        res.push(value.clone());
        res.extend(value.expose().split_whitespace().map(Secret::from));
    }
    res.extend(endpoint.client_credentials.iter().map(|credentials| credentials.key.value().clone()));
    let url = &endpoint.url;
    let (user, password) = (url.username(), url.password().unwrap_or_default());
    res.extend([user, password].map(Secret::from));
    res.extend([user, password].map(|part| Secret::new(decode_percent(part))));
    res.extend(basic_credentials(url).map(Secret::new));
    res.extend(url.query().map(Secret::from));
    res.extend(url.query_pairs().map(|(_, value)| Secret::new(value)));
    let segments = url.path_segments().into_iter().flatten();
    res.extend(segments.filter(|segment| segment.len() >= MIN_TOKEN_SEGMENT).map(Secret::from));
    res
}

/// Decodes percent escapes.
fn decode_percent(part: &str) -> Cow<'_, str> {
    percent_decode_str(part).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_sc5_url_credentials_are_secrets_in_every_form() {
        let endpoint = UrlEndpoint::new(Url::parse("http://ghp_TOKEN:p%40ss+w0rd@host/").unwrap());
        let secrets = secrets(&endpoint);
        for text in ["ghp_TOKEN", "p%40ss+w0rd", "p@ss+w0rd", &STANDARD.encode("ghp_TOKEN:p@ss+w0rd")] {
            assert!(secrets.iter().any(|it| it.expose() == text), "{text}");
        }
    }

    #[test]
    fn configured_values_are_secrets() {
        let url = "https://user:password@example.com/0123456789abcdef0123456789abcdef?key=k%2Bvalue";
        let mut endpoint = UrlEndpoint::new(Url::parse(url).unwrap());
        endpoint.headers.push(("Authorization".to_owned(), Secret::from("Bearer token-1")));
        endpoint.session_id = Some(Secret::from("session-1"));
        let secrets: Vec<String> = secrets(&endpoint).iter().map(|it| it.expose().to_owned()).collect();
        for want in [
            "Bearer token-1",
            "token-1",
            "session-1",
            "password",
            "key=k%2Bvalue",
            "k+value",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert!(secrets.iter().any(|it| it == want), "{want} in {secrets:?}");
        }
    }
}
