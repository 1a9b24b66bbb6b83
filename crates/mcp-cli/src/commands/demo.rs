//! `demo-server`: the bundled server, so that a first run needs nothing else.
//!
//! Standard output belongs to the protocol; whatever is said besides goes to standard error.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mcp_demo::{DemoError, Ended, HttpServer};
use tokio::sync::oneshot;

use crate::exit::Exit;
use crate::output::cause::chain;
use crate::output::console::Console;
use crate::output::paint;
use crate::signals::Signals;

/// How long open connections are waited for when the server is asked to end.
const GRACE: Duration = Duration::from_secs(2);

/// Serves until the client is gone, or a signal comes.
pub(crate) async fn run(console: &Console, http: Option<SocketAddr>, signals: &mut Signals) -> Exit {
    let ended = match http {
        Some(address) => over_http(address, signals).await,
        None => over_streams(signals).await,
    };
    match ended {
        Ok(exit) => exit,
        Err(error) => {
            say(&paint::error(console.err, &chain(&error), help(&error)));
            exit_of(&error)
        }
    }
}

async fn over_streams(signals: &mut Signals) -> Result<Exit, DemoError> {
    tokio::select! {
        biased;
        signal = signals.next() => Ok(Exit::Signal(signal)),
        ended = mcp_demo::serve_stdio() => ended.map(|()| Exit::Done),
    }
}

async fn over_http(address: SocketAddr, signals: &mut Signals) -> Result<Exit, DemoError> {
    let server = HttpServer::bind(address).await?;
    say(&format!("the demo server listens at {}\n", server.url()));
    say(&format!("and for clients that know only server-sent events at {}\n", server.sse_url()));
    say(&format!("and over WebSocket at {}\n", server.websocket_url()));
    let (stop, stopped) = oneshot::channel::<()>();
    // A sender that is dropped asks for the end just as well.
    let serving = server.serve(async { drop(stopped.await) });
    tokio::pin!(serving);
    tokio::select! {
        biased;
        signal = signals.next() => {
            drop(stop);
            tokio::select! {
                biased;
                _ = signals.next() => {}
                _ = tokio::time::timeout(GRACE, &mut serving) => {}
            }
            Ok(Exit::Signal(signal))
        }
        ended = &mut serving => Ok(match ended? {
            Ended::Closed => Exit::Done,
            Ended::Exited(code) => Exit::Demo(code),
        }),
    }
}

/// An address that nobody may serve at is a mistake on the command line; all else is the world's.
fn exit_of(error: &DemoError) -> Exit {
    match error {
        DemoError::NotLoopback(_) => Exit::Usage,
        _ => Exit::Wrong,
    }
}

fn help(error: &DemoError) -> Option<&'static str> {
    match error {
        DemoError::NotLoopback(_) => Some("use 127.0.0.1 or [::1]"),
        DemoError::Bind { .. } => Some("port 0 takes any port that is free"),
        _ => None,
    }
}

fn say(text: &str) {
    // Where standard error is gone there is nobody to hear it, and the server serves all the same.
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_cause() {
        let address = "127.0.0.1:80".parse().unwrap();
        let error = DemoError::Bind { address, source: io::Error::other("it is taken") };
        assert_eq!(chain(&error), "could not listen on 127.0.0.1:80: it is taken");
        assert_eq!(exit_of(&error), Exit::Wrong);
        assert_eq!(exit_of(&DemoError::NotLoopback("8.8.8.8:80".parse().unwrap())), Exit::Usage);
    }
}
