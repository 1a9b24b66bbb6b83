//! HTTPS from two PEM files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::{ServeError, TlsFiles};

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;

/// What does the handshakes.
pub(super) async fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let TlsFiles { certificate, key } = files;
    let chain = read(certificate).await?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&chain)
        .collect::<Result<_, _>>()
        .map_err(|it| unusable(certificate, &it))?;
    let private = read(key).await?;
    let private = PrivateKeyDer::from_pem_slice(&private).map_err(|it| unusable(key, &it))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ServeError::Tls)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(ServeError::Tls)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let failed = |source| ServeError::TlsFile { path: path.to_owned(), source };
    let length = tokio::fs::metadata(path).await.map_err(failed)?.len();
    if length > MOST_BYTES {
        return Err(failed(std::io::Error::other(format!("it has more than {MOST_BYTES} bytes"))));
    }
    tokio::fs::read(path).await.map_err(failed)
}

/// The parser's words may quote the file; of a key that must not be.
fn unusable(path: &Path, error: &rustls::pki_types::pem::Error) -> ServeError {
    let words = match error {
        rustls::pki_types::pem::Error::NoItemsFound => "there is nothing of this kind in it",
        _ => "it is no PEM",
    };
    ServeError::TlsFile { path: path.to_owned(), source: std::io::Error::other(words) }
}
