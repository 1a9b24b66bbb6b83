//! The requests of a login: few, small, bounded, and only to places that a login may reach.
//!
//! No redirect is followed here. Where a proxy stands between, it resolves names itself, and the addresses behind them
//! are its to judge.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::{HeaderMap, Method};
use mcp_model::Secret;
use reqwest::Request;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use url::{Host, Url};

use crate::url_policy::{Neighbourhood, judge, may_reach, neighbourhood};
use mcp_transport::Authorities;
use mcp_transport::internal::is_loopback;
use mcp_transport::internal::tls;

/// How long one request of a login may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most of an answer that is read. Metadata has a few kilobytes.
const MOST_BYTES: usize = 256 << 10;

/// The client of one server's logins.
pub(crate) struct Fetch {
    resource: Url,
    client: reqwest::Client,
}

/// Why a request of a login came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// It was not to be sent.
    #[error("it is not asked: {0}")]
    Forbidden(String),
    #[error("{0}")]
    Failed(String),
    #[error("its answer is larger than {} KiB", MOST_BYTES >> 10)]
    TooLarge,
    #[error("it did not answer within {} s", PATIENCE.as_secs())]
    TimedOut,
}

impl Fetch {
    /// Says in words why there can be none.
    pub(crate) fn new(resource: &Url, authorities: &Authorities) -> Result<Fetch, String> {
        // Fails when the host has installed one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = tls::client_config(authorities)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(PATIENCE)
            .dns_resolver(Arc::new(Guarded { home: home_host(resource) }));
        if is_loopback(resource) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|it| cause(&it))?;
        Ok(Fetch { resource: resource.clone(), client })
    }

    /// Sends one, where a login may go.
    pub(crate) async fn fetch(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, FetchError> {
        let (parts, body) = request.into_parts();
        let url: Url = parts
            .uri
            .to_string()
            .parse()
            .map_err(|_| FetchError::Forbidden("its address cannot be read".to_owned()))?;
        judge(&self.resource, &url).map_err(FetchError::Forbidden)?;
        let sending = self.send(url, parts.method, parts.headers, body);
        tokio::time::timeout(PATIENCE, sending).await.map_err(|_| FetchError::TimedOut)?
    }

    async fn send(
        &self,
        url: Url,
        method: Method,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<http::Response<Vec<u8>>, FetchError> {
        let failed = |error: reqwest::Error| FetchError::Failed(cause(&error));
        let mut request = Request::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() = Some(body.into());
        let mut response = self.client.execute(request).await.map_err(failed)?;
        let mut read = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if read.len() + chunk.len() > MOST_BYTES {
                return Err(FetchError::TooLarge);
            }
            read.extend_from_slice(&chunk);
        }
        let mut res = http::Response::new(read.to_vec());
        *res.status_mut() = response.status();
        *res.headers_mut() = response.headers().clone();
        Ok(res)
    }
}

impl OAuthHttpClient for Fetch {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let done = self.fetch(request.request).await;
            done.map_err(|it| Box::new(it) as OAuthHttpClientError)
        })
    }
}

/// The server's own host, in the form in which it is looked up.
fn home_host(resource: &Url) -> Option<String> {
    match resource.host() {
        Some(Host::Domain(name)) => Some(name.to_owned()),
        Some(Host::Ipv4(it)) => Some(it.to_string()),
        Some(Host::Ipv6(it)) => Some(it.to_string()),
        None => None,
    }
}

/// Resolves names, and leaves out addresses that a login may not reach. The server's own host is looked up for each
/// name anew: its neighbourhood says who else may be asked.
struct Guarded {
    home: Option<String>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let home = self.home.clone();
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found = look_up(&name).await?;
            let allowed: Vec<SocketAddr> = match home {
                Some(home) if home == name => found,
                Some(home) => {
                    let home = look_up(&home).await.map(|it| widest(&it)).unwrap_or(Neighbourhood::Public);
                    let may = |it: &SocketAddr| may_reach(home, neighbourhood(it.ip()));
                    found.into_iter().filter(may).collect()
                }
                None => Vec::new(),
            };
            if allowed.is_empty() {
                return Err("its address is in no network that the server may send us to".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

async fn look_up(name: &str) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, 0)]);
    }
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

/// The neighbourhood of a host with these addresses: the nearest one that all of them share in.
fn widest(addresses: &[SocketAddr]) -> Neighbourhood {
    let mut all = addresses.iter().map(|it| neighbourhood(it.ip()));
    let Some(first) = all.next() else { return Neighbourhood::Public };
    if all.all(|it| it == first) { first } else { Neighbourhood::Public }
}

/// Values that nobody may repeat.
pub(crate) fn secret_values<'a>(values: impl IntoIterator<Item = Option<&'a Secret>>) -> Vec<Secret> {
    values.into_iter().flatten().cloned().collect()
}

/// The innermost cause of an error, in words. Never a URL: reqwest's own text, which may have one, is the outermost.
fn cause(error: &reqwest::Error) -> String {
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

    /// What is said of a URL that cannot be reached.
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
