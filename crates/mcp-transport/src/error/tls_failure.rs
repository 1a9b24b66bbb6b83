//! TLS failures with a known remedy, recognized by their message.

/// Start of a message about a TLS failure.
pub(crate) const TLS_FAILED: &str = "TLS failed: ";

/// A TLS failure that the user can do something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsFailure {
    UnknownIssuer,
    WrongName,
    Expired,
    NotYetValid,
    Revoked,
    NotTls,
    NoCommonVersion,
    ClientCertificateRequired,
}

impl TlsFailure {
    const ALL: [TlsFailure; 8] = [
        TlsFailure::UnknownIssuer,
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
                "if the server is yours or your company's, name a PEM file with the authority that issued its certificate in \
                 the environment variable SSL_CERT_FILE (it replaces the system's authorities), or let the system \
                 trust it; a program passes it to `ConnectionOptions::authorities`"
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

/// What to do about a TLS failure, recognized by its message.
pub(crate) fn help(message: &str) -> Option<&'static str> {
    let (_, message) = message.split_once(TLS_FAILED)?;
    TlsFailure::ALL.into_iter().find(|failure| message.starts_with(failure.message())).map(TlsFailure::help)
}
