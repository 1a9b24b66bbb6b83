//! Certificate authorities that a program adds to those of the system.

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::error::ConnectError;

/// Certificate authorities that are trusted in addition to the system's, such as a company's or a test's. Empty by
/// default.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Authorities(pub(super) Arc<[CertificateDer<'static>]>);

impl Authorities {
    /// Reads every `CERTIFICATE` of a PEM text. Fails if there is none, or if one cannot be an authority.
    pub fn from_pem(text: &[u8]) -> Result<Authorities, ConnectError> {
        let invalid = |why: String| ConnectError::Invalid(format!("the certificate authorities {why}"));
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
        let certificates = certificates.map_err(|_| invalid("are not valid PEM".to_owned()))?;
        if certificates.is_empty() {
            return Err(invalid("contain no certificate".to_owned()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| invalid(format!("cannot be used: {error}")))?;
        }
        Ok(Authorities(certificates.into()))
    }
}

impl fmt::Debug for Authorities {
    /// Shows the number of certificates.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({})", self.0.len())
    }
}
