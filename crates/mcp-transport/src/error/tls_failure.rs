//! TLS failures with a known remedy, recognized by their message.

/// Start of a message about a TLS failure.
pub(crate) const TLS_FAILED: &str = "TLS failed: ";

/// A TLS failure that the user can do something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsFailure {
    UnknownIssuer,
    /// A self-signed certificate that is marked as an authority. It is refused even if it is trusted.
    AuthorityAsServer,
    /// `SSL_CERT_FILE` or `SSL_CERT_DIR` names nothing that can be used.
    NoAuthorities,
    WrongName,
    Expired,
    NotYetValid,
    Revoked,
    NotTls,
    NoCommonVersion,
    ClientCertificateRequired,
}

impl TlsFailure {
    const ALL: [TlsFailure; 10] = [
        TlsFailure::UnknownIssuer,
        TlsFailure::AuthorityAsServer,
        TlsFailure::NoAuthorities,
        TlsFailure::WrongName,
        TlsFailure::Expired,
        TlsFailure::NotYetValid,
        TlsFailure::Revoked,
        TlsFailure::NotTls,
        TlsFailure::NoCommonVersion,
        TlsFailure::ClientCertificateRequired,
    ];

    pub(crate) fn message(self) -> &'static str {
        match self {
            TlsFailure::UnknownIssuer => "no trusted authority has issued the certificate",
            TlsFailure::AuthorityAsServer => "the certificate is self-signed and marked as an authority",
            TlsFailure::NoAuthorities => "no certificate authority can be read",
            TlsFailure::WrongName => "the certificate is for another name",
            TlsFailure::Expired => "the certificate has expired",
            TlsFailure::NotYetValid => "the certificate is not valid yet",
            TlsFailure::Revoked => "the certificate was revoked",
            TlsFailure::NotTls => "the server does not speak TLS",
            TlsFailure::NoCommonVersion => "client and server have no TLS version or cipher in common",
            TlsFailure::ClientCertificateRequired => "the server requires a client certificate",
        }
    }

    /// What to do.
    fn help(self) -> &'static str {
        match self {
            TlsFailure::UnknownIssuer => {
                "if the server is yours or your company's, name a PEM file with the authority that issued its certificate (the \
                 certificate itself if it is self-signed) in \
                 the environment variable SSL_CERT_FILE (it replaces the system's authorities), or let the system \
                 trust it; a program passes it to `ConnectionOptions::authorities`"
            }
            TlsFailure::AuthorityAsServer => {
                "trusting it does not help: issue a certificate that is no authority (with openssl: \
                 `-addext basicConstraints=critical,CA:FALSE`; `mkcert` issues one too), and name it, or the authority that \
                 issued it, in the environment variable SSL_CERT_FILE"
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

/// Whether this message is about a server that speaks TLS.
pub(crate) fn is_from_tls_server(message: &str) -> bool {
    let others = [TlsFailure::NotTls, TlsFailure::NoAuthorities];
    let failure = message.split_once(TLS_FAILED).map(|(_, message)| message);
    failure.is_some_and(|message| !others.iter().any(|other| message.starts_with(other.message())))
}

/// What to do about a TLS failure, recognized by its message.
pub(crate) fn help(message: &str) -> Option<&'static str> {
    let (_, message) = message.split_once(TLS_FAILED)?;
    TlsFailure::ALL.into_iter().find(|failure| message.starts_with(failure.message())).map(TlsFailure::help)
}
