//! The address of a client that connects through proxies.
//!
//! Each proxy appends the address of its own peer to `X-Forwarded-For` or `Forwarded` (RFC 7239). Only what trusted
//! proxies have written counts, so the headers are read from their end. A client can send either header itself.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Maximum number of proxies in a chain.
const MAX_PROXIES: usize = 32;

/// The networks of the proxies that are trusted to name their peers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// A text that is neither a network nor an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network, such as 127.0.0.1 or 10.0.0.0/8")]
pub struct InvalidNetwork(String);

impl TrustedProxies {
    /// Reads networks such as `10.0.0.0/8`, and addresses.
    pub fn read<'a>(networks: impl IntoIterator<Item = &'a str>) -> Result<TrustedProxies, InvalidNetwork> {
        let read = |text: &str| {
            let network = IpNet::from_str(text).or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            network.map_err(|_| InvalidNetwork(text.chars().take(100).collect()))
        };
        networks.into_iter().map(read).collect::<Result<_, _>>().map(TrustedProxies)
    }

    /// The address of the client of a request that arrived from `peer`.
    ///
    /// If a request has both headers, they must name the same client, because a proxy sets only one and passes the
    /// other one on. Otherwise, and if a header cannot be read, it is the last address that is known.
    pub fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let forwarded_for = self.find_client(peer, headers, &X_FORWARDED_FOR, &parse_address);
        let forwarded = self.find_client(peer, headers, &header::FORWARDED, &parse_element);
        match (forwarded_for, forwarded) {
            (Some(one), Some(other)) if one != other => peer,
            (one, other) => one.or(other).unwrap_or(peer),
        }
    }

    /// The last address in a header that is no trusted proxy. `None` without the header.
    fn find_client(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        name: &HeaderName,
        parse: &dyn Fn(&str) -> Option<IpAddr>,
    ) -> Option<IpAddr> {
        let mut values = headers.get_all(name).iter().peekable();
        values.peek()?;
        // A value that is no text ends the chain.
        let values: Vec<&str> = values.map(|value| value.to_str().unwrap_or_default()).collect();
        let mut known = peer;
        for element in values.iter().rev().flat_map(|value| value.rsplit(',')).take(MAX_PROXIES) {
            match parse(element.trim()) {
                Some(address) => known = address,
                None => break,
            }
            if !self.contains(known) {
                break;
            }
        }
        Some(known)
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Parses an IP address, which may be in brackets.
pub(crate) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text).parse().ok()
}

/// Parses an address that may have a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn parse_address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    parse_ip(text).or_else(with_port).map(|address| address.to_canonical())
}

/// Parses an element of `Forwarded`: `for="[2001:db8::1]:4711";proto=https`.
fn parse_element(text: &str) -> Option<IpAddr> {
    let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    parse_address(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Expects the client of a request from `peer`. Headers are `f: …` for `Forwarded` and `x: …` for the other one.
    #[track_caller]
    fn check(peer: &str, headers: &[&str], want: &str) {
        let trusted = TrustedProxies::read(["10.0.0.0/8", "127.0.0.1", "2001:db8::/32"]).unwrap();
        let mut map = HeaderMap::new();
        for line in headers {
            let (name, value) = line.split_once(": ").unwrap();
            let name = if name == "f" { &header::FORWARDED } else { &X_FORWARDED_FOR };
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        assert_eq!(trusted.client_address(peer.parse().unwrap(), &map).to_string(), want, "{headers:?}");
    }

    // RPT-204
    #[test]
    fn only_trusted_proxies_name_the_client() {
        check("192.0.2.9", &["x: 192.0.2.1"], "192.0.2.9");
        check("127.0.0.1", &[], "127.0.0.1");
        check("127.0.0.1", &["x: 192.0.2.1"], "192.0.2.1");
        check("127.0.0.1", &["x: 192.0.2.1:4711"], "192.0.2.1");
        check("127.0.0.1", &["x: ::ffff:192.0.2.1"], "192.0.2.1");
        // What the client sent itself is further left.
        check("127.0.0.1", &["x: 198.51.100.7, 192.0.2.1"], "192.0.2.1");
        check("127.0.0.1", &["x: 198.51.100.7", "x: 192.0.2.1, 10.1.2.3"], "192.0.2.1");
        check("127.0.0.1", &["x: 10.0.0.1, 10.0.0.2"], "10.0.0.1");
        check("127.0.0.1", &["x: 192.0.2.1, unknown, 10.0.0.2"], "10.0.0.2");
        check("127.0.0.1", &["x: 192.0.2.1,"], "127.0.0.1");
        check("127.0.0.1", &["x: é, 10.0.0.2"], "127.0.0.1");
    }

    // RPT-204
    #[test]
    fn forwarded_header_is_read_too() {
        check("127.0.0.1", &["f: for=192.0.2.1;proto=https, For=10.0.0.1"], "192.0.2.1");
        check("127.0.0.1", &["f: proto=https;for=\"[2001:db9::1]:4711\""], "2001:db9::1");
        check("127.0.0.1", &["f: for=_hidden, for=10.0.0.1"], "10.0.0.1");
        check("127.0.0.1", &["f: by=10.0.0.1"], "127.0.0.1");
        // A proxy passes on the header that it does not know.
        check("127.0.0.1", &["f: for=198.51.100.7", "x: 192.0.2.1"], "127.0.0.1");
        check("127.0.0.1", &["f: for=192.0.2.1", "x: 192.0.2.1"], "192.0.2.1");
    }

    #[test]
    fn networks_and_addresses_are_read() {
        let invalid = TrustedProxies::read(["10.0.0.0/8", "proxy.example"]).unwrap_err();
        let message =
            "\"proxy.example\" is neither an address nor a network, such as 127.0.0.1 or 10.0.0.0/8";
        assert_eq!(invalid.to_string(), message);
        assert!(TrustedProxies::read(["::1", "fd00::/8"]).is_ok());
    }
}
