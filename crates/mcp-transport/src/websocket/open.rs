//! From a URL to an open WebSocket, within one limit of time: TCP, a proxy's tunnel, TLS, the upgrade.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use url::Host;

use super::observed::{Observed, Stream};
use super::{Place, proxy, reach, socket, upgrade};
use crate::Fault;
use crate::web::{nearby, tls};

/// How long the body of a refusal may take: what matters is the status.
pub(super) const EXPLAINING: Duration = Duration::from_secs(1);

/// How far an opening has come.
#[derive(Clone, Copy)]
enum Step {
    Connecting,
    Tunnelling,
    Securing,
    Asking,
}

/// Opens a WebSocket. Dropping the future gives it up.
pub(super) async fn open(place: &Place) -> Result<WebSocketStream<Observed>, Fault> {
    let step = Mutex::new(Step::Connecting);
    match tokio::time::timeout(place.connect, attempt(place, &step)).await {
        Ok(opened) => opened,
        Err(_) => {
            let why = match *step.lock().unwrap_or_else(PoisonError::into_inner) {
                Step::Connecting => "no connection",
                Step::Tunnelling => "no answer from the proxy",
                Step::Securing => "no end of the TLS handshake",
                Step::Asking => "no answer to the upgrade",
            };
            let limit = place.connect.as_secs_f64();
            Err(unreachable(place, &format!("{why} within {limit} s")))
        }
    }
}

async fn attempt(place: &Place, step: &Mutex<Step>) -> Result<WebSocketStream<Observed>, Fault> {
    let failed = |why: String| unreachable(place, &why);
    let reached = |next| *step.lock().unwrap_or_else(PoisonError::into_inner) = next;
    let stream = connect(place, &reached).await.map_err(failed)?;
    let mut stream = Observed::new(stream);
    reached(Step::Asking);
    let rest = upgrade::ask(place, &mut stream).await?;
    let settings = socket::settings(place.message_bytes);
    Ok(WebSocketStream::from_partially_read(stream, rest.to_vec(), Role::Client, Some(settings)).await)
}

/// A stream to the server, over TLS where the URL says so.
async fn connect(place: &Place, reached: &impl Fn(Step)) -> Result<Box<dyn Stream>, String> {
    let url = &place.url;
    let host = url.host().ok_or_else(|| "the URL names no host".to_owned())?.to_owned();
    let port = url.port_or_known_default().ok_or_else(|| "the URL names no port".to_owned())?;
    let proxy = match nearby::is_loopback(url) {
        true => None,
        false => proxy::find(&Matcher::from_system(), url)?,
    };
    let mut stream: Box<dyn Stream> = match proxy {
        None => Box::new(reach::connect(&host, port).await?),
        Some(proxy) => {
            let tcp = reach::connect(&proxy.host, proxy.port).await;
            let tcp = tcp.map_err(|it| format!("{}: {it}", proxy.label()))?;
            reached(Step::Tunnelling);
            let mut stream: Box<dyn Stream> = Box::new(tcp);
            if proxy.secure {
                let secured = secure(place, &proxy.host, stream).await;
                stream = secured.map_err(|it| format!("{}: {it}", proxy.label()))?;
            }
            proxy.tunnel(&mut *stream, url).await?;
            stream
        }
    };
    if url.scheme() == "wss" {
        reached(Step::Securing);
        stream = secure(place, &host, stream).await?;
    }
    Ok(stream)
}

/// TLS over a stream, with a certificate for `host`.
async fn secure(
    place: &Place,
    host: &Host<String>,
    stream: Box<dyn Stream>,
) -> Result<Box<dyn Stream>, String> {
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| "the host's name can stand in no certificate".to_owned())?,
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let config = tls::client_config(&place.authorities)?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    Ok(Box::new(secured.map_err(|it| tls::io_words(&it))?))
}

fn unreachable(place: &Place, why: &str) -> Fault {
    let message = place.redactor.clean(&format!("cannot connect to {}: {why}", place.label), 600);
    Fault { status: None, message, error: None }
}
