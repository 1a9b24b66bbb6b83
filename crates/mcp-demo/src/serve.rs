//! Serves over standard input and output, or over any two streams.
//!
//! At the end of input, running calls are cancelled and the server ends.

use std::{io, net::SocketAddr, sync::Arc};

use futures_util::future::BoxFuture;
use rmcp::{
    RoleServer,
    service::{QuitReason, ServerInitializeError, serve_server},
    transport::{Transport, async_rw::AsyncRwTransport, io::stdio_pipes},
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    connection::DemoConnection,
    lifetime::Lifetime,
    server::DemoHandler,
    state::{CustomTools, DemoState},
};

/// How serving ended without an error.
#[must_use = "on `Exited`, the process must exit with the code"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "mcp-cli ends with an exit code for each")]
pub enum ServeOutcome {
    /// The client disconnected, or the owner stopped the server.
    Closed,
    /// The tool `exit` was called. The caller should exit the process with this code at once.
    Exited(i32),
}

/// Why the demo server could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The address is not a loopback address. The demo server has no authentication.
    #[error("{0} is not a loopback address: the demo server is for this machine only")]
    NotLoopback(SocketAddr),
    /// The address is in use or not available.
    #[error("could not listen on {address}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The handshake failed.
    #[error("the client did not open a session")]
    Initialize(#[source] Box<ServerInitializeError>),
    /// A task of the server panicked.
    #[error("the server panicked")]
    Panicked(#[source] tokio::task::JoinError),
    /// The listener failed.
    #[error("could not serve over HTTP")]
    Http(#[source] io::Error),
}

/// Serves one client over standard input and output, until it closes standard input.
///
/// The tool `exit` ends the process. Only protocol messages are written to standard output.
pub async fn serve_stdio() -> Result<(), DemoError> {
    let (read, write) = stdio_pipes();
    match serve_stream(read, write).await? {
        ServeOutcome::Closed => Ok(()),
        ServeOutcome::Exited(code) => std::process::exit(code),
    }
}

/// Serves one client over two streams, one JSON message per line, until the first stream ends.
pub async fn serve_stream(
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<ServeOutcome, DemoError> {
    serve_state(DemoState::default(), Box::new(read), Box::new(write)).await
}

/// Like [`serve_stream`], but with these tools instead of the built-in ones, and without prompts and resources.
pub async fn serve_custom_tools(
    tools: CustomTools,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<ServeOutcome, DemoError> {
    serve_state(DemoState::with_custom_tools(tools), Box::new(read), Box::new(write)).await
}

/// The messages of a client, one per line.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// The messages to a client, one per line.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A server that runs while the future is polled.
type ServeFuture = BoxFuture<'static, Result<ServeOutcome, DemoError>>;

/// Serves one client over two streams with this state.
fn serve_state(state: DemoState, read: Input, write: Output) -> ServeFuture {
    let lifetime = Arc::new(Lifetime::default());
    let state = Arc::new(state);
    let demo = DemoHandler::new(Arc::clone(&state), state, Arc::clone(&lifetime));
    let serving = serve_lines(demo, Arc::clone(&lifetime), read, write);
    Box::pin(async move {
        tokio::select! {
            biased;
            code = lifetime.wait_for_exit() => Ok(ServeOutcome::Exited(code)),
            outcome = serving => outcome,
        }
    })
}

/// Serves one client over two streams. Not generic, so that rmcp's server is compiled once, and not for each kind of
/// stream and each crate that uses it.
pub(crate) fn serve_lines(
    demo: DemoHandler,
    lifetime: Arc<Lifetime>,
    read: Input,
    write: Output,
) -> ServeFuture {
    Box::pin(serve(demo, DemoConnection::new(AsyncRwTransport::new_server(read, write), lifetime)))
}

/// Serves one client until it disconnects.
pub(crate) async fn serve<T>(
    demo: DemoHandler,
    connection: DemoConnection<T>,
) -> Result<ServeOutcome, DemoError>
where
    T: Transport<RoleServer, Error = io::Error> + 'static,
{
    let running = match serve_server(demo, connection).await {
        Ok(running) => running,
        // A client may disconnect without opening a session.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(ServeOutcome::Closed),
        Err(error) => return Err(DemoError::Initialize(Box::new(error))),
    };
    match running.waiting().await.map_err(DemoError::Panicked)? {
        QuitReason::JoinError(error) => Err(DemoError::Panicked(error)),
        _ => Ok(ServeOutcome::Closed),
    }
}
