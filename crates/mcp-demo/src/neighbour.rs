//! Who is let in: only this machine, and no page that some browser shows.
//!
//! A browser sends `Host` and `Origin` whatever its page would like, so both have to name this machine, under a name or
//! an address that no stranger can point here.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;

/// Whether a request with these headers comes from this machine, to the server that listens at `own`.
pub(crate) fn is_neighbour(headers: &HeaderMap, own: IpAddr) -> bool {
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok());
    let is_here = |authority: &str| {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let host = authority.host().trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback() || it == own)
    };
    let origin_is_here = match headers.contains_key(ORIGIN) {
        false => true,
        true => text(ORIGIN).and_then(|it| it.strip_prefix("http://")).is_some_and(is_here),
    };
    text(HOST).is_some_and(is_here) && origin_is_here
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a request with this `Host` and `Origin` (none where empty) from here?
    #[track_caller]
    fn check(host: &str, origin: &str, want: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if !value.is_empty() {
                headers.insert(name, value.parse().unwrap());
            }
        }
        let own = "127.0.0.9".parse().unwrap();
        assert_eq!(is_neighbour(&headers, own), want, "{host} {origin}");
    }

    #[test]
    fn only_this_machine_is_let_in() {
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
