//! Addresses that a login may reach. No I/O.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use mcp_host_model::internal::is_loopback;

/// The scope of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkScope {
    /// The public internet.
    Public,
    /// A private network.
    Private,
    /// This machine.
    Loopback,
    /// Unusable, or link-local only (such as a cloud's metadata service), multicast and the like; never reachable.
    Forbidden,
}

/// The scope of an address; an address that embeds another one has that one's scope.
pub(crate) fn network_scope(address: IpAddr) -> NetworkScope {
    match address {
        IpAddr::V4(it) => v4_scope(it),
        IpAddr::V6(it) => v6_scope(it),
    }
}

fn v4_scope(address: Ipv4Addr) -> NetworkScope {
    let [a, b, c, _] = address.octets();
    // 192.0.0.0/24, for protocols of the IETF.
    let protocols = (a, b, c) == (192, 0, 0);
    // 100.64.0.0/10, for networks behind the NAT of a provider.
    let shared = a == 100 && (64..128).contains(&b);
    // 198.18.0.0/15, for measurements of devices.
    let benchmark = a == 198 && (b == 18 || b == 19);
    if address.is_loopback() {
        NetworkScope::Loopback
    } else if address.is_private() || shared {
        NetworkScope::Private
    } else if address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || benchmark
        || protocols
        || a == 0
        || a >= 240
    {
        NetworkScope::Forbidden
    } else {
        NetworkScope::Public
    }
}

fn v6_scope(address: Ipv6Addr) -> NetworkScope {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let low = Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match [a, b, c, d, e, f] {
        // IPv4 addresses as mapped, translated and NAT64 ones.
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => v4_scope(low),
        [0, 0, 0, 0, 0, 0] if address.is_loopback() => NetworkScope::Loopback,
        [0, 0, 0, 0, 0, 0] => NetworkScope::Forbidden,
        // 6to4.
        [0x2002, ..] => v4_scope(Ipv4Addr::from((u32::from(b) << 16) | u32::from(c))),
        // Teredo, documentation, and NAT64 of a local network.
        [0x2001, 0, ..] | [0x2001, 0xdb8, ..] | [0x64, 0xff9b, 1, ..] => NetworkScope::Forbidden,
        // Unique local, and the older site-local.
        _ if a & 0xfe00 == 0xfc00 || a & 0xffc0 == 0xfec0 => NetworkScope::Private,
        _ if a & 0xffc0 == 0xfe80 || address.is_multicast() => NetworkScope::Forbidden,
        _ => NetworkScope::Public,
    }
}

/// Whether a login for a server in `server_scope` may reach an address in `target_scope`.
pub(crate) fn may_reach(server_scope: NetworkScope, target_scope: NetworkScope) -> bool {
    match target_scope {
        NetworkScope::Public => true,
        NetworkScope::Private => matches!(server_scope, NetworkScope::Private | NetworkScope::Loopback),
        NetworkScope::Loopback => server_scope == NetworkScope::Loopback,
        NetworkScope::Forbidden => false,
    }
}

/// Checks whether a login for `resource` may reach a URL, by its text only. The error is the reason.
pub(crate) fn check_url(resource: &Url, url: &Url) -> Result<(), String> {
    let origin = url.origin().ascii_serialization();
    if is_loopback(url) && !is_loopback(resource) {
        return Err(format!("{origin} is on this machine, and the server is not"));
    }
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(url) => {}
        _ => return Err(format!("{origin} is not https")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("the address at {origin} names a user"));
    }
    if url.host() == resource.host() {
        return Ok(());
    }
    let address = match url.host() {
        Some(Host::Ipv4(it)) => IpAddr::V4(it),
        Some(Host::Ipv6(it)) => IpAddr::V6(it),
        Some(Host::Domain(_)) => return Ok(()),
        None => return Err("an address without a host".to_owned()),
    };
    let server_scope = match resource.host() {
        Some(Host::Ipv4(it)) => v4_scope(it),
        Some(Host::Ipv6(it)) => v6_scope(it),
        Some(Host::Domain(_)) if is_loopback(resource) => NetworkScope::Loopback,
        Some(Host::Domain(_)) | None => NetworkScope::Public,
    };
    if !may_reach(server_scope, network_scope(address)) {
        return Err(format!("{origin} is in a network that the server must not refer to"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, want: NetworkScope) {
        assert_eq!(network_scope(address.parse().unwrap()), want, "{address}");
    }

    #[test]
    fn addresses_have_the_expected_scope() {
        use NetworkScope::*;
        check("8.8.8.8", Public);
        check("2606:4700::1111", Public);
        check("127.8.0.1", Loopback);
        check("::1", Loopback);
        check("10.0.0.1", Private);
        check("172.20.0.1", Private);
        check("192.168.1.1", Private);
        check("100.64.0.1", Private);
        check("fd00::1", Private);
        check("fec0::1", Private);
        check("192.0.0.8", Forbidden);
        check("169.254.169.254", Forbidden);
        check("fe80::1", Forbidden);
        check("0.0.0.0", Forbidden);
        check("::", Forbidden);
        check("224.0.0.1", Forbidden);
        check("255.255.255.255", Forbidden);
    }

    #[test]
    fn embedded_address_is_recognized() {
        use NetworkScope::*;
        check("::ffff:169.254.169.254", Forbidden);
        check("::ffff:10.0.0.1", Private);
        check("64:ff9b::7f00:1", Loopback);
        check("::ffff:0:10.0.0.1", Private);
        check("2002:a00:1::", Private);
        check("::10.0.0.1", Forbidden);
    }

    #[test]
    fn public_server_may_refer_to_public_addresses_only() {
        use NetworkScope::*;
        let reachable = |server_scope| {
            [Public, Private, Loopback, Forbidden].map(|target_scope| may_reach(server_scope, target_scope))
        };
        assert_eq!(reachable(Public), [true, false, false, false]);
        assert_eq!(reachable(Private), [true, true, false, false]);
        assert_eq!(reachable(Loopback), [true, true, true, false]);
    }

    #[track_caller]
    fn check_policy(resource: &str, url: &str, want: Result<(), &str>) {
        let got = check_url(&Url::parse(resource).unwrap(), &Url::parse(url).unwrap());
        assert_eq!(got.as_ref().map_err(String::as_str).copied(), want, "{resource} {url}");
    }

    #[test]
    fn url_is_checked_by_its_text_first() {
        let public = "https://example.com/mcp";
        check_policy(public, "https://login.example.org/token", Ok(()));
        check_policy(public, "http://login.example.org/token", Err("http://login.example.org is not https"));
        check_policy(public, "file:///etc/passwd", Err("null is not https"));
        let loopback = "https://127.0.0.1 is on this machine, and the server is not";
        check_policy(public, "https://127.0.0.1/token", Err(loopback));
        let link_local = "https://169.254.169.254 is in a network that the server must not refer to";
        check_policy(public, "https://169.254.169.254/latest", Err(link_local));
        let private = "https://10.0.0.1 is in a network that the server must not refer to";
        check_policy(public, "https://10.0.0.1/", Err(private));
        check_policy(
            public,
            "https://u:p@example.org/",
            Err("the address at https://example.org names a user"),
        );
        check_policy("https://10.0.0.1/mcp", "https://10.0.0.2/token", Ok(()));
        check_policy("https://10.0.0.1/mcp", "https://10.0.0.1/token", Ok(()));
        check_policy("http://localhost:1/mcp", "http://127.0.0.1:2/token", Ok(()));
        check_policy(
            "http://127.0.0.1:1/mcp",
            "http://login.example.org/",
            Err("http://login.example.org is not https"),
        );
    }
}
