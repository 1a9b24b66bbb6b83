//! Valid and invalid certificates.

use std::sync::{Arc, OnceLock};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn own() -> &'static Authority {
    static OWN: OnceLock<Authority> = OnceLock::new();
    OWN.get_or_init(|| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    })
}

/// The PEM of the authority.
pub(crate) fn authority() -> &'static str {
    &own().pem
}

/// The TLS acceptors by the name of their port.
pub(crate) fn acceptors() -> [(&'static str, TlsAcceptor); 4] {
    let params = |name: &str| CertificateParams::new(vec![name.to_owned()]).unwrap();
    let mut expired = params("127.0.0.1");
    expired.not_after = date_time_ymd(2020, 1, 1);
    [
        ("trusted", acceptor(params("127.0.0.1"), true)),
        ("self-signed", acceptor(params("127.0.0.1"), false)),
        ("wrong-name", acceptor(params("server.example"), true)),
        ("expired", acceptor(expired, true)),
    ]
}

fn acceptor(params: CertificateParams, by_authority: bool) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let certificate = match by_authority {
        true => params.signed_by(&key, &own().issuer).unwrap(),
        false => params.self_signed(&key).unwrap(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config =
        builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}
