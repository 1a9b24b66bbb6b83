//! Restricts requests to this machine and rejects web pages of other origins.
//!
//! A browser sends `Host` and `Origin` truthfully, so both must name this machine, by a name or address that
//! another site cannot use (DNS rebinding).

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;

/// Whether a request with these headers comes from this machine, to the server that listens at `own`.
pub(crate) fn is_local_request(headers: &HeaderMap, own: IpAddr) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_local = |authority: &str| {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let host = authority.host().trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address == own)
    };
    let has_local_origin = !headers.contains_key(ORIGIN)
        || text(ORIGIN).and_then(|origin| origin.strip_prefix("http://")).is_some_and(is_local);
    text(HOST).is_some_and(is_local) && has_local_origin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a request with this `Host` and `Origin`; an empty one is left out.
    #[track_caller]
    fn check(host: &str, origin: &str, want: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if !value.is_empty() {
                headers.insert(name, value.parse().unwrap());
            }
        }
        let own = "127.0.0.9".parse().unwrap();
        assert_eq!(is_local_request(&headers, own), want, "{host} {origin}");
    }

    #[test]
    fn only_local_hosts_and_origins_are_accepted() {
        for host in ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000", "127.0.0.9:1"] {
            check(host, "", true);
        }
        for host in ["", "example.com", "localhost.example.com", "10.0.0.1:8000", "a b"] {
            check(host, "", false);
        }
        check("localhost", "http://localhost:3000", true);
        check("localhost", "http://[::1]", true);
        for origin in ["http://example.com", "https://localhost", "null", "http://localhost.example.com"] {
            check("localhost", origin, false);
        }
    }
}
