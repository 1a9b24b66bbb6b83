//! TLS with a certificate and key from PEM files.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use mcp_host_transport::open_named_file;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::http::options::{ServeError, TlsFiles};

/// Maximum size of a PEM file in bytes.
const MAX_PEM_BYTES: u64 = 1024 * 1024;

/// The ALPN name of HTTP/2.
const HTTP_2: &[u8] = b"h2";

/// A certificate and its key, ready for connections.
pub(crate) struct LoadedTls {
    pub(crate) acceptor: TlsAcceptor,
    /// The earliest end of the validity of the certificates in seconds since the epoch, if it can be read.
    pub(crate) expiry: Option<i64>,
}

/// Reads the files and creates the acceptor.
pub(crate) async fn load_acceptor(files: &TlsFiles) -> Result<LoadedTls, ServeError> {
    let TlsFiles { certificate, key } = files;
    let chain = read_pem(certificate).await?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&chain)
        .collect::<Result<_, _>>()
        .map_err(|error| pem_error(certificate, &error))?;
    let expiry = chain.iter().filter_map(read_expiry).min();
    let private = read_pem(key).await?;
    let private = PrivateKeyDer::from_pem_slice(&private).map_err(|error| pem_error(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ServeError::Tls)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(ServeError::Tls)?;
    config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
    Ok(LoadedTls { acceptor: TlsAcceptor::from(Arc::new(config)), expiry })
}

/// The end of the validity of a certificate in seconds since the epoch.
fn read_expiry(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// Whether the client chose HTTP/2.
pub(crate) fn is_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP_2)
}

/// Reads a PEM file of limited size.
async fn read_pem(path: &Path) -> Result<Vec<u8>, ServeError> {
    let failed = |source| ServeError::TlsFile { path: path.to_owned(), source };
    let file = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        open_named_file(&file)?.take(MAX_PEM_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_PEM_BYTES {
            return Err(io::Error::other(format!("the file has more than {MAX_PEM_BYTES} bytes")));
        }
        Ok(bytes)
    });
    read.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(failed)
}

/// The error for a file that is no usable PEM. It omits the parser's message, which may quote the key.
fn pem_error(path: &Path, error: &rustls::pki_types::pem::Error) -> ServeError {
    let message = match error {
        rustls::pki_types::pem::Error::NoItemsFound => "the file has no PEM section of this kind",
        _ => "the file is not valid PEM",
    };
    ServeError::TlsFile { path: path.to_owned(), source: io::Error::other(message) }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    // RPT-206
    #[test]
    fn end_of_the_validity_is_read() {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(2050, 1, 1);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(read_expiry(certificate.der()), Some(2_524_608_000));
        assert_eq!(read_expiry(&CertificateDer::from(b"x".to_vec())), None);
    }
}
