//! Serves over HTTP on a loopback address: Streamable HTTP, the older SSE transport ([`sse`]) and WebSocket
//! ([`websocket`]).
//!
//! Web pages of other origins are rejected: `Host` and `Origin` must name this machine. Both eras share the
//! path `/mcp`; each legacy session has its own state.

mod loopback;
mod sse;
mod websocket;

use std::{future::Future, net::SocketAddr, sync::Arc};

use axum::{Router, serve::ListenerExt as _};
use futures_util::future::BoxFuture;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::net::TcpListener;

use crate::{
    lifetime::Lifetime,
    serve::{DemoError, ServeOutcome},
    server::DemoHandler,
    state::DemoState,
};

use websocket::Sockets;

/// The path of Streamable HTTP.
const PATH: &str = "/mcp";

/// A demo server that is bound to an address.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Binds to a loopback address. With port 0, the system chooses a port, see [`HttpServer::address`].
    pub async fn bind(address: SocketAddr) -> Result<HttpServer, DemoError> {
        if !address.ip().is_loopback() {
            return Err(DemoError::NotLoopback(address));
        }
        let failed = |source| DemoError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(HttpServer { listener, address })
    }

    /// The address in use.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of Streamable HTTP.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The URL of HTTP with server-sent events, the transport of 2024-11-05.
    pub fn sse_url(&self) -> String {
        format!("http://{}{}", self.address, sse::PATH)
    }

    /// The URL of WebSocket.
    pub fn websocket_url(&self) -> String {
        format!("ws://{}{}", self.address, websocket::PATH)
    }

    /// Serves until `shutdown` resolves or the tool `exit` is called.
    ///
    /// After `shutdown`, open streams and sockets are closed and running calls cancelled. After `exit`, or
    /// when the future is dropped, only the listener is closed; open connections end with the runtime.
    pub fn serve(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = Result<ServeOutcome, DemoError>> + Send + 'static {
        self.serve_boxed(Box::pin(shutdown))
    }

    /// Not generic, so that this crate compiles the server, and not each of its users.
    fn serve_boxed(
        self,
        shutdown: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, Result<ServeOutcome, DemoError>> {
        Box::pin(self.serve_until(shutdown))
    }

    async fn serve_until(self, shutdown: BoxFuture<'static, ()>) -> Result<ServeOutcome, DemoError> {
        let lifetime = Arc::new(Lifetime::default());
        let shared_state = Arc::new(DemoState::default());
        let sockets = Sockets::new(self.address.ip(), Arc::clone(&shared_state), Arc::clone(&lifetime));
        let app = Router::new()
            .route_service(PATH, streamable_http_service(self.address, shared_state, Arc::clone(&lifetime)))
            .merge(sse::router(self.address, Arc::clone(&lifetime)))
            .merge(sockets.route());
        // Responses are small; Nagle's algorithm would delay them.
        let listener = self.listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let stopping = Arc::clone(&lifetime);
        let served = axum::serve(listener, app).with_graceful_shutdown(async move {
            shutdown.await;
            stopping.end();
        });
        tokio::select! {
            biased;
            // Open streams are not closed here, as in a crash.
            code = lifetime.wait_for_exit() => Ok(ServeOutcome::Exited(code)),
            result = served => {
                sockets.wait_until_closed().await;
                result.map(|()| ServeOutcome::Closed).map_err(DemoError::Http)
            }
        }
    }
}

/// The service of Streamable HTTP, in both eras.
fn streamable_http_service(
    address: SocketAddr,
    shared_state: Arc<DemoState>,
    lifetime: Arc<Lifetime>,
) -> StreamableHttpService<DemoHandler, LocalSessionManager> {
    let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.ip().to_string()];
    let origins = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .with_cancellation_token(lifetime.token());
    let factory = move || {
        let session = Arc::new(DemoState::default());
        Ok(DemoHandler::new(session, Arc::clone(&shared_state), Arc::clone(&lifetime)))
    };
    StreamableHttpService::new(factory, Arc::default(), config)
}
