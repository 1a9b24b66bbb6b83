//! What a configuration says about requests to a server: headers, checked once, and who stands in the URL.
//!
//! Nothing here prints a value. A name may be printed, for a name is no secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_model::{Secret, UrlEndpoint};
use url::Url;

use crate::error::ConnectError;

/// Checks the configured headers. Those in `ours` are left out, for their value is ours to say; one in `refused` is an
/// error.
pub(crate) fn configured_headers(
    endpoint: &UrlEndpoint,
    ours: &[HeaderName],
    refused: &[HeaderName],
) -> Result<HeaderMap, ConnectError> {
    let mut res = HeaderMap::with_capacity(endpoint.headers.len() + 8);
    for (name, value) in &endpoint.headers {
        let Ok(header) = HeaderName::try_from(name.as_str()) else {
            return Err(ConnectError::Invalid(format!("{name:?} is no name of a header")));
        };
        if refused.contains(&header) {
            return Err(ConnectError::Invalid(format!("the header {name} cannot be configured")));
        }
        if ours.contains(&header) {
            continue;
        }
        // Bytes, so that text beyond ASCII passes as UTF-8.
        let Ok(mut value) = HeaderValue::from_bytes(value.expose().as_bytes()) else {
            let message = format!("the value of the header {name} holds characters that no header can");
            return Err(ConnectError::Invalid(message));
        };
        value.set_sensitive(true);
        res.append(header, value);
    }
    Ok(res)
}

/// The user and password in a URL as basic authentication has them: `user:password`, in base64. `None` where the URL
/// has neither.
pub(crate) fn basic_credentials(url: &Url) -> Option<String> {
    let (user, password) = (url.username(), url.password().unwrap_or_default());
    let given = !user.is_empty() || !password.is_empty();
    given.then(|| STANDARD.encode(format!("{}:{}", percent_decoded(user), percent_decoded(password))))
}

/// Everything that was configured and must not come back in a message: values of headers and the parts of them (a
/// server may repeat a token without its `Bearer`), the session id, and what in the URL may be a secret.
pub(crate) fn secrets(endpoint: &UrlEndpoint) -> Vec<Secret> {
    let mut res = Vec::new();
    let values = endpoint.headers.iter().map(|(_, value)| value).chain(&endpoint.session_id);
    for value in values {
        res.push(value.clone());
        res.extend(value.expose().split_whitespace().map(Secret::from));
    }
    let url = &endpoint.url;
    let (user, password) = (url.username(), url.password().unwrap_or_default());
    res.extend([user, password].map(Secret::from));
    res.extend([user, password].map(|it| Secret::new(percent_decoded(it))));
    res.extend(basic_credentials(url).map(Secret::new));
    res.extend(url.query().map(Secret::from));
    res.extend(url.query_pairs().map(|(_, value)| Secret::new(value)));
    res.extend(url.path_segments().into_iter().flatten().filter(|it| it.len() >= 32).map(Secret::from));
    res
}

/// The escapes are those of a form's value, in which two more characters mean something.
fn percent_decoded(part: &str) -> String {
    let value = format!("={}", part.replace('+', "%2B").replace('&', "%26"));
    let pair = url::form_urlencoded::parse(value.as_bytes()).next().map(|(_, value)| value.into_owned());
    pair.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_sc5_who_stands_in_the_url_is_a_secret_in_every_form() {
        let endpoint = UrlEndpoint::new(Url::parse("http://ghp_TOKEN:p%40ss+w0rd@host/").unwrap());
        let secrets = secrets(&endpoint);
        for text in ["ghp_TOKEN", "p%40ss+w0rd", "p@ss+w0rd", &STANDARD.encode("ghp_TOKEN:p@ss+w0rd")] {
            assert!(secrets.iter().any(|it| it.expose() == text), "{text}");
        }
    }

    #[test]
    fn what_was_configured_is_known_as_secret() {
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
