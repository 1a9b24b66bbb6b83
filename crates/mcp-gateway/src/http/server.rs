//! The listener, its connections, and their end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::guard::Guard;
use super::line::Line;
use super::modern::Counted;
use super::paced::Paced;
use super::wire::{NoHead, Wire};
use super::{HttpOptions, MoreMetrics, ServeError, routes, tls};
use crate::access::scope::Leased;
use crate::access::scope::Scope;
use crate::access::tokens::Tokens;
use crate::gateway::{Gateway, Inner};
use crate::limits::bounds::Bounds;

/// How long open requests may go on when the server ends.
const GRACE: Duration = Duration::from_secs(5);

/// A gateway that has its address and waits for [`HttpServer::serve`].
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    door: Arc<Door>,
    tls: Option<TlsAcceptor>,
}

/// What every connection shares.
pub(super) struct Door {
    pub(super) gateway: Arc<Inner>,
    /// What everybody sees at most.
    pub(super) scope: Arc<Scope>,
    /// The same without what each dialog has an instance of its own of.
    pub(super) without_leased: Arc<Scope>,
    pub(super) tokens: Tokens,
    pub(super) guard: Guard,
    /// What the process says besides.
    pub(super) metrics: Option<MoreMetrics>,
    /// Places for requests, all clients together.
    pub(super) places: Arc<Semaphore>,
    /// The requests of the stateless era, which nobody takes back by their ids.
    pub(super) stateless: Arc<Counted>,
    /// The requests of sessions, of those who have tokens.
    pub(super) in_sessions: Arc<Counted>,
    /// Streams that stay open.
    pub(super) streams: Arc<Counted>,
    /// Cancelled when no more is served.
    pub(super) over: CancellationToken,
}

impl Door {
    pub(super) fn bounds(&self) -> &Bounds {
        &self.gateway.options.bounds
    }
}

impl HttpServer {
    /// Takes an address; port 0 lets the system choose one, which [`HttpServer::address`] tells. An address that others
    /// can reach is refused where there are no tokens.
    pub async fn bind(
        address: SocketAddr,
        gateway: Gateway,
        options: HttpOptions,
    ) -> Result<HttpServer, ServeError> {
        let gateway = Arc::clone(gateway.inner());
        let HttpOptions { tokens, hosts, origins, tls, metrics } = options;
        if !address.ip().is_loopback() && tokens.is_empty() {
            return Err(ServeError::Open(address));
        }
        let tls = match tls {
            Some(files) => Some(tls::acceptor(&files).await?),
            None => None,
        };
        let failed = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let guard = Guard { address, hosts, origins, has_tokens: !tokens.is_empty() };
        let places = Arc::new(Semaphore::new(gateway.options.bounds.requests));
        let (stateless, in_sessions, streams) = (Arc::default(), Arc::default(), Arc::default());
        let over = CancellationToken::new();
        let scope = gateway.options.scope.clone();
        let without_leased = Arc::new(Scope { leased: Leased::Hidden, ..scope.clone() });
        let scope = Arc::new(scope);
        let door = Door {
            gateway,
            scope,
            without_leased,
            tokens,
            guard,
            metrics,
            places,
            stateless,
            in_sessions,
            streams,
            over,
        };
        Ok(HttpServer { listener, address, door: Arc::new(door), tls })
    }

    /// The address in use.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the whole catalog.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/mcp", self.address)
    }

    /// Serves until `shutdown` resolves; then open requests have a short grace, and every session and dialog ends.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let HttpServer { listener, address: _, door, tls } = self;
        let bounds = door.bounds().clone();
        let places = Arc::new(Semaphore::new(bounds.connections));
        let mut connections = JoinSet::new();
        let mut sweeping =
            interval((bounds.idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(60)));
        sweeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                _ = sweeping.tick() => door.gateway.sweep(Instant::now()),
                Some(_) = connections.join_next() => {}
                place = Arc::clone(&places).acquire_owned() => {
                    let place = place.expect("it is never closed");
                    let accepted = tokio::select! {
                        biased;
                        () = &mut shutdown => break,
                        _ = sweeping.tick() => { door.gateway.sweep(Instant::now()); continue }
                        accepted = listener.accept() => accepted,
                    };
                    match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(connection(stream, Arc::clone(&door), tls.clone(), place));
                        }
                        Err(error) => {
                            // Most often too many open files: others must close first.
                            tracing::warn!(%error, "a connection could not be accepted");
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                }
            }
        }
        drop(listener);
        door.over.cancel();
        door.gateway.sessions.take_all().iter().for_each(|it| it.end());
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            tracing::warn!("open requests are given up");
        }
        connections.shutdown().await;
        door.gateway.parked.drop_all();
        door.gateway.dialogs.drop_all();
    }
}

/// Boxed here: a future is compiled with whoever knows what it is, and the program that awaits the server may be one that
/// is built for size.
fn connection(
    stream: TcpStream,
    door: Arc<Door>,
    tls: Option<TlsAcceptor>,
    place: OwnedSemaphorePermit,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        // Answers are small, and none may wait for the next.
        let _ = stream.set_nodelay(true);
        let bounds = door.bounds();
        let stream = Paced::new(stream, bounds.send, Arc::clone(&door.gateway.counts));
        match tls {
            None => talk(stream, &door).await,
            Some(tls) => match timeout(bounds.receive, tls.accept(stream)).await {
                // Boxed, for every connection would be as large.
                Ok(Ok(stream)) => Box::pin(talk(stream, &door)).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            },
        }
        drop(place);
    })
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, door: &Arc<Door>) {
    let line = Line::new(Arc::clone(door));
    let mut wire = Wire::new(stream);
    match talked(&line, &mut wire).await {
        Ok(()) => wire.end().await,
        Err(error) => tracing::debug!(%error, "a connection ended badly"),
    }
}

/// One request after the other, until the client or the server has no more.
async fn talked<S: AsyncRead + AsyncWrite + Unpin>(line: &Line, wire: &mut Wire<S>) -> io::Result<()> {
    let door = &line.door;
    let mut over = pin!(door.over.cancelled());
    loop {
        let head = {
            let reading = pin!(wire.head());
            tokio::select! {
                biased;
                head = line.alarm.within(door.bounds().receive, reading) => head,
                () = &mut over => return Ok(()),
            }
        };
        let res = match head {
            Some(Ok(head)) => match routes::answer(line, wire, head).await {
                Some(res) => res,
                None => return Ok(()),
            },
            Some(Err(NoHead::Refused(refused))) => routes::status(refused.status()),
            Some(Err(NoHead::Gone)) => return Ok(()),
            Some(Err(NoHead::Io(error))) => return Err(error),
            None => {
                tracing::debug!("a client took too long for a request");
                return Ok(());
            }
        };
        door.gateway.counts.responded(res.status.as_u16());
        if door.over.is_cancelled() {
            wire.finish();
        }
        if !wire.respond(res).await? {
            return Ok(());
        }
    }
}
