//! Which `Host` and `Origin` get in: a page of another site whose name was made to lead here must not.

use std::net::{IpAddr, SocketAddr};

/// What gets in.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    /// Where it is listened at.
    pub(super) address: SocketAddr,
    /// Names that `Host` may hold besides.
    pub(super) hosts: Vec<String>,
    /// What `Origin` may hold besides.
    pub(super) origins: Vec<String>,
    /// A token is asked for, which a page of another site does not have.
    pub(super) has_tokens: bool,
}

/// What does not get in, in words that repeat nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intruder {
    Host,
    Origin,
}

impl Intruder {
    pub(super) fn words(self) -> &'static str {
        match self {
            Intruder::Host => "this `Host` is not served here",
            Intruder::Origin => "pages of this `Origin` are not served here",
        }
    }
}

impl Guard {
    /// Looks at the two headers.
    pub(super) fn check(&self, host: Option<&str>, origin: Option<&str>) -> Result<(), Intruder> {
        if !host.is_some_and(|it| self.is_host(it)) {
            return Err(Intruder::Host);
        }
        match origin {
            None => Ok(()),
            Some(origin) if self.is_origin(origin) => Ok(()),
            Some(_) => Err(Intruder::Origin),
        }
    }

    fn is_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let listed =
            self.hosts.iter().any(|it| it.eq_ignore_ascii_case(host) || it.eq_ignore_ascii_case(name));
        // Off loopback the names are the user's own; the token keeps strangers out where he has not said them.
        let free = self.hosts.is_empty() && self.has_tokens && !self.address.ip().is_loopback();
        is_loopback(name) || self.is_own(name) || listed || free
    }

    fn is_origin(&self, origin: &str) -> bool {
        let listed = self.origins.iter().any(|it| it.eq_ignore_ascii_case(origin));
        let name = origin.split_once("://").map(|(scheme, rest)| (scheme, without_port(rest)));
        let near = name.is_some_and(|(scheme, name)| {
            matches!(scheme, "http" | "https") && (is_loopback(name) || self.is_own(name))
        });
        listed || near
    }

    /// Is it the very address that is listened at?
    fn is_own(&self, name: &str) -> bool {
        !self.address.ip().is_unspecified() && address(name) == Some(self.address.ip())
    }
}

/// `name:port` without the port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    // As most say it.
    name == "127.0.0.1"
        || name.eq_ignore_ascii_case("localhost")
        || address(name).is_some_and(|it| it.is_loopback())
}

fn address(name: &str) -> Option<IpAddr> {
    let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, host: &str, origin: Option<&str>, want: Result<(), Intruder>) {
        let address: SocketAddr = address.parse().unwrap();
        let guard = Guard {
            address,
            hosts: vec!["tools.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            has_tokens: !address.ip().is_loopback(),
        };
        assert_eq!(guard.check(Some(host), origin), want, "{host} {origin:?}");
    }

    #[test]
    fn a_page_of_another_site_does_not_get_in() {
        let near = "127.0.0.1:80";
        check(near, "127.0.0.1:80", None, Ok(()));
        check(near, "LOCALHOST", Some("http://localhost:3000"), Ok(()));
        check(near, "[::1]:80", Some("https://[::1]"), Ok(()));
        check(near, "evil.example", None, Err(Intruder::Host));
        check(near, "localhost.evil.example:80", None, Err(Intruder::Host));
        check(near, "127.0.0.1.evil.example", None, Err(Intruder::Host));
        check(near, "localhost", Some("http://evil.example"), Err(Intruder::Origin));
        check(near, "localhost", Some("http://localhost.evil.example"), Err(Intruder::Origin));
        check(near, "localhost", Some("null"), Err(Intruder::Origin));
        check(near, "localhost", Some("file://localhost"), Err(Intruder::Origin));
        check(near, "tools.example:80", Some("https://app.example"), Ok(()));
        check("192.0.2.1:80", "192.0.2.1:80", Some("http://192.0.2.1:80"), Ok(()));
        check("0.0.0.0:80", "192.0.2.1", None, Err(Intruder::Host));
        check("0.0.0.0:80", "tools.example", Some("http://evil.example"), Err(Intruder::Origin));
    }

    #[test]
    fn off_loopback_a_token_stands_for_the_name() {
        let address = "0.0.0.0:80".parse().unwrap();
        let guard = Guard { address, hosts: Vec::new(), origins: Vec::new(), has_tokens: true };
        assert_eq!(guard.check(Some("anything.example"), None), Ok(()));
        assert_eq!(guard.check(Some("anything.example"), Some("http://evil.example")), Err(Intruder::Origin));
        assert_eq!(guard.check(None, None), Err(Intruder::Host));
    }
}
