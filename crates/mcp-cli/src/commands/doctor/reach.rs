//! Whether a URL leads anywhere: its host's addresses, or those of the proxy before it, and a knock at the port.
//!
//! A host gives connecting one limit; looking up and knocking have the same, together.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mcp_model::UrlEndpoint;
use mcp_transport::ProxyAddress;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use super::examine::{Course, Said};

/// How long one address is tried, where several may be.
const TOUCH: Duration = Duration::from_secs(5);
/// How many addresses of a name are tried.
const ADDRESSES: usize = 4;
/// A limit longer than this is none that anybody waits for, and might be more than the clock can count.
const LONGEST: Duration = Duration::from_secs(60 * 60 * 24);

/// What to do about a name without an address.
const SPELLING: &str = "check the spelling of the host, and the network";
/// What to do about a proxy that is not there.
const PROXY: &str =
    "check the proxy in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; NO_PROXY names the hosts that need none";

/// Looks the host up and knocks at its port, within `limit`. Where a proxy stands before it, the proxy is what has to be
/// there: it may know names that we do not.
pub(super) async fn reach(course: &mut Course, endpoint: &UrlEndpoint, limit: Duration) -> Option<()> {
    let limit = limit.min(LONGEST);
    let deadline = Instant::now() + limit;
    if let Some(proxy) = ProxyAddress::before(&endpoint.url) {
        let said = match addresses(&proxy.host, proxy.port, deadline, limit).await {
            Ok(found) => knock(&found, proxy.port, deadline).await,
            Err(what) => Err((what, SPELLING)),
        };
        let said = match said {
            Ok(_) => Said::done(format!("{proxy} is there")),
            Err((what, _)) => Said::failed(format!("{proxy}: {what}"), Some(PROXY.to_owned())),
        };
        return course.step("proxy", said);
    }
    let (Some(host), Some(port)) = (endpoint.url.host_str(), endpoint.url.port_or_known_default()) else {
        let help = "write the host into the URL".to_owned();
        return course.step("address", Said::failed("the URL names no host", Some(help)));
    };
    // An address of six groups stands in brackets in a URL.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = match addresses(host, port, deadline, limit).await {
        Ok(found) => found,
        Err(what) => return course.step("address", Said::failed(what, Some(SPELLING.to_owned()))),
    };
    let shown: Vec<String> = found.iter().map(|it| it.ip().to_string()).collect();
    course.step("address", Said::done(shown.join(", ")))?;
    let said = match knock(&found, port, deadline).await {
        Ok(address) => Said::done(format!("port {port} of {} is open", address.ip())),
        Err((what, help)) => Said::failed(format!("port {port}: {what}"), Some(help.to_owned())),
    };
    course.step("port", said)
}

/// The first addresses of a name; a sentence where there are none.
async fn addresses(
    host: &str,
    port: u16,
    deadline: Instant,
    limit: Duration,
) -> Result<Vec<SocketAddr>, String> {
    match timeout_at(deadline, lookup_host((host, port))).await {
        Ok(Ok(found)) => {
            let found: Vec<SocketAddr> = found.take(ADDRESSES).collect();
            if found.is_empty() { Err(format!("{host} has no address")) } else { Ok(found) }
        }
        Ok(Err(error)) => Err(format!("the name {host} cannot be looked up: {error}")),
        Err(_) => Err(format!("the name {host} was not looked up within {} s", limit.as_secs_f64())),
    }
}

/// The first address that takes a connection; else what the last one did, and what to do about it.
async fn knock(
    addresses: &[SocketAddr],
    port: u16,
    deadline: Instant,
) -> Result<SocketAddr, (String, &'static str)> {
    let mut last = silence();
    for address in addresses {
        let until = deadline.min(Instant::now() + TOUCH);
        match timeout_at(until, TcpStream::connect(SocketAddr::new(address.ip(), port))).await {
            Ok(Ok(_)) => return Ok(*address),
            Ok(Err(error)) => last = refusal(&error),
            Err(_) => last = silence(),
        }
    }
    Err(last)
}

fn silence() -> (String, &'static str) {
    ("nobody answers there".to_owned(), "a firewall may be in between, or the host is down")
}

fn refusal(error: &io::Error) -> (String, &'static str) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            ("nobody listens there".to_owned(), "start the server, or correct the port")
        }
        _ => (error.to_string(), "check the network, and the host in the URL"),
    }
}
