//! Checks `Host` and `Origin` to reject DNS rebinding and pages of other sites.

use std::net::SocketAddr;

use crate::http::request::client_address::parse_ip;

/// Maximum length of a header value that a message repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 100;

/// Checks the `Host` and `Origin` of requests.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "not part of the public API")]
pub struct HostGuard {
    /// The address of the listener.
    pub address: SocketAddr,
    /// Further values of `Host`.
    pub hosts: Vec<String>,
    /// Further values of `Origin`.
    pub origins: Vec<String>,
    /// Whether a token is required, which a page of another site does not have.
    pub has_tokens: bool,
}

/// The header whose value is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum ForbiddenHeader {
    /// `Host`.
    Host,
    /// `Origin`.
    Origin,
}

impl ForbiddenHeader {
    /// The message for a request with this value of the header.
    pub(crate) fn message(self, value: Option<&str>) -> String {
        let (name, option) = match self {
            ForbiddenHeader::Host => ("Host", "--allow-host"),
            ForbiddenHeader::Origin => ("Origin", "--allow-origin"),
        };
        let is_plain =
            |it: &&str| it.len() <= MAX_SHOWN_BYTES && it.bytes().all(|byte| byte.is_ascii_graphic());
        let value = value.filter(is_plain);
        let shown = value.map(|value| format!(" `{value}`")).unwrap_or_default();
        let argument = match self {
            ForbiddenHeader::Host => value.map(without_port),
            ForbiddenHeader::Origin => value,
        };
        let argument = argument.map(|value| format!(" {value}")).unwrap_or_default();
        format!(
            "the value{shown} of the header `{name}` is not allowed: `{option}{argument}` of the gateway allows it"
        )
    }
}

impl HostGuard {
    /// Checks the values of the two headers.
    pub fn check(&self, host: Option<&str>, origin: Option<&str>) -> Result<(), ForbiddenHeader> {
        if !host.is_some_and(|host| self.is_host_allowed(host)) {
            return Err(ForbiddenHeader::Host);
        }
        match origin {
            None => Ok(()),
            Some(origin) if self.is_origin_allowed(origin) => Ok(()),
            Some(_) => Err(ForbiddenHeader::Origin),
        }
    }

    fn is_host_allowed(&self, host: &str) -> bool {
        let name = without_port(host);
        let is_listed = self
            .hosts
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name));
        // On an address that is not loopback, the gateway does not know its own names. If none is configured, any
        // `Host` is accepted, because a token is required.
        let accepts_any_host = self.hosts.is_empty() && self.has_tokens && !self.address.ip().is_loopback();
        is_local_name(name) || self.is_own_address(name) || is_listed || accepts_any_host
    }

    fn is_origin_allowed(&self, origin: &str) -> bool {
        let is_listed = self.origins.iter().any(|listed| listed.eq_ignore_ascii_case(origin));
        let is_local = origin.split_once("://").is_some_and(|(scheme, host)| {
            let name = without_port(host);
            matches!(scheme, "http" | "https") && (is_local_name(name) || self.is_own_address(name))
        });
        is_listed || is_local
    }

    /// Whether a host name is the listener's own address.
    fn is_own_address(&self, name: &str) -> bool {
        !self.address.ip().is_unspecified() && parse_ip(name) == Some(self.address.ip())
    }
}

/// `name:port` without the port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether the name in a header is this machine's. Names below `localhost` are not: a hostile resolver could lead a
/// page of such a name here.
fn is_local_name(name: &str) -> bool {
    // Compare with the most common forms first.
    name == "127.0.0.1"
        || name.eq_ignore_ascii_case("localhost")
        || parse_ip(name).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, host: &str, origin: Option<&str>, expected: Result<(), ForbiddenHeader>) {
        let address: SocketAddr = address.parse().unwrap();
        let guard = HostGuard {
            address,
            hosts: vec!["tools.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            has_tokens: !address.ip().is_loopback(),
        };
        assert_eq!(guard.check(Some(host), origin), expected, "{host} {origin:?}");
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let local = "127.0.0.1:80";
        check(local, "127.0.0.1:80", None, Ok(()));
        check(local, "LOCALHOST", Some("http://localhost:3000"), Ok(()));
        check(local, "[::1]:80", Some("https://[::1]"), Ok(()));
        check(local, "evil.example", None, Err(ForbiddenHeader::Host));
        check(local, "localhost.evil.example:80", None, Err(ForbiddenHeader::Host));
        check(local, "127.0.0.1.evil.example", None, Err(ForbiddenHeader::Host));
        check(local, "localhost", Some("http://evil.example"), Err(ForbiddenHeader::Origin));
        check(local, "localhost", Some("http://localhost.evil.example"), Err(ForbiddenHeader::Origin));
        check(local, "localhost", Some("null"), Err(ForbiddenHeader::Origin));
        check(local, "localhost", Some("file://localhost"), Err(ForbiddenHeader::Origin));
        check(local, "tools.example:80", Some("https://app.example"), Ok(()));
        check("192.0.2.1:80", "192.0.2.1:80", Some("http://192.0.2.1:80"), Ok(()));
        check("0.0.0.0:80", "192.0.2.1", None, Err(ForbiddenHeader::Host));
        check("0.0.0.0:80", "tools.example", Some("http://evil.example"), Err(ForbiddenHeader::Origin));
    }

    #[test]
    fn off_loopback_a_token_replaces_the_host_check() {
        let address = "0.0.0.0:80".parse().unwrap();
        let guard = HostGuard { address, hosts: Vec::new(), origins: Vec::new(), has_tokens: true };
        assert_eq!(guard.check(Some("anything.example"), None), Ok(()));
        assert_eq!(
            guard.check(Some("anything.example"), Some("http://evil.example")),
            Err(ForbiddenHeader::Origin)
        );
        assert_eq!(guard.check(None, None), Err(ForbiddenHeader::Host));
    }
}
