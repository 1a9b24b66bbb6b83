//! The proxy before a server, where the environment or the system names one, and the tunnel through it.
//!
//! The rules are those of the HTTP wires (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), `wss` read as `https`
//! and `ws` as `http`; for both a tunnel is asked for with CONNECT, as browsers do. A proxy of another kind is an
//! error: to go round it would send what its owner wanted to see elsewhere.

use bytes::BytesMut;
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tokio::io::AsyncWriteExt;
use url::{Host, Url};

use super::head;
use super::observed::Stream;

/// A proxy that speaks HTTP.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proxy {
    pub(super) host: Host<String>,
    pub(super) port: u16,
    /// It is spoken to over TLS.
    pub(super) secure: bool,
    authorization: Option<HeaderValue>,
}

/// The proxy for a URL. Says in words why there can be none.
pub(super) fn find(matcher: &Matcher, url: &Url) -> Result<Option<Proxy>, String> {
    let scheme = if url.scheme() == "wss" { "https" } else { "http" };
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let Ok(uri) = format!("{scheme}://{authority}/").parse::<Uri>() else { return Ok(None) };
    matcher.intercept(&uri).map(read).transpose()
}

fn read(intercept: Intercept) -> Result<Proxy, String> {
    let uri = intercept.uri();
    let secure = match uri.scheme_str() {
        Some("http") | None => false,
        Some("https") => true,
        Some(_) => {
            return Err("the proxy is not an HTTP proxy, and no other kind can be used here".to_owned());
        }
    };
    let host = uri.host().and_then(|it| Host::parse(it).ok());
    let host = host.ok_or_else(|| "the proxy's address cannot be read".to_owned())?;
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    Ok(Proxy { host, port, secure, authorization: intercept.basic_auth().cloned() })
}

impl Proxy {
    /// What messages call it: no user, no password.
    pub(super) fn label(&self) -> String {
        format!("the proxy {}:{}", self.host, self.port)
    }

    /// Makes of a connection to the proxy one to the server. Says in words why it cannot.
    pub(super) async fn tunnel(&self, stream: &mut dyn Stream, url: &Url) -> Result<(), String> {
        let mut stream = stream;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let label = self.label();
        let sent = async {
            stream.write_all(&request).await?;
            stream.flush().await
        };
        sent.await.map_err(|it| format!("{label}: {}", crate::web::tls::io_words(&it)))?;
        let mut buffer = BytesMut::new();
        let answer = head::read(&mut stream, &mut buffer).await.map_err(|it| format!("{label}: {it}"))?;
        match answer.status {
            // We speak first, so nothing can have come through the tunnel yet.
            200..=299 if buffer.is_empty() => Ok(()),
            200..=299 => Err(format!("{label} sent more than an answer")),
            407 => Err(format!("{label} wants authorization (HTTP 407)")),
            status => Err(format!("{label} refuses to connect (HTTP {status})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proxy for a URL, by a rule for http, one for https, and exceptions.
    #[track_caller]
    fn check(url: &str, http: &str, https: &str, want: &str) {
        let matcher = Matcher::builder().http(http).https(https).no("free.example,10.0.0.0/8").build();
        let got = match find(&matcher, &Url::parse(url).unwrap()) {
            Ok(None) => "none".to_owned(),
            Ok(Some(proxy)) => {
                let secure = if proxy.secure { " over TLS" } else { "" };
                let known = if proxy.authorization.is_some() { " as somebody" } else { "" };
                format!("{}{secure}{known}", proxy.label())
            }
            Err(words) => words,
        };
        assert_eq!(got, want);
    }

    #[test]
    fn the_scheme_and_the_exceptions_choose_the_proxy() {
        let (http, https) = ("http://a.example:3128", "https://user:pw@b.example");
        check("ws://x.example/", http, https, "the proxy a.example:3128");
        check("wss://x.example:8443/", http, https, "the proxy b.example:443 over TLS as somebody");
        check("wss://www.free.example/", http, https, "none");
        check("ws://10.1.2.3/", http, https, "none");
        check("ws://[::1]/", "http://[::2]:8080", "", "the proxy [::2]:8080");
        check("wss://x.example/", http, "", "none");
        let other = "the proxy is not an HTTP proxy, and no other kind can be used here";
        check("wss://x.example/", http, "socks5://user:pw@c.example", other);
    }
}
