//! `replay`: a server that plays what `record` has written, on standard input and output or over HTTP.

mod http;

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use mcp_transport::recording::{Recording, ServerRecording, serve};

use crate::context::{Context, blocking};
use crate::exit::Exit;
use crate::output::plain;
use crate::signals::Signals;

/// The most bytes that a recording may have.
const MOST: u64 = 512 << 20;

/// What is asked for.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// What `record` has written
    recording: PathBuf,
    /// The server to be, where the recording has several
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Serve over HTTP at this loopback address instead, such as 127.0.0.1:8808; port 0 takes any free one. The path is
    /// /mcp
    #[arg(long, value_name = "ADDR", value_parser = crate::args::address)]
    http: Option<SocketAddr>,
}

/// Serves until the client is gone, or a signal comes.
pub(crate) async fn run(context: &Context, words: Words, signals: &mut Signals) -> Exit {
    let Words { recording, server, http } = words;
    let chosen = blocking(move || read(&recording).and_then(|it| choose(&it, server.as_deref()))).await;
    let tape = match chosen {
        Ok(tape) => tape,
        Err((exit, message)) => return context.tell(context.console.failure(exit, &message, None)).await,
    };
    if let Some(address) = http {
        return http::run(context, tape, address, signals).await;
    }
    tokio::select! {
        biased;
        signal = signals.next() => Exit::Signal(signal),
        ended = serve(tape, tokio::io::stdin(), tokio::io::stdout()) => match ended {
            Ok(()) => Exit::Done,
            // Nobody listens any more, and nothing is lost by that.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Err(error) => {
                let message = format!("the streams to the client failed: {error}");
                context.tell(context.console.failure(Exit::Wrong, &message, None)).await
            }
        },
    }
}

fn read(path: &Path) -> Result<Recording, (Exit, String)> {
    let shown = path.display();
    let refused = |error: io::Error| (Exit::Wrong, format!("could not read {shown}: {error}"));
    let mut text = String::new();
    let file = File::open(path).map_err(refused)?;
    let read = file.take(MOST + 1).read_to_string(&mut text).map_err(refused)?;
    if read as u64 > MOST {
        return Err((Exit::Wrong, format!("{shown} is larger than {} MiB", MOST >> 20)));
    }
    Recording::parse(&text).map_err(|it| (Exit::Wrong, format!("{shown}: {it}")))
}

fn choose(recording: &Recording, server: Option<&str>) -> Result<Arc<ServerRecording>, (Exit, String)> {
    let names: Vec<&str> = recording.servers().iter().map(|it| it.server.as_str()).collect();
    let names = plain::line(&names.join(", "));
    match (server, recording.servers()) {
        (_, []) => Err((Exit::Wrong, "the recording has no server".to_owned())),
        (None, [only]) => Ok(Arc::clone(only)),
        (None, _) => {
            Err((Exit::Usage, format!("the recording has several servers; say one of: --server {names}")))
        }
        (Some(name), _) => recording.server(name).map(Arc::clone).ok_or_else(|| {
            let message =
                format!("there is no server `{}` in the recording; there are: {names}", plain::line(name));
            (Exit::Usage, message)
        }),
    }
}
