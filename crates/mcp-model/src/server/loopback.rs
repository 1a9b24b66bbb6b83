//! URLs of this machine.
//!
//! No name is resolved: the name or address in the URL decides. A name below `localhost` is special, too (RFC 6761).

use url::{Host, Url};

/// Returns whether the URL's host is this machine: `localhost` or a name below it, 127.0.0.0/8, or `[::1]`.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, want: bool) {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), want, "{url}");
    }

    #[test]
    fn loopback_hosts_are_recognized() {
        check("http://localhost:80/mcp", true);
        check("http://LOCALHOST./", true);
        check("http://a.localhost/", true);
        check("http://127.0.0.2:1/", true);
        check("ws://[::1]:1/", true);
        check("http://localhost.evil.example/", false);
        check("wss://127.0.0.1.evil.example/", false);
        check("http://10.0.0.1/", false);
    }
}
