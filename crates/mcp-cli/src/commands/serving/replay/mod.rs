//! `replay`: serves a recording of one server, over standard input and output or HTTP.

mod http;

use std::io;
use std::path::Path;
use std::sync::Arc;

use mcp_host_recording::{Recording, ServerRecording, serve};

use crate::args::ReplayArgs;
use crate::config::context::Context;
use crate::output::failure::Failure;
use crate::runtime::bounded_read::read_file;
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};

/// The maximum size of a recording, in bytes.
const MAX_RECORDING: u64 = 512 << 20;

/// Serves until the client disconnects or a signal arrives.
pub(crate) async fn run(context: &Context, args: ReplayArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let ReplayArgs { recording, server, http } = args;
    let reading = run_blocking(move || select_recording(&read_recording(&recording)?, server.as_deref()));
    let server = run_until_signal(signals, reading).await??;
    if let Some(address) = http {
        return http::run(context, server, address, signals).await;
    }
    match run_until_signal(signals, serve(server, tokio::io::stdin(), tokio::io::stdout())).await? {
        Ok(()) => Ok(Exit::Success),
        // The client has disconnected.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        Err(error) => Err(Failure::new(format!("the connection to the client failed: {error}"))),
    }
}

fn read_recording(path: &Path) -> Result<Recording, Failure> {
    let shown = path.display();
    let text = read_file(path, MAX_RECORDING)
        .map_err(|error| Failure::new(format!("could not read {shown}: {error}")))?;
    Recording::parse(&text).map_err(|error| Failure::new(format!("{shown}: {error}")))
}

/// The recording of the named server, or of the only one.
fn select_recording(recording: &Recording, server: Option<&str>) -> Result<Arc<ServerRecording>, Failure> {
    let names: Vec<&str> = recording.servers().iter().map(|server| server.server.as_str()).collect();
    let names = names.join(", ");
    match (server, recording.servers()) {
        (_, []) => Err(Failure::new("the recording contains no server")),
        (None, [only]) => Ok(Arc::clone(only)),
        (None, _) => {
            let message = format!("the recording has several servers; use --server with one of: {names}");
            Err(Failure::usage(message))
        }
        (Some(name), _) => recording.server(name).map(Arc::clone).ok_or_else(|| {
            let message = format!("there is no server `{name}` in the recording; the servers are: {names}");
            Failure::usage(message)
        }),
    }
}
