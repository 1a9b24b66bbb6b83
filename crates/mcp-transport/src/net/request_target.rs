//! The target of a request, in the forms that HTTP needs, and the other parts of a request.

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri};
use url::{Position, Url};

/// A request without its URL.
#[derive(Clone, Copy)]
pub(crate) struct RequestParts<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Option<&'a Bytes>,
    /// Whether it belongs to an MCP session in which the server has responded before.
    pub(crate) in_established_session: bool,
}

impl<'a> RequestParts<'a> {
    /// A request of no session.
    pub(crate) fn new(
        method: &'a Method,
        headers: &'a HeaderMap,
        body: Option<&'a Bytes>,
    ) -> RequestParts<'a> {
        RequestParts { method, headers, body, in_established_session: false }
    }
}

/// A URL that requests are sent to, without credentials.
#[derive(Debug, Clone)]
pub(crate) struct RequestTarget {
    pub(crate) url: Url,
    /// The URIs of a request; an error if no request can be sent.
    uris: Result<RequestUris, String>,
}

/// The URL in the forms that HTTP needs.
#[derive(Debug, Clone)]
pub(super) struct RequestUris {
    /// `https://example.com/mcp`, for HTTP/2 and for proxies.
    pub(super) absolute: Uri,
    /// `/mcp`.
    pub(super) path: Uri,
}

impl RequestTarget {
    /// Creates a target from a URL, without its credentials and fragment: these are not sent.
    pub(crate) fn new(mut url: Url) -> RequestTarget {
        // Fails for URLs without a host, to which nothing is sent.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let uris = RequestUris::from_url(&url);
        RequestTarget { url, uris }
    }

    pub(super) fn uris(&self) -> Result<&RequestUris, &str> {
        self.uris.as_ref().map_err(String::as_str)
    }
}

impl RequestUris {
    fn from_url(url: &Url) -> Result<RequestUris, String> {
        let absolute = url[..Position::AfterQuery].parse::<Uri>().map_err(|error| error.to_string())?;
        let path = absolute.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        Ok(RequestUris { path: path.into(), absolute })
    }
}

/// Adds the `Host` header of a URL.
pub(super) fn insert_host(url: &Url, headers: &mut HeaderMap) {
    // Includes the port unless it is the default one. The host of a server's URL is valid in a header.
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    if let Ok(host) = HeaderValue::from_str(authority) {
        headers.insert(HOST, host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, whole: &str, path: &str, host: &str) {
        let target = RequestTarget::new(Url::parse(url).unwrap());
        let uris = target.uris().unwrap();
        let mut headers = HeaderMap::new();
        insert_host(&target.url, &mut headers);
        let got = (uris.absolute.to_string(), uris.path.to_string(), headers[HOST].to_str().unwrap());
        assert_eq!(got, (whole.to_owned(), path.to_owned(), host));
    }

    #[test]
    fn request_target_has_path_and_query_without_credentials() {
        check("http://example.com", "http://example.com/", "/", "example.com");
        check(
            "https://ann:hunter2@example.com:443/mcp?key=k#part",
            "https://example.com/mcp?key=k",
            "/mcp?key=k",
            "example.com",
        );
        check("http://[::1]:8080/a%20b?", "http://[::1]:8080/a%20b?", "/a%20b?", "[::1]:8080");
    }
}
