//! Checks the network path to a URL: resolves the host name, or that of its proxy, and opens a TCP connection.
//!
//! Both steps together have the connect limit of the server, as in a host.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mcp_host_model::UrlEndpoint;
use mcp_host_transport::ProxyAddress;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use super::report::StepResult;
use super::step_log::StepLog;

/// The maximum of any time limit. Longer limits could overflow the clock.
const MAX_LIMIT: Duration = Duration::from_secs(60 * 60 * 24);
/// The connect timeout per address.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of addresses to try.
const MAX_ADDRESSES: usize = 4;

const RESOLVE_HELP: &str = "check the spelling of the host name, and the network";
const PROXY_HELP: &str = "check the proxy in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; NO_PROXY lists the hosts to \
    connect to directly";

/// Resolves the host and connects to its port, within `limit`. If the URL uses a proxy, only the proxy is
/// checked, because it may resolve names that this machine cannot.
pub(super) async fn check_network(step_log: &StepLog, endpoint: &UrlEndpoint, limit: Duration) -> Option<()> {
    let limit = limit.min(MAX_LIMIT);
    let deadline = Instant::now() + limit;
    if let Some(proxy) = ProxyAddress::for_url(&endpoint.url) {
        step_log.begin("proxy");
        let connected = match resolve(&proxy.host, proxy.port, deadline, limit).await {
            Ok(addresses) => connect_any(&addresses, proxy.port, deadline).await,
            Err(message) => Err((message, RESOLVE_HELP)),
        };
        let result = match connected {
            Ok(_) => StepResult::passed(format!("{proxy} is reachable")),
            Err((message, _)) => {
                StepResult::failed(format!("{proxy}: {message}"), Some(PROXY_HELP.to_owned()))
            }
        };
        return step_log.record("proxy", result);
    }
    let (Some(host), Some(port)) = (endpoint.url.host_str(), endpoint.url.port_or_known_default()) else {
        let help = "add a host to the URL".to_owned();
        return step_log.record("address", StepResult::failed("the URL has no host", Some(help)));
    };
    // An IPv6 address is in brackets in a URL.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    step_log.begin("address");
    let addresses = match resolve(host, port, deadline, limit).await {
        Ok(addresses) => addresses,
        Err(message) => {
            return step_log.record("address", StepResult::failed(message, Some(RESOLVE_HELP.to_owned())));
        }
    };
    let texts: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    step_log.record("address", StepResult::passed(texts.join(", ")))?;
    step_log.begin("port");
    let result = match connect_any(&addresses, port, deadline).await {
        Ok(address) => StepResult::passed(format!("port {port} of {} is open", address.ip())),
        Err((message, help)) => StepResult::failed(format!("port {port}: {message}"), Some(help.to_owned())),
    };
    step_log.record("port", result)
}

/// Resolves a name to its first addresses. An error is a message.
async fn resolve(
    host: &str,
    port: u16,
    deadline: Instant,
    limit: Duration,
) -> Result<Vec<SocketAddr>, String> {
    match timeout_at(deadline, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => {
            let addresses: Vec<SocketAddr> = addresses.take(MAX_ADDRESSES).collect();
            if addresses.is_empty() { Err(format!("{host} has no address")) } else { Ok(addresses) }
        }
        Ok(Err(error)) => Err(format!("cannot resolve the host name {host}: {error}")),
        Err(_) => Err(format!("the host name {host} was not resolved within {} s", limit.as_secs_f64())),
    }
}

/// Connects to the addresses in order and returns the first that accepts. An error is the message and help of the
/// last attempt.
async fn connect_any(
    addresses: &[SocketAddr],
    port: u16,
    deadline: Instant,
) -> Result<SocketAddr, (String, &'static str)> {
    let mut last_error = no_response();
    for address in addresses {
        let until = deadline.min(Instant::now() + ADDRESS_TIMEOUT);
        match timeout_at(until, TcpStream::connect(SocketAddr::new(address.ip(), port))).await {
            Ok(Ok(_)) => return Ok(*address),
            Ok(Err(error)) => last_error = connect_error(&error),
            Err(_) => last_error = no_response(),
        }
    }
    Err(last_error)
}

/// The message and help for an address that does not respond.
fn no_response() -> (String, &'static str) {
    ("no response".to_owned(), "the host may be down, or a firewall may block the connection")
}

/// The message and help for a failed connection.
fn connect_error(error: &io::Error) -> (String, &'static str) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            ("connection refused".to_owned(), "start the server or correct the port")
        }
        _ => (error.to_string(), "check the network, and the host in the URL"),
    }
}
