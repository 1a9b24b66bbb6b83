//! TLS, the same for every wire that has it: rustls, the certificate authorities of the system, and those of a
//! configuration.
//!
//! The system's are read anew for each connection, so that what an administrator adds counts from then on. Where
//! `SSL_CERT_FILE` or `SSL_CERT_DIR` is set, they are what it names.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::error::ConnectError;

/// How deep an error's causes are followed.
const MAX_CAUSES: usize = 16;

/// Certificate authorities that are trusted besides the system's: that of a company, or of a test. None by default.
#[derive(Clone, Default)]
pub struct Authorities(Arc<[CertificateDer<'static>]>);

impl Authorities {
    /// Those of a PEM text: every `CERTIFICATE` in it. Fails where there is none, and where one cannot be an authority.
    pub fn from_pem(text: &[u8]) -> Result<Authorities, ConnectError> {
        let invalid = |why: String| ConnectError::Invalid(format!("the certificate authorities {why}"));
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
        let certificates = certificates.map_err(|_| invalid("are no PEM".to_owned()))?;
        if certificates.is_empty() {
            return Err(invalid("hold no certificate".to_owned()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|it| invalid(format!("cannot be used: {it}")))?;
        }
        Ok(Authorities(certificates.into()))
    }
}

impl fmt::Debug for Authorities {
    /// How many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({})", self.0.len())
    }
}

/// How a client of ours speaks TLS. Says in words why it cannot.
pub fn client_config(authorities: &Authorities) -> Result<ClientConfig, String> {
    let failed = |error: rustls::Error| format!("TLS cannot be set up: {error}");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = authorities.0.iter().cloned();
    let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&provider)).map_err(failed)?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // "Dangerous" is to bring a verifier; this one is the platform's.
    let builder = builder.map_err(failed)?.dangerous();
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// What words about a fault of TLS begin with.
pub const TLS_FAILED: &str = "TLS failed: ";

/// The innermost cause of an error, in words; what TLS says about itself where that is the cause.
pub fn root_cause(error: &(dyn Error + 'static)) -> Option<String> {
    let mut innermost = None;
    let mut next = Some(error);
    for _ in 0..MAX_CAUSES {
        let Some(cause) = next else { break };
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return Some(format!("{TLS_FAILED}{}", words(tls)));
        }
        innermost = Some(match cause.downcast_ref::<io::Error>() {
            Some(error) => describe_io_kind(error),
            None => cause.to_string(),
        });
        // An I/O error that wraps another one does not name it as its source.
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    innermost
}

/// What is the matter with TLS, where something can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TlsFailure {
    Unknown,
    Name,
    Expired,
    Early,
    Revoked,
    Plain,
    Versions,
    Client,
}

impl TlsFailure {
    const ALL: [TlsFailure; 8] = [
        TlsFailure::Unknown,
        TlsFailure::Name,
        TlsFailure::Expired,
        TlsFailure::Early,
        TlsFailure::Revoked,
        TlsFailure::Plain,
        TlsFailure::Versions,
        TlsFailure::Client,
    ];

    fn from_error(error: &rustls::Error) -> Option<TlsFailure> {
        use rustls::{AlertDescription, CertificateError, Error, OtherError};
        match error {
            Error::InvalidCertificate(certificate) => match certificate {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Some(TlsFailure::Unknown),
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    Some(TlsFailure::Name)
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    Some(TlsFailure::Expired)
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    Some(TlsFailure::Early)
                }
                CertificateError::Revoked => Some(TlsFailure::Revoked),
                // What a certificate that has signed itself and calls itself an authority brings.
                CertificateError::Other(OtherError(other))
                    if other.to_string().contains("CaUsedAsEndEntity") =>
                {
                    Some(TlsFailure::Unknown)
                }
                _ => None,
            },
            Error::InvalidMessage(_) => Some(TlsFailure::Plain),
            Error::PeerIncompatible(_) => Some(TlsFailure::Versions),
            Error::AlertReceived(alert) => match alert {
                AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => {
                    Some(TlsFailure::Versions)
                }
                AlertDescription::CertificateRequired => Some(TlsFailure::Client),
                _ => None,
            },
            _ => None,
        }
    }

    /// What failed.
    fn message(self) -> &'static str {
        match self {
            TlsFailure::Unknown => "nobody who is trusted here has issued the certificate",
            TlsFailure::Name => "the certificate is for another name",
            TlsFailure::Expired => "the certificate has expired",
            TlsFailure::Early => "the certificate is not valid yet",
            TlsFailure::Revoked => "the certificate was revoked",
            TlsFailure::Plain => "what answers there does not speak TLS",
            TlsFailure::Versions => "there is no version of TLS, or no cipher, that both sides have",
            TlsFailure::Client => "the server wants a certificate of its client",
        }
    }

    /// What to do.
    fn help(self) -> &'static str {
        match self {
            TlsFailure::Unknown => {
                "if the server is yours or your company's, name a PEM file with the authority that issued its certificate in \
                 the environment variable SSL_CERT_FILE (it stands in for the system's authorities), or have the system \
                 trust it; a program gives it to `ConnectionOptions::authorities`"
            }
            TlsFailure::Name => {
                "write the name that the certificate is for into the URL, or have one issued for the URL's"
            }
            TlsFailure::Expired => {
                "have the server's certificate renewed; if it has been, check this machine's clock"
            }
            TlsFailure::Early => "check this machine's clock",
            TlsFailure::Revoked => "have a new certificate issued for the server, and do not trust this one",
            TlsFailure::Plain => {
                "check the port; if the server is meant to have no TLS, begin the URL with http:// or ws:// instead"
            }
            TlsFailure::Versions => "let the server speak TLS 1.2 or 1.3",
            TlsFailure::Client => {
                "certificates of clients are not supported: let the server take another authorization"
            }
        }
    }
}

/// What TLS says of itself, after what it means.
fn words(error: &rustls::Error) -> String {
    match TlsFailure::from_error(error) {
        Some(trouble) => format!("{} ({error})", trouble.message()),
        None => error.to_string(),
    }
}

/// What to do about a fault that TLS is the cause of, by the words that were found for it above.
pub(crate) fn help(fault: &str) -> Option<&'static str> {
    let (_, words) = fault.split_once(TLS_FAILED)?;
    TlsFailure::ALL.into_iter().find(|it| words.starts_with(it.message())).map(TlsFailure::help)
}

/// Why reading or writing failed, in words.
pub(crate) fn describe_io(error: &io::Error) -> String {
    root_cause(error).unwrap_or_default()
}

fn describe_io_kind(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
        io::ErrorKind::HostUnreachable => "the host cannot be reached".to_owned(),
        io::ErrorKind::NetworkUnreachable => "the network cannot be reached".to_owned(),
        io::ErrorKind::UnexpectedEof => "the connection was closed too early".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pem: &str, want: &str) {
        let got = Authorities::from_pem(pem.as_bytes());
        assert_eq!(got.map(|it| format!("{it:?}")).unwrap_or_else(|it| it.to_string()), want);
    }

    #[test]
    fn authorities_are_certificates_in_pem() {
        let authority = rcgen::generate_simple_self_signed(["x.example".to_owned()]).unwrap().cert.pem();
        check(&authority, "Authorities(1)");
        check(&format!("# two\n{authority}\n{authority}"), "Authorities(2)");
        check("", "the certificate authorities hold no certificate");
        check(
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "the certificate authorities are no PEM",
        );
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        check(empty, "the certificate authorities cannot be used: invalid peer certificate: BadEncoding");
    }
}
