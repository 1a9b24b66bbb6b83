//! Streamable HTTP for many clients at once, with sessions and without, at `/mcp` and `/mcp/SERVER`.
//!
//! Everything a client may do is bounded: how long his head and his body take, how large they are, how many connections
//! and requests there are, how long he may read nothing. Pages of other sites do not get in (`Host` and `Origin`), and
//! off loopback nobody without a token.

mod answering;
mod cors;
mod delete;
mod events;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod get;
mod guard;
mod headers;
mod health;
mod line;
mod listen;
mod metrics;
mod modern;
mod paced;
mod post;
mod routes;
mod server;
mod tls;
mod wire;
mod worker;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::access::tokens::Tokens;

pub use server::HttpServer;

/// The header in which a client without sessions names its dialog.
pub const DIALOG_HEADER: &str = "Mcp-Host-Dialog";

/// How the gateway is served over HTTP.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// Who comes in; everybody where there are none, which only loopback allows. All who come without a token are one
    /// client: they share its bounds, and a dialog of one name is one dialog for all of them. Sessions are still known
    /// only to those who have their ids.
    pub tokens: Tokens,
    /// The names that `Host` may hold besides those of loopback and the address itself, with or without a port.
    pub hosts: Vec<String>,
    /// The values that `Origin` may hold besides those of loopback. Pages of these, and of no others, may also read the
    /// answers (CORS).
    pub origins: Vec<String>,
    /// Serves HTTPS with these.
    pub tls: Option<TlsFiles>,
    /// What `/metrics` says besides the gateway's own figures.
    pub metrics: Option<MoreMetrics>,
}

/// More figures, in the text format of Prometheus, made when somebody asks: those of the recorder of the
/// [`metrics`](mcp_host::metrics) facade that a process has installed. Their names must not begin with `mcp_gateway_`,
/// nor be `mcp_host_problems` or `mcp_host_server_state`.
#[derive(Clone)]
pub struct MoreMetrics(Arc<dyn Fn() -> String + Send + Sync>);

impl MoreMetrics {
    /// Asks `page` each time.
    pub fn new(page: impl Fn() -> String + Send + Sync + 'static) -> MoreMetrics {
        MoreMetrics(Arc::new(page))
    }

    fn page(&self) -> String {
        (self.0)()
    }
}

impl fmt::Debug for MoreMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MoreMetrics")
    }
}

/// A certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// A PEM file with the certificate, and those that it leans on behind it.
    pub certificate: PathBuf,
    /// A PEM file with its private key.
    pub key: PathBuf,
}

/// Why the gateway cannot be served over HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Others could reach the address, and there is no token to keep them out.
    #[error("{0} can be reached from other machines, and no token keeps them out")]
    Open(SocketAddr),
    /// The address cannot be listened at.
    #[error("cannot listen at {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A file of the certificate or its key cannot be read.
    #[error("cannot read {}", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The certificate and the key are no pair that can be used.
    #[error("the certificate cannot be used with its key")]
    Tls(#[source] rustls::Error),
}

impl ServeError {
    /// What to do about it, where there is something.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            ServeError::Open(_) => Some("give tokens, or listen at 127.0.0.1 or [::1]"),
            ServeError::Bind { .. } => Some("port 0 takes any port that is free"),
            ServeError::TlsFile { .. } | ServeError::Tls(_) => {
                Some("both files are PEM: the certificate with its chain, and its unencrypted private key")
            }
        }
    }
}
