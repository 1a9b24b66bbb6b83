//! The proxy for a server, from the environment or the settings of the system, and the tunnel through it.
//!
//! The usual variables apply (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`); `wss` counts as `https`
//! and `ws` as `http`. An HTTP proxy opens a tunnel with `CONNECT`, except for plain HTTP requests, which it
//! forwards. A SOCKS proxy opens its own kind of tunnel ([`SocksProxy`]). Any other proxy is an error: a direct
//! connection would bypass the rules of the network.

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tokio::task::JoinSet;
use url::{Host, Url};

use super::http1::{RequestBody, net_failure, send_upgrade, take_upgraded};
use super::socks::SocksProxy;
use super::stream::NetStream;
use super::tls::uses_tls;
use crate::error::net_failure::NetFailure;

/// The address and protocol of a proxy.
#[derive(PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
    pub(crate) protocol: ProxyProtocol,
}

/// The protocol of a proxy, with its credentials.
#[derive(PartialEq, Eq)]
pub(crate) enum ProxyProtocol {
    /// HTTP, with the value of `Proxy-Authorization`.
    Http(Option<HeaderValue>),
    /// HTTP over TLS.
    Https(Option<HeaderValue>),
    Socks(SocksProxy),
}

/// Finds the proxy for a URL. Fails if the configured proxy is not supported.
pub(crate) fn find_proxy(matcher: &Matcher, url: &Url) -> Result<Option<Proxy>, NetFailure> {
    find_intercept(matcher, url).map(parse_proxy).transpose()
}

/// Finds the entry of the proxy configuration for a URL; `wss` counts as `https`, `ws` as `http`.
pub(super) fn find_intercept(matcher: &Matcher, url: &Url) -> Option<Intercept> {
    let scheme = if uses_tls(url) { "https" } else { "http" };
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    matcher.intercept(&format!("{scheme}://{authority}/").parse::<Uri>().ok()?)
}

fn parse_proxy(intercept: Intercept) -> Result<Proxy, NetFailure> {
    let unusable = |message: &str| NetFailure::Proxy(message.to_owned());
    let uri = intercept.uri();
    let authorization = || intercept.basic_auth().cloned();
    let (protocol, default_port) = match uri.scheme_str() {
        Some("http") | None => (ProxyProtocol::Http(authorization()), 80),
        Some("https") => (ProxyProtocol::Https(authorization()), 443),
        Some(scheme) => match SocksProxy::from_scheme(scheme, intercept.raw_auth()) {
            Some(socks) => (ProxyProtocol::Socks(socks), 1080),
            None => return Err(unusable("the proxy is neither an HTTP nor a SOCKS proxy")),
        },
    };
    let host = uri.host().and_then(|host| Host::parse(host).ok());
    let host = host.ok_or_else(|| unusable("the proxy's address is invalid"))?;
    Ok(Proxy { host, port: uri.port_u16().unwrap_or(default_port), protocol })
}

impl Proxy {
    /// The proxy's name in messages, without its credentials.
    pub(crate) fn label(&self) -> String {
        format!("the proxy {}:{}", self.host, self.port)
    }

    /// Wraps the failure of a connection to this proxy.
    pub(crate) fn connection_failure(&self, failure: NetFailure) -> NetFailure {
        NetFailure::ProxyConnection { proxy: self.label(), failure: Box::new(failure) }
    }

    /// Opens a tunnel to the server with `CONNECT`.
    pub(crate) async fn tunnel(
        &self,
        stream: NetStream,
        authorization: Option<&HeaderValue>,
        url: &Url,
    ) -> Result<NetStream, NetFailure> {
        let host = url.host_str().unwrap_or_default();
        let authority = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let mut request = http::Request::connect(&authority).header(HOST, &authority);
        if let Some(authorization) = authorization {
            request = request.header(PROXY_AUTHORIZATION, authorization);
        }
        let request = request
            .body(RequestBody::default())
            .map_err(|_| self.connection_failure("the URL's host is not valid in a request".into()))?;
        let failed = |error: &hyper::Error| self.connection_failure(net_failure(error));
        let refused = |problem: &str| NetFailure::Proxy(format!("{} {problem}", self.label()));
        let mut tasks = JoinSet::new();
        let response = send_upgrade(stream, request, &mut tasks).await.map_err(|error| failed(&error))?;
        match response.status().as_u16() {
            200..=299 => match take_upgraded(response).await {
                // The client sends first, so nothing can have come through the tunnel yet.
                Ok((stream, rest)) if rest.is_empty() => Ok(stream),
                Ok(_) | Err(_) => Err(refused("sent data before the tunnel was used")),
            },
            407 => Err(refused("requires authorization (HTTP 407)")),
            status => Err(refused(&format!("refused the tunnel (HTTP {status})"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the proxy for a URL, with these proxies for http and https, and exceptions.
    #[track_caller]
    fn check(url: &str, http: &str, https: &str, want: &str) {
        let matcher = Matcher::builder().http(http).https(https).no("free.example,10.0.0.0/8").build();
        let got = match find_proxy(&matcher, &Url::parse(url).unwrap()) {
            Ok(None) => "none".to_owned(),
            Ok(Some(proxy)) => {
                let (protocol, has_credentials) = match &proxy.protocol {
                    ProxyProtocol::Http(authorization) => ("", authorization.is_some()),
                    ProxyProtocol::Https(authorization) => (" over TLS", authorization.is_some()),
                    ProxyProtocol::Socks(socks) => {
                        (" with SOCKS", *socks != SocksProxy::from_scheme("socks5", None).unwrap())
                    }
                };
                format!(
                    "{}{protocol}{}",
                    proxy.label(),
                    if has_credentials { " with credentials" } else { "" }
                )
            }
            Err(failure) => failure.to_string(),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn scheme_and_exceptions_select_the_proxy() {
        let (http, https) = ("http://a.example:3128", "https://user:pw@b.example");
        check("ws://x.example/", http, https, "the proxy a.example:3128");
        check("wss://x.example:8443/", http, https, "the proxy b.example:443 over TLS with credentials");
        check("wss://www.free.example/", http, https, "none");
        check("ws://10.1.2.3/", http, https, "none");
        check("ws://[::1]/", "http://[::2]:8080", "", "the proxy [::2]:8080");
        check("wss://x.example/", http, "", "none");
        check("wss://x.example/", http, "socks5://c.example", "the proxy c.example:1080 with SOCKS");
        let with_credentials = "the proxy c.example:9 with SOCKS with credentials";
        check("wss://x.example/", http, "socks5://user:pw@c.example:9", with_credentials);
    }
}
