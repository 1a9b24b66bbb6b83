//! HTTPS from two files, and what is said of files that are none.

use mcp_gateway::{Gateway, GatewayOptions, HttpOptions, HttpServer, TlsFiles};
use mcp_model::{Endpoint, UrlEndpoint};
use mcp_transport::{Authorities, DialOptions, Eras, Session, SessionOptions, dialer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::world::{host, server};

#[tokio::test]
async fn a_client_that_trusts_the_authority_is_served() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let chain = params.signed_by(&key, &issuer).unwrap().pem();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, private) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, chain).unwrap();
    std::fs::write(&private, key.serialize_pem()).unwrap();

    let site = Default::default();
    let host = host(&site, vec![server("demo")]).await;
    let gateway = Gateway::new(host, GatewayOptions::default());
    let bind = async |certificate: &std::path::Path, key: &std::path::Path| {
        let files = TlsFiles { certificate: certificate.to_owned(), key: key.to_owned() };
        let options = HttpOptions { tls: Some(files), ..HttpOptions::default() };
        HttpServer::bind("127.0.0.1:0".parse().unwrap(), gateway.clone(), options).await
    };
    let swapped = bind(&private, &certificate).await.err().unwrap();
    assert!(swapped.help().is_some());
    let missing = bind(&folder.path().join("none"), &private).await.err().unwrap();
    assert!(missing.to_string().starts_with("cannot read "), "{missing}");

    let server = bind(&certificate, &private).await.unwrap();
    let port = server.address().port();
    let serving = tokio::spawn(server.serve(std::future::pending()));
    let connect = async |authorities| {
        let endpoint = UrlEndpoint::new(format!("https://localhost:{port}/mcp").parse().unwrap());
        let options = DialOptions { authorities, ..DialOptions::default() };
        let dial = dialer(&Endpoint::Http(endpoint), &options).unwrap();
        Session::connect(dial, SessionOptions { eras: Eras::Modern, ..SessionOptions::default() }).await
    };
    assert!(connect(Authorities::default()).await.is_err());
    let session = connect(Authorities::from_pem(authority.as_bytes()).unwrap()).await.unwrap();
    assert!(!session.list_tools().await.unwrap().items.is_empty());
    serving.abort();
}
