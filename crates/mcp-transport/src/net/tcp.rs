//! TCP connections to a host by name or address.
//!
//! A name may have addresses that do not respond. The next address is tried after a short delay, alternating
//! between the families, and the first connection wins (a simple form of RFC 8305).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use url::Host;

use super::tls::root_cause;
use crate::error::net_failure::NetFailure;

/// Delay after which the next address is tried in parallel.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Maximum number of addresses that are tried.
const MAX_ADDRESSES: usize = 16;

/// Connects to the first of the host's addresses that accepts. Dropping the future cancels all attempts.
pub(crate) async fn connect(host: &Host<String>, port: u16) -> Result<TcpStream, NetFailure> {
    let addresses = match host {
        Host::Ipv4(address) => vec![SocketAddr::new(IpAddr::V4(*address), port)],
        Host::Ipv6(address) => vec![SocketAddr::new(IpAddr::V6(*address), port)],
        Host::Domain(name) => match tokio::net::lookup_host((name.as_str(), port)).await {
            Ok(addresses) => interleave_families(addresses.collect()),
            Err(_) => return Err("the host name cannot be resolved".into()),
        },
    };
    let stream = connect_first(addresses).await.map_err(|error| root_cause(&error))?;
    // Small messages must not be delayed by Nagle's algorithm. If the option cannot be set, only latency suffers.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Tries the addresses in order. The next attempt starts after `ATTEMPT_DELAY`, or at once when an attempt fails.
/// If all fail, returns the first error.
async fn connect_first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut addresses = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = None;
    loop {
        match addresses.next() {
            Some(address) => attempts.push(TcpStream::connect(address)),
            None if attempts.is_empty() => {
                return Err(failure.unwrap_or_else(|| io::ErrorKind::HostUnreachable.into()));
            }
            None => {}
        }
        let has_more = addresses.len() > 0;
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = failure.or(Some(error)),
            },
            () = tokio::time::sleep(ATTEMPT_DELAY), if has_more => {}
        }
    }
}

/// Alternates between the address families, starting with that of the resolver's first address.
fn interleave_families(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let starts_with_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == starts_with_ipv6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut res = Vec::new();
    while res.len() < MAX_ADDRESSES && first.len() + second.len() > 0 {
        res.extend(first.next());
        res.extend(second.next());
    }
    res.truncate(MAX_ADDRESSES);
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(addresses: &str, want: &str) {
        let parse = |it: &str| SocketAddr::new(it.parse().unwrap(), 1);
        let got = interleave_families(addresses.split_whitespace().map(parse).collect());
        let got: Vec<String> = got.iter().map(|it| it.ip().to_string()).collect();
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn address_families_alternate() {
        check("", "");
        check("::1 ::2 ::3 10.0.0.1", "::1 10.0.0.1 ::2 ::3");
        check("10.0.0.1 10.0.0.2 ::1 ::2 ::3", "10.0.0.1 ::1 10.0.0.2 ::2 ::3");
        let many = (1..40).map(|it| format!("10.0.0.{it}")).collect::<Vec<_>>();
        check(&many.join(" "), &many[..16].join(" "));
    }

    #[tokio::test]
    async fn next_address_is_tried_after_a_refusal() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let closed = {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap()
        };
        assert_eq!(connect_first(vec![closed, open]).await.unwrap().peer_addr().unwrap(), open);
        let error = connect_first(vec![closed, closed]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
