//! HTTPS with HTTP/1.1 and HTTP/2, with a certificate that the test creates.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_host_gateway::{Bounds, ClientCounts, Gateway, GatewayOptions, HttpOptions, HttpServer, TlsFiles};
use mcp_host_model::{Endpoint, UrlEndpoint};
use mcp_host_runtime::Host;
use mcp_host_transport::{Authorities, DialOptions, Eras, Session, SessionOptions, dialer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::support::{host, initialize, modern, server};

/// A certificate for `localhost`, and the authority that issued it.
struct Certificate {
    _folder: TempDir,
    files: TlsFiles,
    authority: String,
}

impl Certificate {
    fn new() -> Certificate {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let chain = params.signed_by(&key, &issuer).unwrap().pem();
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles::new(folder.path().join("cert.pem"), folder.path().join("key.pem"));
        std::fs::write(&files.certificate, chain).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        Certificate { _folder: folder, files, authority }
    }
}

async fn gateway(bounds: Bounds) -> (Arc<Host>, Gateway) {
    let host = host(&Arc::default(), vec![server("demo")]).await;
    let gateway = Gateway::new(Arc::clone(&host), {
        let mut options = GatewayOptions::default();
        options.bounds = bounds;
        options
    });
    (host, gateway)
}

async fn bind(gateway: &Gateway, files: TlsFiles) -> Result<HttpServer, mcp_host_gateway::ServeError> {
    let mut options = HttpOptions::default();
    options.tls = Some(files);
    HttpServer::bind("127.0.0.1:0".parse().unwrap(), gateway.clone(), options).await
}

#[tokio::test]
async fn client_that_trusts_the_authority_is_served() {
    let (_host, gateway) = gateway(Bounds::default()).await;
    let Certificate { _folder, files, authority } = Certificate::new();
    let swapped = TlsFiles::new(files.key.clone(), files.certificate.clone());
    assert!(bind(&gateway, swapped).await.err().unwrap().help().is_some());
    let missing = TlsFiles::new(files.key.with_file_name("none"), files.key.clone());
    let missing = bind(&gateway, missing).await.err().unwrap();
    assert!(missing.to_string().starts_with("cannot read "), "{missing}");

    let server = bind(&gateway, files).await.unwrap();
    let port = server.address().port();
    let serving = tokio::spawn(server.serve(std::future::pending()));
    let connect = async |authorities| {
        let endpoint = UrlEndpoint::new(format!("https://localhost:{port}/mcp").parse().unwrap());
        let mut options = DialOptions::default();
        options.authorities = authorities;
        let dial = dialer(&Endpoint::Http(endpoint), &options).unwrap();
        Session::connect(dial, {
            let mut options = SessionOptions::default();
            options.eras = Eras::Modern;
            options
        })
        .await
    };
    assert!(connect(Authorities::default()).await.is_err());
    let session = connect(Authorities::from_pem(authority.as_bytes()).unwrap()).await.unwrap();
    assert!(!session.list_tools().await.unwrap().items.is_empty());
    serving.abort();
}

/// A gateway with an HTTP/2 connection to it.
struct Http2 {
    _host: Arc<Host>,
    gateway: Gateway,
    stop: tokio::sync::oneshot::Sender<()>,
    serving: JoinHandle<()>,
    sender: SendRequest<Full<Bytes>>,
    connection: JoinHandle<hyper::Result<()>>,
}

impl Http2 {
    async fn connect(bounds: Bounds, window: Option<u32>) -> Http2 {
        let (_host, gateway) = gateway(bounds).await;
        let Certificate { _folder, files, authority } = Certificate::new();
        let server = bind(&gateway, files).await.unwrap();
        let address = server.address();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
        let stream = tls_connect(address, &authority).await;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        Http2 { _host, gateway, stop, serving, sender, connection: tokio::spawn(connection) }
    }

    fn post(
        &mut self,
        headers: &[(&str, &str)],
        body: String,
    ) -> impl Future<Output = hyper::Result<Reply>> + 'static {
        let mut request = Request::post("https://localhost/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = self.sender.send_request(request.body(Full::from(body)).unwrap());
        async move {
            let (head, body) = sent.await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let session = head.headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
            Ok(Reply { status: head.status.as_u16(), session, body })
        }
    }
}

#[derive(Debug)]
struct Reply {
    status: u16,
    session: Option<String>,
    body: Bytes,
}

async fn tls_connect(address: SocketAddr, authority: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    stream
}

fn call(id: u32, name: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
    )
}

#[tokio::test]
async fn http2_requests_of_one_connection_run_concurrently() {
    let mut http2 = Http2::connect(Bounds::default(), None).await;
    let session = http2.post(&[], initialize("2025-11-25")).await.unwrap().session.unwrap();
    let own = ("mcp-session-id", session.as_str());
    let slow = http2.post(&[own], call(1, "demo__sleep", r#"{"ms":60000}"#));
    let (slow, fast) = (tokio::spawn(slow), http2.post(&[own], call(2, "demo__echo", r#"{"text":"a"}"#)));
    let fast = fast.await.unwrap();
    assert_eq!(fast.status, 200);
    assert!(fast.body.starts_with(br#"{"jsonrpc":"2.0","id":2"#), "{fast:?}");
    let large = http2.post(&[own], call(3, "demo__grow", r#"{"bytes":1000000}"#)).await.unwrap();
    assert!(large.body.len() > 1_000_000);
    let wrong_host = http2.post(&[("host", "evil.example")], initialize("2025-11-25")).await.unwrap();
    assert_eq!(wrong_host.status, 403);
    // The shutdown cancels the running request.
    drop(http2.stop);
    http2.serving.await.unwrap();
    assert_eq!(slow.await.unwrap().unwrap().status, 202);
    assert_eq!(http2.gateway.client_counts(), ClientCounts::default());
    http2.connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn reset_http2_stream_cancels_its_stateless_request() {
    let mut bounds = Bounds::default();
    bounds.requests_per_client = 1;
    let mut http2 = Http2::connect(bounds, None).await;
    let arguments = r#""name":"demo__sleep","arguments":{"ms":60000}"#;
    let (headers, body) = modern("tools/call", Some("demo__sleep"), arguments);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let running = tokio::spawn(http2.post(&headers, body));
    let (headers, body) = modern("tools/list", None, "");
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    while http2.post(&headers, body.clone()).await.unwrap().status != 503 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.abort();
    while http2.post(&headers, body.clone()).await.unwrap().status != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    http2.serving.abort();
}

#[tokio::test]
async fn http2_client_without_window_is_disconnected() {
    let mut bounds = Bounds::default();
    bounds.send_timeout = Duration::from_millis(400);
    let mut http2 = Http2::connect(bounds, Some(1000)).await;
    let session = http2.post(&[], initialize("2025-11-25")).await.unwrap().session.unwrap();
    let request = Request::post("https://localhost/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("mcp-session-id", session)
        .body(Full::from(call(1, "demo__grow", r#"{"bytes":1000000}"#)))
        .unwrap();
    let unread = http2.sender.send_request(request).await.unwrap();
    assert_eq!(unread.status(), 200);
    let ended = tokio::time::timeout(Duration::from_secs(30), http2.connection).await;
    assert!(ended.is_ok());
    assert!(unread.into_body().collect().await.is_err());
    http2.serving.abort();
}
