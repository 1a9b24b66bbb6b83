//! The HTTP server: its listener, its connections and its shutdown.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use governor::clock::DefaultClock;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::access::oauth::TokenVerifier;
use crate::access::tokens::Tokens;
use crate::gateway::Gateway;
use crate::http::app_state::AppState;
use crate::http::authorization::guard::HostGuard;
use crate::http::authorization::refusals::RefusalLog;
use crate::http::connection::active_requests::ActiveRequests;
use crate::http::connection::client_connection::ClientConnection;
use crate::http::connection::connection_table::{
    ConnectionPermit, ConnectionTable, ConnectionUse, EndSignals,
};
use crate::http::connection::serve;
use crate::http::connection::timed_stream::{TimeLimits, TimedStream};
use crate::http::connection::tls::{self, LoadedTls};
use crate::http::options::{HttpOptions, ServeError};
use crate::limits::bounds::Bounds;
use crate::session::dialog_table::ConnectionId;

/// How long connections may take at a shutdown to send the responses of cancelled requests.
const CANCEL_GRACE: Duration = Duration::from_millis(500);
/// Maximum time to receive the head of a request on a connection for health and metrics.
const OPERATOR_TIMEOUT: Duration = Duration::from_secs(5);
/// How often an evicted connection is checked for the end of a request that had just begun.
const EVICTION_CHECK: Duration = Duration::from_millis(100);
/// The pause after a connection could not be accepted, usually because of too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A gateway with a bound address. [`HttpServer::serve`] runs it.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<AppState>,
    tls: Option<TlsAcceptor>,
}

impl HttpServer {
    /// Binds an address. With port 0 the system chooses a port, see [`HttpServer::address`]. Without tokens
    /// only a loopback address is accepted.
    pub async fn bind(
        address: SocketAddr,
        gateway: Gateway,
        options: HttpOptions,
    ) -> Result<HttpServer, ServeError> {
        let gateway = Arc::clone(gateway.inner());
        let HttpOptions { tokens, resource_server, mut hosts, origins, trusted_proxies, tls, metrics } =
            options;
        if !address.ip().is_loopback() && tokens.is_empty() && resource_server.is_none() {
            return Err(ServeError::TokensRequired(address));
        }
        let (tls, certificate_expiry) = match tls {
            Some(files) => {
                let LoadedTls { acceptor, expiry } = tls::load_acceptor(&files).await?;
                (Some(acceptor), expiry)
            }
            None => (None, None),
        };
        let failed = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let scope = Arc::new(gateway.options.scope.clone());
        let listener_url = listening_url(address, tls.is_some());
        let verifier = resource_server
            .map(|options| TokenVerifier::new(options, &listener_url, Arc::clone(&scope)))
            .transpose()
            .map_err(ServeError::PublicUrl)?;
        // A gateway on loopback does not know the name under which a proxy publishes it.
        if address.ip().is_loopback() {
            hosts.extend(verifier.as_ref().and_then(|verifier| verifier.public_host()));
        }
        let has_tokens = !tokens.is_empty() || verifier.is_some();
        let app = AppState {
            guard: HostGuard { address, hosts, origins, has_tokens },
            trusted_proxies,
            certificate_expiry,
            refusal_log: RefusalLog::new(DefaultClock::default()),
            tokens: watch::Sender::new(tokens.within(&scope)),
            verifier,
            metrics,
            request_permits: Arc::new(Semaphore::new(gateway.options.bounds.requests)),
            stateless_permits: Arc::default(),
            session_permits: Arc::default(),
            stream_permits: Arc::default(),
            fair_queue: Arc::default(),
            shutdown: CancellationToken::new(),
            scope,
            gateway,
        };
        Ok(HttpServer { listener, address, app: Arc::new(app), tls })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the whole catalog. `/NAME` after it selects one server.
    pub fn url(&self) -> String {
        listening_url(self.address, self.tls.is_some())
    }

    /// Returns a handle that replaces the tokens while the server runs.
    pub fn token_updater(&self) -> TokenUpdater {
        TokenUpdater(Arc::clone(&self.app))
    }

    /// Serves until `shutdown` resolves. Then new connections serve health and metrics only, and `/readyz` fails.
    /// Running requests may finish within [`Bounds::shutdown_grace`], and all sessions and dialogs end.
    ///
    /// Dropping the future closes all connections at once. Sessions and dialogs then end with the gateway.
    pub fn serve(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.serve_boxed(Box::pin(shutdown))
    }

    /// Not generic, so that this crate compiles the server, and not each of its users.
    fn serve_boxed(self, shutdown: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        Box::pin(self.accept_until(shutdown))
    }

    async fn accept_until(self, mut shutdown: BoxFuture<'static, ()>) {
        let HttpServer { listener, address: _, app, tls } = self;
        let Bounds { idle_timeout, connections: max_connections, .. } = *app.bounds();
        let table = ConnectionTable::new(max_connections);
        // Ends with this function.
        let mut queue_task = JoinSet::new();
        let fair_queue = Arc::clone(&app.fair_queue);
        queue_task.spawn(async move { fair_queue.run().await });
        let mut connections = JoinSet::new();
        let mut cleanup =
            interval((idle_timeout / 4).clamp(Duration::from_millis(100), Duration::from_secs(60)));
        cleanup.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let key_refresh = async {
            match &app.verifier {
                Some(verifier) => verifier.refresh_keys().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(key_refresh);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                _ = cleanup.tick() => {
                    app.gateway.remove_expired(Instant::now());
                    app.refusal_log.log_unreported();
                }
                Some(_) = connections.join_next() => {}
                never = &mut key_refresh => match never {},
                (stream, peer) = accept(&listener) => {
                    let requests = ActiveRequests::default();
                    match table.add(requests.clone()) {
                        Some((permit, signals)) => {
                            let connection = new_connection(&app, permit, requests, peer);
                            let serving = serve_connection(stream, Arc::clone(&app), tls.clone(), connection, signals);
                            connections.spawn(serving);
                        }
                        None => tracing::warn!("closing a new connection: all connections are in use"),
                    }
                }
            }
        }
        app.refusal_log.log_unreported();
        app.shutdown.cancel();
        table.shut_down();
        let sessions = app.gateway.sessions.take_all();
        sessions.iter().for_each(|session| session.close_streams());
        let grace = app.bounds().shutdown_grace;
        let drained = timeout(grace, join_all(&mut connections));
        let drained = tokio::select! {
            biased;
            drained = drained => drained,
            never = serve_health(&listener, &app, tls.as_ref(), &table) => match never {},
        };
        drop(listener);
        if drained.is_err() {
            tracing::warn!("cancelling the requests that still run {grace:?} after the shutdown began");
        }
        sessions.iter().for_each(|session| session.end());
        // Cancelled requests have a response.
        let _ = timeout(CANCEL_GRACE, join_all(&mut connections)).await;
        connections.shutdown().await;
        app.gateway.pending_inputs.drop_all();
        app.gateway.dialogs.drop_all();
    }
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again in {ACCEPT_RETRY:?}");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

fn new_connection(
    app: &AppState,
    permit: ConnectionPermit,
    requests: ActiveRequests,
    peer: SocketAddr,
) -> Arc<ClientConnection> {
    let (id, gateway) = (ConnectionId::unique(), Arc::clone(&app.gateway));
    let peer = peer.ip().to_canonical();
    Arc::new(ClientConnection { id, permit, requests, peer, gateway, features: Mutex::default() })
}

/// Serves health and metrics on new connections during the shutdown, so that a load balancer learns of it. Never
/// returns. Dropping the future closes these connections.
async fn serve_health(
    listener: &TcpListener,
    app: &Arc<AppState>,
    tls: Option<&TlsAcceptor>,
    table: &Arc<ConnectionTable>,
) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            (stream, peer) = accept(listener) => {
                let requests = ActiveRequests::default();
                let Some((permit, signals)) = table.add_for_operator(requests.clone()) else { continue };
                let connection = new_connection(app, permit, requests, peer);
                connections.spawn(serve_connection(stream, Arc::clone(app), tls.cloned(), connection, signals));
            }
        }
    }
}

/// Waits until all connections have ended.
async fn join_all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Replaces the tokens of a running server.
#[derive(Debug, Clone)]
pub struct TokenUpdater(Arc<AppState>);

impl TokenUpdater {
    /// Accepts these tokens from now on and no others. Streams that were opened with a removed token end; so do the
    /// sessions, dialogs and pending input of clients that lose a token or whose view changes. A client keeps them if
    /// another token has the same name and view. Returns the number of sessions that ended.
    ///
    /// An empty list is refused with `None`, because it would admit everybody.
    pub fn replace(&self, tokens: Tokens) -> Option<usize> {
        if tokens.is_empty() {
            return None;
        }
        let gateway = &self.0.gateway;
        let revoked = self.0.tokens.borrow().revoked_by(&tokens);
        // Published first, so that no revoked client starts another session.
        let tokens = tokens.within(&self.0.scope).continue_counts(&self.0.tokens.borrow());
        self.0.tokens.send_replace(tokens);
        Some(gateway.end_clients(&revoked))
    }
}

/// The URL of a listener.
fn listening_url(address: SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    format!("{scheme}://{address}/mcp")
}

/// Serves one connection until it ends.
async fn serve_connection(
    stream: TcpStream,
    app: Arc<AppState>,
    tls: Option<TlsAcceptor>,
    connection: Arc<ClientConnection>,
    EndSignals { eviction, shutdown }: EndSignals,
) {
    // Responses are small and must be sent at once, so disable Nagle's algorithm.
    let _ = stream.set_nodelay(true);
    let Bounds { receive_timeout: mut receive, send_timeout: send, .. } = *app.bounds();
    if connection.permit.usage() == ConnectionUse::Operator {
        receive = receive.min(OPERATOR_TIMEOUT);
    }
    let counters = Arc::clone(&app.gateway.counters);
    let requests = connection.requests.clone();
    let limits = TimeLimits { head_timeout: receive, write_timeout: send };
    let stream = TimedStream::new(stream, limits, Arc::clone(&counters), requests.clone());
    let serving = async move {
        match tls {
            None => serve::serve_http1(stream, app, connection, shutdown).await,
            Some(tls) => match timeout(receive, tls.accept(stream)).await {
                // Boxed, because otherwise the future of a connection without TLS would be as large as this one.
                Ok(Ok(stream)) if tls::is_http2(&stream) => {
                    Box::pin(serve::serve_http2(stream, app, connection, shutdown)).await
                }
                Ok(Ok(stream)) => Box::pin(serve::serve_http1(stream, app, connection, shutdown)).await,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    Ok(())
                }
                Err(_) => {
                    tracing::debug!("a TLS handshake took longer than {receive:?}");
                    Ok(())
                }
            },
        }
    };
    let served = tokio::select! {
        biased;
        served = serving => served,
        () = wait_for_eviction(eviction, &requests) => {
            tracing::debug!("closing an idle connection to make room for another");
            Ok(())
        }
    };
    if let Err(error) = served {
        // hyper sends the error response itself.
        if error.is_parse_too_large() {
            counters.count_response(431);
        } else if error.is_parse() {
            counters.count_response(400);
        }
        tracing::debug!(%error, "an HTTP connection failed");
    }
}

/// Resolves when the connection is evicted and runs no request. A request may have begun at the time of the eviction.
async fn wait_for_eviction(eviction: oneshot::Receiver<()>, requests: &ActiveRequests) {
    if eviction.await.is_err() {
        return std::future::pending().await;
    }
    while !requests.is_empty() {
        sleep(EVICTION_CHECK).await;
    }
}
