//! Where requests go at a server: a URL, read once into what a request line holds.

use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Uri};
use url::{Position, Url};

/// A URL that requests are sent to. It names no user.
#[derive(Debug, Clone)]
pub(crate) struct RequestTarget {
    url: Url,
    /// What is asked for, or why nothing can be.
    uris: Result<RequestUris, String>,
}

#[derive(Debug, Clone)]
pub(super) struct RequestUris {
    /// `https://example.com/mcp`, for HTTP/2 and for proxies.
    pub(super) absolute: Uri,
    /// `/mcp`.
    pub(super) path: Uri,
}

impl RequestTarget {
    /// A user or a fragment is not sent.
    pub(crate) fn new(mut url: Url) -> RequestTarget {
        // It fails for URLs without a host, which are not sent to.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let uris = RequestUris::of(&url);
        RequestTarget { url, uris }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn uris(&self) -> Result<&RequestUris, &str> {
        self.uris.as_ref().map_err(String::as_str)
    }
}

impl RequestUris {
    fn of(url: &Url) -> Result<RequestUris, String> {
        let uri = url[..Position::AfterQuery].parse::<Uri>().map_err(|it| it.to_string())?;
        let path = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        Ok(RequestUris { path: path.into(), absolute: uri })
    }
}

/// Names the host in a message's headers.
pub(super) fn insert_host(url: &Url, headers: &mut HeaderMap) {
    // With its port where that is not the usual one. The URL of a server has a host that a header can hold.
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
        insert_host(target.url(), &mut headers);
        let got = (uris.absolute.to_string(), uris.path.to_string(), headers[HOST].to_str().unwrap());
        assert_eq!(got, (whole.to_owned(), path.to_owned(), host));
    }

    #[test]
    fn a_request_line_has_the_path_and_the_query_and_nobodys_name() {
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
