//! Listeners that are not working MCP servers: they send the same response to each request, with or without TLS.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A closed port.
pub(super) fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends this response to each request. Returns the port. `head` is the status and, on further lines, headers.
pub(super) fn answering(head: &'static str, body: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer(socket, head, body));
        }
    });
    port
}

/// Who has issued a certificate.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum IssuedBy {
    Authority,
    /// Itself, and it is no authority.
    Itself,
    /// Itself: it is an authority too, as `openssl req -x509` makes it.
    ItselfAsAuthority,
}

/// A TLS server with a certificate for `name`. Returns the port and the certificate authority as PEM.
pub(super) fn secured(name: &str, issued_by: IssuedBy) -> (u16, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let mut own = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let (certificate, authority) = match issued_by {
        IssuedBy::Authority => (own.signed_by(&key, &issuer).unwrap(), authority),
        IssuedBy::Itself | IssuedBy::ItselfAsAuthority => {
            own.is_ca = match issued_by {
                IssuedBy::ItselfAsAuthority => IsCa::Ca(BasicConstraints::Unconstrained),
                // `CA:FALSE`
                IssuedBy::Itself | IssuedBy::Authority => IsCa::ExplicitNoCa,
            };
            let certificate = own.self_signed(&key).unwrap();
            let pem = certificate.pem();
            (certificate, pem)
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config =
        builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            thread::spawn(move || answer(StreamOwned::new(connection, socket), "200 OK", "{}"));
        }
    });
    (port, authority)
}

/// Answers one request. Ignores errors, because the client may disconnect.
fn answer(mut stream: impl Read + Write, response_head: &str, body: &str) {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 => head.extend_from_slice(&bytes[..count]),
            _ => return,
        }
    }
    let length = body.len();
    let _ = stream.write_all(
        format!(
            "HTTP/1.1 {response_head}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .as_bytes(),
    );
    let _ = stream.flush();
}

/// A listener that occupies a port.
pub(super) fn listening() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}
