//! The server over standard input and output, or over any two streams.
//!
//! The end of input is the client's farewell: running calls are given up, and the server ends by itself.

use std::{io, net::SocketAddr, sync::Arc};

use rmcp::{
    RoleServer,
    service::{QuitReason, ServerInitializeError, serve_server},
    transport::{Transport, async_rw::AsyncRwTransport, io::stdio_pipes},
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    connection::Connection,
    life::Life,
    server::Demo,
    state::{Offer, State},
};

/// Why a server ended without a fault.
#[must_use = "a process that serves is asked by `Exited` to end with that code"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its side, or the owner asked for the end.
    Closed,
    /// The tool `exit` was called: whoever serves is expected to end the process with this code, at once.
    Exited(i32),
}

/// Why the demo server could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// Only this machine may reach the demo server: it has no notion of who calls.
    #[error("{0} is not a loopback address: the demo server is for this machine only")]
    NotLoopback(SocketAddr),
    /// The address is taken, or not ours.
    #[error("could not listen on {address}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The client and the server found no way to begin.
    #[error("the client did not open a session")]
    Opening(#[source] Box<ServerInitializeError>),
    /// A part of the server panicked.
    #[error("the server broke")]
    Broken(#[source] tokio::task::JoinError),
    /// The listener failed.
    #[error("could not serve over HTTP")]
    Http(#[source] io::Error),
}

/// Serves one client over standard input and output, until it closes standard input.
///
/// The tool `exit` ends the process from within. Nothing but protocol messages is written to standard output.
pub async fn serve_stdio() -> Result<(), DemoError> {
    let (read, write) = stdio_pipes();
    match serve_stream(read, write).await? {
        Ended::Closed => Ok(()),
        Ended::Exited(code) => std::process::exit(code),
    }
}

/// Serves one client over two streams, one JSON message a line, until the first one ends.
pub async fn serve_stream<R, W>(read: R, write: W) -> Result<Ended, DemoError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve_state(State::default(), read, write).await
}

/// The same, with these tools in the place of its own, and neither prompts nor resources.
pub async fn serve_offering<R, W>(offer: Offer, read: R, write: W) -> Result<Ended, DemoError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve_state(State::offering(offer), read, write).await
}

async fn serve_state<R, W>(state: State, read: R, write: W) -> Result<Ended, DemoError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let life = Arc::new(Life::default());
    let state = Arc::new(state);
    let demo = Demo::new(Arc::clone(&state), state, Arc::clone(&life));
    let connection = Connection::new(AsyncRwTransport::new_server(read, write), Arc::clone(&life));
    tokio::select! {
        biased;
        code = life.exited() => Ok(Ended::Exited(code)),
        res = serve(demo, connection) => res,
    }
}

/// Serves one client until it is gone.
pub(crate) async fn serve<T>(demo: Demo, connection: Connection<T>) -> Result<Ended, DemoError>
where
    T: Transport<RoleServer, Error = io::Error> + 'static,
{
    let running = match serve_server(demo, connection).await {
        Ok(running) => running,
        // A client that looks and leaves without a session is no fault.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(Ended::Closed),
        Err(error) => return Err(DemoError::Opening(Box::new(error))),
    };
    match running.waiting().await.map_err(DemoError::Broken)? {
        QuitReason::JoinError(error) => Err(DemoError::Broken(error)),
        _ => Ok(Ended::Closed),
    }
}
