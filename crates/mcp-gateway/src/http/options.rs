//! Options of the HTTP server, and the errors of its start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::access::oauth::{InvalidAuthUrl, ResourceServer};
use crate::access::tokens::Tokens;
use crate::http::request::client_address::TrustedProxies;

/// Options of the HTTP server.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The accepted tokens. Without any, which only loopback allows, every request is accepted, and all
    /// clients count as one: they share its limits and its dialogs. A session is still usable only with its
    /// id.
    pub tokens: Tokens,
    /// The access tokens of an authorization server, accepted in addition to `tokens`.
    pub resource_server: Option<ResourceServer>,
    /// Accepted values of `Host`, with or without a port, besides loopback names and the address itself.
    pub hosts: Vec<String>,
    /// Accepted values of `Origin` besides loopback origins. Only pages of these origins may read responses (CORS).
    pub origins: Vec<String>,
    /// The proxies whose headers name the addresses of clients, for the audit log and the log.
    pub trusted_proxies: TrustedProxies,
    /// The certificate and key for HTTPS; without them, the server speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The page that is appended to the gateway's own metrics at `/metrics`.
    pub metrics: Option<RecorderPage>,
}

/// Renders the page of this process's metrics recorder in the Prometheus text format. The page has the metrics of the
/// [gateway](crate::metrics) and of its [host](mcp_host_runtime::metrics).
#[derive(Clone)]
pub struct RecorderPage(Arc<dyn Fn() -> String + Send + Sync>);

impl RecorderPage {
    /// Calls `render` for each request.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> RecorderPage {
        RecorderPage(Arc::new(render))
    }

    /// Renders the current page.
    pub(crate) fn render(&self) -> String {
        (self.0)()
    }
}

impl fmt::Debug for RecorderPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecorderPage")
    }
}

/// The PEM files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificate, followed by its chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// The files at these paths.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> TlsFiles {
        TlsFiles { certificate: certificate.into(), key: key.into() }
    }
}

/// The reason why the HTTP server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is reachable from other machines, and there are no tokens.
    #[error("{0} is reachable from other machines, and no token is configured")]
    TokensRequired(SocketAddr),
    /// The public URL of the gateway is needed, or cannot be used for authorization.
    #[error("the public URL of the gateway is needed: {0}")]
    PublicUrl(#[source] InvalidAuthUrl),
    /// The address cannot be bound.
    #[error("cannot listen at {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The certificate's or the key's file cannot be read.
    #[error("cannot read {}", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The certificate and the key cannot be used together.
    #[error("the certificate cannot be used with its key")]
    Tls(#[source] rustls::Error),
}

impl ServeError {
    /// What the user can do about it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            ServeError::TokensRequired(_) => Some("configure tokens, or listen at 127.0.0.1 or [::1]"),
            ServeError::PublicUrl(_) => {
                Some("give the URL that clients use, such as https://tools.example/mcp, with `--resource`")
            }
            ServeError::Bind { .. } => Some("with port 0 the system chooses a free port"),
            ServeError::TlsFile { .. } | ServeError::Tls(_) => {
                Some("both files are PEM: the certificate with its chain, and its unencrypted private key")
            }
        }
    }
}
