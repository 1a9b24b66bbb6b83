//! Detection of loopback hosts, for which no proxy is used.

use url::{Host, Url};

/// Whether the URL's host is this machine. Decided by the name or address in the URL: no name is resolved.
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
