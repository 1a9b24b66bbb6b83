//! A resolved server: everything that a transport needs to connect.

use url::Url;

use crate::server::credentials::{ClientCredentials, ClientGrant};
use crate::server::secret::Secret;
use crate::server::spec::{SseFallback, TransportKind};
use crate::server::stdio_endpoint::StdioEndpoint;

/// A resolved address of a server.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "mcp-transport dials each form; a wildcard would hide one")]
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
    /// Returns the kind of transport.
    pub fn kind(&self) -> TransportKind {
        match self {
            Endpoint::Stdio(_) => TransportKind::Stdio,
            Endpoint::Sse(_) => TransportKind::Sse,
            Endpoint::WebSocket(_) => TransportKind::WebSocket,
            Endpoint::Http(_) => TransportKind::Http,
        }
    }

    /// Returns the URL; `None` for a child process.
    pub fn url(&self) -> Option<&Url> {
        match self {
            Endpoint::Stdio(_) => None,
            Endpoint::Sse(endpoint) | Endpoint::WebSocket(endpoint) | Endpoint::Http(endpoint) => {
                Some(&endpoint.url)
            }
        }
    }

    /// Returns whether each user needs a connection of its own, because the host exchanges the user's token for it.
    pub fn is_per_user(&self) -> bool {
        match self {
            Endpoint::Http(url) | Endpoint::Sse(url) => {
                url.client_credentials.as_ref().is_some_and(|it| it.grant == ClientGrant::TokenExchange)
            }
            Endpoint::Stdio(_) | Endpoint::WebSocket(_) => false,
        }
    }

    /// Returns the name of the command if its first start downloads a package or an image: `npx`.
    pub fn package_launcher(&self) -> Option<&str> {
        const LAUNCHERS: [&str; 7] = ["npx", "bunx", "uvx", "pipx", "docker", "podman", "deno"];
        match self {
            Endpoint::Stdio(stdio) => {
                let name = stdio.command.rsplit('/').next().unwrap_or_default();
                LAUNCHERS.contains(&name).then_some(name)
            }
            Endpoint::Sse(_) | Endpoint::WebSocket(_) | Endpoint::Http(_) => None,
        }
    }

    /// Returns a name for messages: the command, or the URL without its secret parts.
    pub fn label(&self) -> String {
        match self {
            Endpoint::Stdio(stdio) => stdio.command.clone(),
            Endpoint::Sse(url) | Endpoint::WebSocket(url) | Endpoint::Http(url) => url.label(),
        }
    }
}

/// A URL to connect to.
#[derive(derive_more::Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UrlEndpoint {
    /// The URL.
    #[debug("{:?}", self.label())]
    pub url: Url,
    /// Headers of each request. Names are valid header names; values contain no CR, LF or NUL.
    pub headers: Vec<(String, Secret)>,
    /// A session id to use from the first request on, without `initialize`.
    #[debug(skip)]
    pub session_id: Option<Secret>,
    /// The credentials with which the host obtains tokens.
    #[debug(skip)]
    pub client_credentials: Option<ClientCredentials<Secret>>,
    /// Whether the session is ended with `DELETE` on close.
    pub terminate_on_close: bool,
    /// Whether the transport of 2024-11-05 is tried if the server does not support Streamable HTTP. Applies to
    /// [`Endpoint::Http`] only.
    pub sse_fallback: SseFallback,
}

impl UrlEndpoint {
    /// Creates an endpoint without headers. Its session is ended on close, and no other transport is tried.
    pub fn new(url: Url) -> UrlEndpoint {
        UrlEndpoint {
            url,
            headers: Vec::new(),
            session_id: None,
            client_credentials: None,
            terminate_on_close: true,
            sse_fallback: SseFallback::Never,
        }
    }

    /// Returns scheme, host, port and path: no user, password, query or fragment. Path segments of 32 bytes or more
    /// may be tokens and are replaced by `***`.
    pub fn label(&self) -> String {
        let mut label = format!("{}://{}", self.url.scheme(), self.url.host_str().unwrap_or_default());
        if let Some(port) = self.url.port() {
            label.push_str(&format!(":{port}"));
        }
        for segment in self.url.path().split('/').skip(1) {
            label.push('/');
            label.push_str(if segment.len() >= 32 { "***" } else { segment });
        }
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_and_debug_contain_no_secret() {
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
