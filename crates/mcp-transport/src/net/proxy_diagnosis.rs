//! The address of the proxy for a URL, for error messages.

use std::fmt;

use hyper_util::client::proxy::matcher::Matcher;
use mcp_host_model::internal::is_loopback;
use url::Url;

use super::proxy::find_intercept;

/// A proxy that the environment or the system configures, without its credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyAddress {
    /// Its host, an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl ProxyAddress {
    /// Finds the proxy for a URL (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the system's
    /// settings); `None` if the connection is direct, as for loopback hosts.
    pub fn for_url(url: &Url) -> Option<ProxyAddress> {
        if is_loopback(url) { None } else { find_address(&Matcher::from_system(), url) }
    }
}

impl fmt::Display for ProxyAddress {
    /// `the proxy proxy.example:3128`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "the proxy [{}]:{}", self.host, self.port)
        } else {
            write!(f, "the proxy {}:{}", self.host, self.port)
        }
    }
}

/// The address of the proxy for a URL, also of a proxy that is not supported.
fn find_address(proxies: &Matcher, url: &Url) -> Option<ProxyAddress> {
    let intercept = find_intercept(proxies, url)?;
    let uri = intercept.uri();
    let default_port = match uri.scheme_str() {
        Some("https") => 443,
        Some(scheme) if scheme.starts_with("socks") => 1080,
        Some(_) | None => 80,
    };
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(ProxyAddress { host, port: uri.port_u16().unwrap_or(default_port) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, want: Option<&str>) {
        let proxies = Matcher::builder()
            .http("http://a.example:3128")
            .https("https://user:secret@b.example")
            .no("free.example")
            .build();
        let got = find_address(&proxies, &Url::parse(url).unwrap()).map(|it| it.to_string());
        assert_eq!(got.as_deref(), want, "{url}");
    }

    #[test]
    fn scheme_and_exceptions_select_the_proxy() {
        check("http://x.example/", Some("the proxy a.example:3128"));
        check("ws://x.example/", Some("the proxy a.example:3128"));
        check("https://x.example:8443/mcp", Some("the proxy b.example:443"));
        check("https://free.example/", None);
        assert_eq!(ProxyAddress::for_url(&Url::parse("https://localhost/").unwrap()), None);
        let host = "::2".to_owned();
        assert_eq!(ProxyAddress { host, port: 8080 }.to_string(), "the proxy [::2]:8080");
    }
}
