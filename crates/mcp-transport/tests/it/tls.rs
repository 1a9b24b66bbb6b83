//! TLS with the test's own certificates. Trust in authorities and names is checked in the same way on every
//! transport.

use std::mem;
use std::sync::Arc;

use mcp_host_model::{Endpoint, RawJson, UrlEndpoint};
use mcp_host_transport::{
    Authorities, CallOptions, ConnectError, DialOptions, Session, SessionOptions, dialer,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::websocket::{Opening, Peer, Plan, call, modern, tool_result};

/// A certificate authority, and a server with a certificate from it.
pub(crate) struct Company {
    pub(crate) authority: String,
    pub(crate) acceptor: TlsAcceptor,
}

/// The validity period of a certificate.
#[derive(Clone, Copy)]
pub(crate) enum Valid {
    Now,
    Once,
    Later,
}

/// The issuer of a certificate.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Issuance {
    Authority,
    SelfSigned,
    /// Self-signed and marked as an authority, as `openssl req -x509` does.
    SelfSignedAuthority,
}

/// Creates an authority and a server certificate for these names and addresses.
pub(crate) fn company(names: &[&str], valid: Valid, issuance: Issuance) -> Company {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(names).unwrap();
    match valid {
        Valid::Now => {}
        Valid::Once => params.not_after = date_time_ymd(2020, 1, 1),
        Valid::Later => params.not_before = date_time_ymd(2999, 1, 1),
    }
    let certificate = match issuance {
        Issuance::Authority => params.signed_by(&key, &issuer).unwrap(),
        Issuance::SelfSigned => params.self_signed(&key).unwrap(),
        Issuance::SelfSignedAuthority => {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.self_signed(&key).unwrap()
        }
    };
    let authority = if issuance == Issuance::Authority { authority } else { certificate.pem() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config =
        builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    Company { authority, acceptor: TlsAcceptor::from(Arc::new(config)) }
}

/// A server that speaks HTTP/1.1 over TLS.
struct Web {
    url: String,
    _serving: JoinSet<()>,
}

async fn web(acceptor: TlsAcceptor) -> Web {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}/mcp", listener.local_addr().unwrap().port());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            // A client that does not trust the server ends the connection here.
            let Ok(stream) = acceptor.accept(socket).await else { continue };
            connections.spawn(answer_all(stream));
        }
    });
    Web { url, _serving: serving }
}

/// Responds to the requests of a connection, one after another: to a call with its own text, otherwise with a
/// greeting.
async fn answer_all(mut stream: TlsStream<TcpStream>) {
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8(mem::take(&mut head)).unwrap().to_ascii_lowercase();
        let length = text.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            }),
            _ => {
                let text = message["params"]["arguments"]["text"].as_str().unwrap_or("hello");
                json!({"content": [{"type": "text", "text": text}]})
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(response.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
}

pub(crate) async fn connect(endpoint: Endpoint, authorities: Authorities) -> Result<Session, ConnectError> {
    let dial = dialer(&endpoint, &{
        let mut options = DialOptions::default();
        options.authorities = authorities;
        options
    })?;
    Session::connect(dial, SessionOptions::default()).await
}

/// Connects over both transports to servers of this authority. Checks the outcome of a client that trusts the
/// authority, which calls a tool, and the error and help for one that does not.
async fn check(company: Company, trusting: &str, untrusting: &str) {
    let Company { authority, acceptor } = company;
    let opening = Opening::Open("Sec-WebSocket-Protocol: mcp\r\n");
    let plan = Plan { opening, tls: Some(acceptor.clone()) };
    let peer =
        Peer::planned(plan, |message| modern(message, |message| vec![tool_result(message, "hello")])).await;
    let web = web(acceptor).await;
    let endpoint = |url: &str| UrlEndpoint::new(url.parse().unwrap());
    let authorities = Authorities::from_pem(authority.as_bytes()).unwrap();
    for endpoint in [Endpoint::WebSocket(endpoint(&peer.url)), Endpoint::Http(endpoint(&web.url))] {
        let label = endpoint.label();
        for (authorities, want) in [(authorities.clone(), trusting), (Authorities::default(), untrusting)] {
            let got = match connect(endpoint.clone(), authorities).await {
                Ok(session) => call(&session).await.unwrap(),
                Err(error) => format!("{error}\n{}", error.help().unwrap()),
            };
            // The message of the TLS library follows; its text is not ours.
            let got = got.replace(&label, "URL");
            let (what, todo) = want.split_once('|').unwrap_or((want, ""));
            assert!(got.starts_with(what) && got.contains(todo), "{got}");
        }
    }
}

const UNKNOWN: &str = "cannot connect to URL: TLS failed: no trusted authority has issued the certificate (\
                       |\nif the server is yours or your company's, name a PEM file with the authority";

#[tokio::test]
async fn configured_authority_is_trusted() {
    check(company(&["127.0.0.1"], Valid::Now, Issuance::Authority), "hello", UNKNOWN).await;
}

#[tokio::test]
async fn self_signed_certificate_is_refused_unless_it_is_trusted() {
    check(company(&["127.0.0.1"], Valid::Now, Issuance::SelfSigned), "hello", UNKNOWN).await;
    let authority = "cannot connect to URL: TLS failed: the certificate is self-signed and marked as an authority (\
                     |\ntrusting it does not help: issue a certificate that is no authority";
    check(company(&["127.0.0.1"], Valid::Now, Issuance::SelfSignedAuthority), authority, authority).await;
}

#[tokio::test]
async fn certificate_for_another_name_is_refused() {
    let other = "cannot connect to URL: TLS failed: the certificate is for another name (\
                 |\nuse the name of the certificate in the URL";
    check(company(&["server.example"], Valid::Now, Issuance::Authority), other, UNKNOWN).await;
}

#[tokio::test]
async fn expired_certificate_is_refused() {
    let expired = "cannot connect to URL: TLS failed: the certificate has expired (\
                   |\nrenew the server's certificate; if it is new, check this machine's clock";
    check(company(&["127.0.0.1"], Valid::Once, Issuance::Authority), expired, expired).await;
    let early = "cannot connect to URL: TLS failed: the certificate is not valid yet (\
                 |\ncheck this machine's clock";
    check(company(&["127.0.0.1"], Valid::Later, Issuance::Authority), early, early).await;
}

#[tokio::test]
async fn large_messages_are_sent_and_received_over_tls() {
    let Company { authority, acceptor } = company(&["127.0.0.1"], Valid::Now, Issuance::Authority);
    let web = web(acceptor).await;
    let endpoint = Endpoint::Http(UrlEndpoint::new(web.url.parse().unwrap()));
    let session = connect(endpoint, Authorities::from_pem(authority.as_bytes()).unwrap()).await.unwrap();
    // Sizes above a TLS record, above one read, and above the socket buffers.
    for bytes in [1, 20 << 10, 100 << 10, 3 << 20] {
        let text = "x".repeat(bytes);
        let arguments = RawJson::from_value(&json!({"text": text})).unwrap();
        let answer = session.call_tool("echo", &arguments, CallOptions::default()).await.unwrap();
        assert!(answer.value.text() == text, "{bytes}");
    }
}

#[tokio::test]
async fn server_without_tls_is_reported() {
    for scheme in ["wss", "https"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}/ws", listener.local_addr().unwrap());
        let answering = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            socket
        };
        let endpoint = UrlEndpoint::new(url.parse().unwrap());
        let endpoint = if scheme == "wss" { Endpoint::WebSocket(endpoint) } else { Endpoint::Http(endpoint) };
        let (error, _socket) = tokio::join!(connect(endpoint, Authorities::default()), answering);
        let error = error.err().unwrap();
        let want = format!(
            "cannot connect to {url}: TLS failed: the server does not speak TLS (received corrupt message of type \
             InvalidContentType)"
        );
        assert_eq!(error.to_string(), want);
        assert!(error.help().unwrap().contains("use http:// or ws:// in the URL"));
    }
}
