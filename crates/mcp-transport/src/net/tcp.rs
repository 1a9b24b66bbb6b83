//! A TCP connection to a host by name or address.
//!
//! A name may have addresses that lead nowhere: the next is tried when one has been silent for a moment, the two
//! families in turn, and the first that answers counts (RFC 8305, in short).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use url::Host;

use super::tls::describe_io;

/// How long an address may be silent before the next one is tried beside it.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// How many addresses of a name are tried.
const MAX_ADDRESSES: usize = 16;

/// Connects. Says in words why it cannot. Dropping the future gives up all attempts.
pub(crate) async fn connect(host: &Host<String>, port: u16) -> Result<TcpStream, String> {
    let addresses = match host {
        Host::Ipv4(address) => vec![SocketAddr::new(IpAddr::V4(*address), port)],
        Host::Ipv6(address) => vec![SocketAddr::new(IpAddr::V6(*address), port)],
        Host::Domain(name) => match tokio::net::lookup_host((name.as_str(), port)).await {
            Ok(addresses) => interleave_families(addresses.collect()),
            Err(_) => return Err("the host name cannot be resolved".to_owned()),
        },
    };
    let stream = connect_first(addresses).await.map_err(|it| describe_io(&it))?;
    // Messages are small, and none may wait for the next. Where it cannot be set, things are slower.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

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
        let more = addresses.len() > 0;
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = failure.or(Some(error)),
            },
            () = tokio::time::sleep(ATTEMPT_DELAY), if more => {}
        }
    }
}

/// The families in turn, the resolver's favourite first.
fn interleave_families(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let favourite = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|it| it.is_ipv6() == favourite);
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
    fn the_families_take_turns() {
        check("", "");
        check("::1 ::2 ::3 10.0.0.1", "::1 10.0.0.1 ::2 ::3");
        check("10.0.0.1 10.0.0.2 ::1 ::2 ::3", "10.0.0.1 ::1 10.0.0.2 ::2 ::3");
        let many = (1..40).map(|it| format!("10.0.0.{it}")).collect::<Vec<_>>();
        check(&many.join(" "), &many[..16].join(" "));
    }

    #[tokio::test]
    async fn an_address_that_refuses_does_not_hide_the_next() {
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
