//! The HTTP client of one connection, and its errors in plain words.
//!
//! Absent on purpose: a limit for whole requests, which is the wires' and the engine's, and redirects, which
//! [`super::exchange`] decides about.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use reqwest::redirect::Policy;
use url::Url;

use super::nearby::is_loopback;
use super::proxied::ProxyAddress;
use super::{Place, tls};
use crate::{Fault, LaneEnd, StartFailure};

/// How long a connection may rest before it is not used again. Node's and uvicorn's servers close one after 5 s: to
/// write into it just then would lose a request that may have run.
const REST: Duration = Duration::from_secs(4);

/// A request that brought no response to work with.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It was not sent, or not taken.
    Refused(Fault),
    /// It, or a part of it, was sent, and may have been worked on.
    Lost(Fault),
}

/// The client of one connection to a place. Dropping it closes its sockets.
pub(crate) struct Client {
    pub(super) place: Arc<Place>,
    pub(super) inner: reqwest::Client,
}

impl Client {
    pub(crate) fn new(place: Arc<Place>) -> Result<Client, StartFailure> {
        let inner = build(&place)
            .map_err(|error| StartFailure::System(format!("the HTTP client cannot be set up: {error}")))?;
        Ok(Client { place, inner })
    }

    /// The place's URL without the user and password that it may hold, and the headers of a POST, in which these are.
    pub(crate) fn plain(&self) -> (Url, HeaderMap) {
        let mut headers = self.place.post.clone();
        let mut url = self.place.url.clone();
        if let Ok(request) = self.inner.get(url.clone()).build() {
            url = request.url().clone();
            if let Some(value) = request.headers().get(AUTHORIZATION) {
                headers.entry(AUTHORIZATION).or_insert(value.clone());
            }
        }
        (url, headers)
    }
}

fn build(place: &Place) -> Result<reqwest::Client, String> {
    // Fails when the host has installed one before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(place.connect)
        .redirect(Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .pool_idle_timeout(REST);
    if is_loopback(&place.url) {
        builder = builder.no_proxy();
    }
    if place.url.scheme() == "http" {
        // No TLS will be spoken: the system's certificates need not be read, nor be there at all.
        builder = builder.tls_certs_only([]);
    } else {
        let mut config = tls::client_config(&place.authorities)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        builder = builder.tls_backend_preconfigured(config);
    }
    builder.build().map_err(|it| cause(&it))
}

impl Failed {
    /// A request that failed before a response began.
    pub(super) fn of(error: reqwest::Error, place: &Place) -> Failed {
        let label = &place.label;
        if error.is_builder() {
            return Failed::Refused(fault(format!(
                "the request cannot be sent to {label}: {}",
                cause(&error)
            )));
        }
        if !error.is_connect() {
            return Failed::Lost(fault(format!("{label} broke off before it answered: {}", cause(&error))));
        }
        let why = match error.is_timeout() {
            true => format!("no connection within {} s", place.connect.as_secs_f64()),
            false => cause(&error),
        };
        // What TLS says comes from behind the proxy.
        let proxy = ProxyAddress::before(&place.url).filter(|_| !why.starts_with(tls::FAILED));
        Failed::Refused(fault(match proxy {
            Some(proxy) => format!("cannot connect to {label}: {proxy}: {why}"),
            None => format!("cannot connect to {label}: {why}"),
        }))
    }
}

impl From<Failed> for LaneEnd {
    fn from(failed: Failed) -> LaneEnd {
        match failed {
            Failed::Refused(fault) => LaneEnd::Refused(fault),
            Failed::Lost(fault) => LaneEnd::Lost(fault),
        }
    }
}

/// A fault without a response.
pub(crate) fn fault(message: String) -> Fault {
    Fault { status: None, message, error: None }
}

/// The innermost cause of an error, in words. Never a URL: reqwest's own text, which may have one, is the outermost.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    if error.is_dns() {
        return "the host name cannot be resolved".to_owned();
    }
    match error.source() {
        Some(source) => tls::cause(source).unwrap_or_default(),
        None => "it cannot be said why".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nowhere;

    impl reqwest::dns::Resolve for Nowhere {
        fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
            Box::pin(async { Err("what the resolver says".into()) })
        }
    }

    /// What is said of a URL that cannot be reached, by a client without proxies.
    async fn words(url: &str) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let client = builder.dns_resolver(std::sync::Arc::new(Nowhere)).build().unwrap();
        cause(&client.get(url).send().await.unwrap_err())
    }

    #[tokio::test]
    async fn an_unknown_name_and_a_broken_handshake_are_told_apart() {
        assert_eq!(words("http://example.com/?key=secret").await, "the host name cannot be resolved");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/?key=secret", listener.local_addr().unwrap());
        let peer = async {
            use tokio::io::AsyncWriteExt;
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            socket
        };
        let (said, _socket) = tokio::join!(words(&url), peer);
        let want = "TLS failed: what answers there does not speak TLS (received corrupt message of type InvalidContentType)";
        assert_eq!(said, want);
    }
}
