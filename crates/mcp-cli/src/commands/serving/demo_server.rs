//! `demo-server`: runs the bundled demo server, so that a first try needs nothing else.
//!
//! Standard output carries only the protocol. Everything else is written to standard error.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mcp_host_demo::{DemoError, HttpServer, ServeOutcome};
use tokio::sync::oneshot;

use crate::output::error_chain;
use crate::output::failure::Failure;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal, serve_until_signal};

/// How long the shutdown waits for open connections.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves until the client disconnects or a signal arrives.
pub(crate) async fn run(http: Option<SocketAddr>, signals: &mut Signals) -> Result<Exit, Failure> {
    match http {
        Some(address) => serve_http(address, signals).await,
        None => match run_until_signal(signals, mcp_host_demo::serve_stdio()).await? {
            Ok(()) => Ok(Exit::Success),
            Err(error) => Err(error.into()),
        },
    }
}

async fn serve_http(address: SocketAddr, signals: &mut Signals) -> Result<Exit, Failure> {
    let server = HttpServer::bind(address).await?;
    let (http, sse, websocket) = (server.url(), server.sse_url(), server.websocket_url());
    write_stderr(&format!("the demo server listens at {http}\n"));
    write_stderr(&format!("for clients of the older SSE transport at {sse}\n"));
    write_stderr(&format!("for WebSocket at {websocket}\n"));
    let (stop_sender, stop_receiver) = oneshot::channel();
    // Dropping the sender starts the shutdown.
    let serving = server.serve(async { drop(stop_receiver.await) });
    Ok(match serve_until_signal(signals, stop_sender, DRAIN_TIMEOUT, serving).await?? {
        ServeOutcome::Closed => Exit::Success,
        ServeOutcome::Exited(code) => Exit::DemoServer(code),
    })
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Failure {
        Failure::with_exit(exit_code(&error), error_chain(&error)).help(error_help(&error))
    }
}

/// The exit code of an error: an address that is not a loopback address is a usage error, any other error a
/// failure.
fn exit_code(error: &DemoError) -> Exit {
    match error {
        DemoError::NotLoopback(_) => Exit::Usage,
        _ => Exit::Failure,
    }
}

fn error_help(error: &DemoError) -> Option<&'static str> {
    match error {
        DemoError::NotLoopback(_) => Some("use 127.0.0.1 or [::1]"),
        DemoError::Bind { .. } => Some("port 0 selects any free port"),
        _ => None,
    }
}

fn write_stderr(text: &str) {
    // The server also runs without standard error.
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_includes_its_source() {
        let address = "127.0.0.1:80".parse().unwrap();
        let error = DemoError::Bind { address, source: io::Error::other("address in use") };
        assert_eq!(error_chain(&error), "could not listen on 127.0.0.1:80: address in use");
        assert_eq!(exit_code(&error), Exit::Failure);
        assert_eq!(exit_code(&DemoError::NotLoopback("8.8.8.8:80".parse().unwrap())), Exit::Usage);
    }
}
