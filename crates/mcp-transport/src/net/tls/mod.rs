//! TLS for all transports: rustls, with the certificate authorities of the system and those of the options.
//!
//! All connections of the process share one configuration, because the system's authorities may be hundreds of files.
//! They are read when a connection needs TLS for the first time, on a thread that may block, and again after an hour.
//! If `SSL_CERT_FILE` or `SSL_CERT_DIR` is set, the authorities are read from there.

mod authorities;
mod shared_config;

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::Verifier;
use url::Url;

use crate::error::net_failure::{NetFailure, TlsFailure};
pub use authorities::Authorities;
use shared_config::SharedConfigs;

/// Maximum length of an error's chain of causes that is followed.
const MAX_CAUSES: usize = 16;

/// The configurations of this process.
static PROCESS_CONFIGS: SharedConfigs = SharedConfigs::new(build_client_config);

/// The TLS configuration of a client. It is cheap to clone: its parts are shared.
pub async fn client_config(authorities: &Authorities) -> Result<ClientConfig, NetFailure> {
    PROCESS_CONFIGS.get(authorities).await
}

/// Reads the certificate authorities of the system, and builds a configuration with them. Blocks.
fn build_client_config(authorities: &Authorities) -> Result<ClientConfig, NetFailure> {
    let failed = |error: rustls::Error| NetFailure::Other(format!("TLS cannot be set up: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = authorities.0.iter().cloned();
    let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&provider))
        .map_err(|error| no_authorities_failure(&error))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // rustls calls any custom verifier "dangerous"; this one is the platform's.
    let builder = builder.map_err(failed)?.dangerous();
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// The failure to read any certificate authority, with the environment variable that causes it.
fn no_authorities_failure(error: &rustls::Error) -> NetFailure {
    let configured = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().find_map(|name| {
        let path = std::env::var_os(name)?;
        let problem = match std::fs::metadata(&path) {
            Ok(_) => "contains no certificate",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "does not exist",
            Err(_) => "cannot be read",
        };
        Some(format!("{name} is {}, which {problem}", path.display()))
    });
    let detail = configured.unwrap_or_else(|| error.to_string());
    NetFailure::Tls { failure: Some(TlsFailure::NoAuthorities), detail }
}

/// Finds the TLS error among the causes of an error, or the innermost cause.
pub fn root_cause(error: &(dyn Error + 'static)) -> NetFailure {
    let mut innermost = String::new();
    let mut next = Some(error);
    for _ in 0..MAX_CAUSES {
        let Some(cause) = next else { break };
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return NetFailure::Tls { failure: classify_tls_error(tls), detail: tls.to_string() };
        }
        innermost = match cause.downcast_ref::<io::Error>() {
            Some(error) => describe_io_kind(error),
            None => cause.to_string(),
        };
        // An I/O error that wraps another error does not return it as its source.
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    NetFailure::Other(innermost)
}

/// Classifies an error of rustls; `None` for an unknown one.
fn classify_tls_error(error: &rustls::Error) -> Option<TlsFailure> {
    use rustls::{AlertDescription, CertificateError, Error, OtherError};
    match error {
        Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Some(TlsFailure::UnknownIssuer)
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some(TlsFailure::WrongName)
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some(TlsFailure::Expired),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Some(TlsFailure::NotYetValid)
            }
            CertificateError::Revoked => Some(TlsFailure::Revoked),
            CertificateError::Other(OtherError(other))
                if matches!(other.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity)) =>
            {
                Some(TlsFailure::AuthorityAsServer)
            }
            _ => None,
        },
        Error::InvalidMessage(_) => Some(TlsFailure::NotTls),
        Error::PeerIncompatible(_) => Some(TlsFailure::NoCommonVersion),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => {
                Some(TlsFailure::NoCommonVersion)
            }
            AlertDescription::CertificateRequired => Some(TlsFailure::ClientCertificateRequired),
            _ => None,
        },
        _ => None,
    }
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

/// Whether the server of a URL speaks TLS.
pub(crate) fn uses_tls(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "wss")
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
        check("", "the certificate authorities contain no certificate");
        check(
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "the certificate authorities are not valid PEM",
        );
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        check(empty, "the certificate authorities cannot be used: invalid peer certificate: BadEncoding");
    }
}
