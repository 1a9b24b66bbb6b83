//! Failures of the network below HTTP: TCP, TLS and proxies.

/// Why a connection could not be opened, or failed. The text continues a sentence about the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetFailure {
    /// TLS failed.
    #[error("TLS failed: {}", tls_text(.failure, .detail))]
    Tls {
        /// The known failure, if it is one.
        failure: Option<TlsFailure>,
        /// The details.
        detail: String,
    },
    /// The port speaks TLS, although the URL does not. Contains the failure of the connection without TLS.
    #[error("the port speaks TLS ({0})")]
    SpeaksTls(String),
    /// The proxy cannot be used, or refuses the connection.
    #[error("{0}")]
    Proxy(String),
    /// The connection to a proxy failed.
    #[error("{proxy}: {failure}")]
    ProxyConnection {
        /// The proxy: `the proxy proxy.example:3128`.
        proxy: String,
        /// The failure.
        failure: Box<NetFailure>,
    },
    /// Any other failure.
    #[error("{0}")]
    Other(String),
}

impl NetFailure {
    /// Whether a failed connection with TLS shows that the other end speaks TLS, for example by its certificate.
    #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
    pub(crate) fn is_from_tls_server(&self) -> bool {
        match self {
            NetFailure::Tls { failure, .. } => {
                !matches!(failure, Some(TlsFailure::NotTls | TlsFailure::NoAuthorities))
            }
            NetFailure::SpeaksTls(_)
            | NetFailure::Proxy(_)
            | NetFailure::ProxyConnection { .. }
            | NetFailure::Other(_) => false,
        }
    }

    /// What the user can try.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            NetFailure::Tls { failure: Some(failure), .. } => failure.help(),
            NetFailure::SpeaksTls(_) => HTTPS_HELP,
            NetFailure::ProxyConnection { failure, .. } => match &**failure {
                NetFailure::Tls { failure: Some(failure), .. } => failure.help(),
                _ => PROXY_HELP,
            },
            NetFailure::Proxy(_) => PROXY_HELP,
            NetFailure::Tls { failure: None, .. } | NetFailure::Other(_) => UNREACHABLE_HELP,
        }
    }
}

/// Help for a URL without TLS whose port speaks TLS.
pub(crate) const HTTPS_HELP: &str = "write https:// instead of http:// in the URL (wss:// instead of ws://)";

/// Help for a server that cannot be reached.
pub(crate) const UNREACHABLE_HELP: &str =
    "check that the server is running, and that host and port are correct";

const PROXY_HELP: &str =
    "check the proxy in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; NO_PROXY lists the hosts that need no proxy";

fn tls_text(failure: &Option<TlsFailure>, detail: &str) -> String {
    match failure {
        Some(failure) => format!("{failure} ({detail})"),
        None => detail.to_owned(),
    }
}

impl From<&str> for NetFailure {
    fn from(message: &str) -> NetFailure {
        NetFailure::Other(message.to_owned())
    }
}

/// A TLS failure that the user can do something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFailure {
    /// No trusted authority has issued the certificate.
    #[error("no trusted authority has issued the certificate")]
    UnknownIssuer,
    /// The certificate is self-signed and marked as an authority. It is refused even if it is trusted.
    #[error("the certificate is self-signed and marked as an authority")]
    AuthorityAsServer,
    /// `SSL_CERT_FILE` or `SSL_CERT_DIR` names nothing that can be used.
    #[error("no certificate authority can be read")]
    NoAuthorities,
    /// The certificate is for another name.
    #[error("the certificate is for another name")]
    WrongName,
    /// The certificate has expired.
    #[error("the certificate has expired")]
    Expired,
    /// The certificate is not valid yet.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// The certificate was revoked.
    #[error("the certificate was revoked")]
    Revoked,
    /// The server does not speak TLS.
    #[error("the server does not speak TLS")]
    NotTls,
    /// Client and server have no TLS version or cipher in common.
    #[error("client and server have no TLS version or cipher in common")]
    NoCommonVersion,
    /// The server requires a client certificate.
    #[error("the server requires a client certificate")]
    ClientCertificateRequired,
}

impl TlsFailure {
    /// What the user can try.
    fn help(self) -> &'static str {
        match self {
            TlsFailure::UnknownIssuer => {
                "if the server is yours or your company's, name a PEM file with the authority that issued its \
                 certificate (the certificate itself if it is self-signed) in \
                 the environment variable SSL_CERT_FILE (it replaces the system's authorities), or let the system \
                 trust it; a program passes it to `ConnectionOptions::authorities`"
            }
            TlsFailure::AuthorityAsServer => {
                "trusting it does not help: issue a certificate that is no authority (with openssl: \
                 `-addext basicConstraints=critical,CA:FALSE`; `mkcert` issues one too), and name it, or the \
                 authority that issued it, in the environment variable SSL_CERT_FILE"
            }
            TlsFailure::NoAuthorities => {
                "correct SSL_CERT_FILE and SSL_CERT_DIR (a PEM file, a folder of PEM files), or unset both to use the \
                 system's authorities; if there are none, install the package `ca-certificates`"
            }
            TlsFailure::WrongName => {
                "use the name of the certificate in the URL, or get a certificate for the name in the URL"
            }
            TlsFailure::Expired => "renew the server's certificate; if it is new, check this machine's clock",
            TlsFailure::NotYetValid => "check this machine's clock",
            TlsFailure::Revoked => "get a new certificate for the server, and do not trust this one",
            TlsFailure::NotTls => "check the port; if the server has no TLS, use http:// or ws:// in the URL",
            TlsFailure::NoCommonVersion => "enable TLS 1.2 or 1.3 in the server",
            TlsFailure::ClientCertificateRequired => {
                "client certificates are not supported: use another authorization"
            }
        }
    }
}
