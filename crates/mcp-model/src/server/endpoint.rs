//! A server with every value resolved: what a transport needs to connect, and nothing else.

use url::Url;

use crate::server::secret::Secret;
use crate::server::spec::{EnvInherit, SseFallback, TransportKind};

/// Where a server is, ready to be connected to.
#[derive(Debug, Clone, PartialEq)]
pub enum Endpoint {
    /// A child process.
    Stdio(StdioEndpoint),
    /// HTTP with server-sent events, 2024-11-05.
    Sse(UrlEndpoint),
    /// WebSocket.
    WebSocket(UrlEndpoint),
    /// Streamable HTTP.
    Http(UrlEndpoint),
}

impl Endpoint {
    /// Which of the four it is.
    pub fn kind(&self) -> TransportKind {
        match self {
            Endpoint::Stdio(_) => TransportKind::Stdio,
            Endpoint::Sse(_) => TransportKind::Sse,
            Endpoint::WebSocket(_) => TransportKind::WebSocket,
            Endpoint::Http(_) => TransportKind::Http,
        }
    }

    /// What a message may call this endpoint: the command, or the URL without what may be secret in it.
    pub fn label(&self) -> String {
        match self {
            Endpoint::Stdio(it) => it.command.clone(),
            Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => it.label(),
        }
    }
}

/// A child process to start.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioEndpoint {
    /// The program: a name looked up on `PATH`, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<Secret>,
    /// Variables set in its environment on top of what it inherits; a later one wins over an earlier one.
    pub env: Vec<(String, Secret)>,
    /// What it inherits of our environment.
    pub inherit: EnvInherit,
    /// Its working directory; ours where `None`.
    pub cwd: Option<std::path::PathBuf>,
    /// WHATWG label of the encoding of its standard streams.
    pub encoding: String,
}

impl StdioEndpoint {
    /// The program with no arguments, the safe environment, our working directory, and UTF-8.
    pub fn new(command: impl Into<String>) -> StdioEndpoint {
        StdioEndpoint {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit: EnvInherit::Safe,
            cwd: None,
            encoding: "utf-8".to_owned(),
        }
    }
}

/// A URL to connect to.
#[derive(Clone, PartialEq)]
pub struct UrlEndpoint {
    /// Where the server is.
    pub url: Url,
    /// Headers sent with each request; names are valid header names, values hold no CR, LF or NUL.
    pub headers: Vec<(String, Secret)>,
    /// A session id to use from the first request on, without `initialize`.
    pub session_id: Option<Secret>,
    /// End the session with `DELETE` when it is closed.
    pub terminate_on_close: bool,
    /// May server-sent events of 2024-11-05 be tried at this URL, where Streamable HTTP is not spoken there? Means
    /// something for [`Endpoint::Http`] only.
    pub sse_fallback: SseFallback,
}

impl UrlEndpoint {
    /// The URL with no headers of its own, its session ended on close, and no other transport tried.
    pub fn new(url: Url) -> UrlEndpoint {
        UrlEndpoint {
            url,
            headers: Vec::new(),
            session_id: None,
            terminate_on_close: true,
            sse_fallback: SseFallback::Never,
        }
    }

    /// The URL's scheme, host and port, and its path: no user, password, query or fragment. Segments of the path
    /// that look like a token (32 bytes or more) are shown as `***`.
    pub fn label(&self) -> String {
        let mut res = format!("{}://{}", self.url.scheme(), self.url.host_str().unwrap_or_default());
        if let Some(port) = self.url.port() {
            res.push_str(&format!(":{port}"));
        }
        for segment in self.url.path().split('/').skip(1) {
            res.push('/');
            res.push_str(if segment.len() >= 32 { "***" } else { segment });
        }
        res
    }
}

impl std::fmt::Debug for UrlEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlEndpoint")
            .field("url", &self.label())
            .field("headers", &self.headers)
            .field("terminate_on_close", &self.terminate_on_close)
            .field("sse_fallback", &self.sse_fallback)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_and_a_debug_print_hold_no_secret() {
        let url = "https://user:pw@example.com:8443/mcp/0123456789abcdef0123456789abcdef?token=t#f";
        let mut endpoint = UrlEndpoint::new(Url::parse(url).unwrap());
        endpoint.headers.push(("Authorization".into(), Secret::new("Bearer b")));
        assert_eq!(endpoint.label(), "https://example.com:8443/mcp/***");
        assert_eq!(
            format!("{endpoint:?}"),
            "UrlEndpoint { url: \"https://example.com:8443/mcp/***\", headers: [(\"Authorization\", ***)], \
             terminate_on_close: true, sse_fallback: Never, .. }"
        );
    }
}
