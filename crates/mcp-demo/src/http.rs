//! The server over HTTP, on loopback only: Streamable HTTP, and beside it what came before it ([`crate::sse`]) and
//! WebSocket ([`crate::websocket`]).
//!
//! A browser's page must not reach it: besides the address, `Host` and `Origin` have to name this machine. Both eras
//! share the path `/mcp`; the legacy one has sessions, each with a state of its own.

use std::{future::Future, net::SocketAddr, sync::Arc};

use axum::{Router, serve::ListenerExt as _};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::net::TcpListener;

use crate::{
    life::Life,
    serve::{DemoError, Ended},
    server::Demo,
    sse,
    state::State,
    websocket::{self, Sockets},
};

const PATH: &str = "/mcp";

/// A demo server that has its address and waits for [`HttpServer::serve`].
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Takes a loopback address; port 0 lets the system choose one, which [`HttpServer::address`] tells.
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

    /// The URL to write into a configuration.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The URL for clients that know only HTTP with server-sent events, the transport of 2024-11-05.
    pub fn sse_url(&self) -> String {
        format!("http://{}{}", self.address, sse::PATH)
    }

    /// The URL for clients that speak WebSocket.
    pub fn websocket_url(&self) -> String {
        format!("ws://{}{}", self.address, websocket::PATH)
    }

    /// Serves until `shutdown` resolves or the tool `exit` is called.
    ///
    /// After `shutdown` open streams and sockets are closed and running calls given up. After `exit`, or when the future is
    /// dropped, only the listener is closed: open connections are left to the end of the runtime.
    pub async fn serve(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Ended, DemoError> {
        let life = Arc::new(Life::default());
        let process = Arc::new(State::default());
        let sockets = Sockets::new(self.address.ip(), Arc::clone(&process), Arc::clone(&life));
        let app = Router::new()
            .route_service(PATH, service(self.address, process, Arc::clone(&life)))
            .merge(sse::router(self.address, Arc::clone(&life)))
            .merge(sockets.route());
        // Answers are small, and none may wait for the next.
        let listener = self.listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let stopping = Arc::clone(&life);
        let served = axum::serve(listener, app).with_graceful_shutdown(async move {
            shutdown.await;
            stopping.end();
        });
        tokio::select! {
            biased;
            // Open streams are not even closed: the end of the process does that, as a crash would.
            code = life.exited() => Ok(Ended::Exited(code)),
            res = served => {
                sockets.closed().await;
                res.map(|()| Ended::Closed).map_err(DemoError::Http)
            }
        }
    }
}

fn service(
    address: SocketAddr,
    process: Arc<State>,
    life: Arc<Life>,
) -> StreamableHttpService<Demo, LocalSessionManager> {
    let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.ip().to_string()];
    let origins = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .with_cancellation_token(life.token());
    let factory = move || {
        let session = Arc::new(State::default());
        Ok(Demo::new(session, Arc::clone(&process), Arc::clone(&life)))
    };
    StreamableHttpService::new(factory, Arc::default(), config)
}
