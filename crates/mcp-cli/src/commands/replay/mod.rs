//! `replay`: serves a recording of one server, over standard input and output or HTTP.

mod http;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use mcp_recording::{Recording, ServerRecording, serve};

use crate::args::ReplayArgs;
use crate::config::context::Context;
use crate::output::sanitize;
use crate::runtime::blocking;
use crate::runtime::exit::Exit;
use crate::runtime::signals::Signals;

/// The maximum size of a recording, in bytes.
const MAX_RECORDING: u64 = 512 << 20;

/// Serves until the client disconnects or a signal arrives.
pub(crate) async fn run(context: &Context, args: ReplayArgs, signals: &mut Signals) -> Exit {
    let ReplayArgs { recording, server, http } = args;
    let selected =
        blocking(move || read(&recording).and_then(|recording| select(&recording, server.as_deref()))).await;
    let server = match selected {
        Ok(server) => server,
        Err((exit, message)) => return context.fail(exit, &message, None).await,
    };
    if let Some(address) = http {
        return http::run(context, server, address, signals).await;
    }
    tokio::select! {
        biased;
        signal = signals.next() => Exit::Signal(signal),
        ended = serve(server, tokio::io::stdin(), tokio::io::stdout()) => match ended {
            Ok(()) => Exit::Success,
            // The client has disconnected.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Err(error) => {
                context.fail(Exit::Failure, &format!("the connection to the client failed: {error}"), None).await
            }
        },
    }
}

fn read(path: &Path) -> Result<Recording, (Exit, String)> {
    let shown = path.display();
    let failed = |error: io::Error| (Exit::Failure, format!("could not read {shown}: {error}"));
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    let length = file.take(MAX_RECORDING + 1).read_to_string(&mut text).map_err(failed)?;
    if length as u64 > MAX_RECORDING {
        return Err((Exit::Failure, format!("{shown} is larger than {} MiB", MAX_RECORDING >> 20)));
    }
    Recording::parse(&text).map_err(|error| (Exit::Failure, format!("{shown}: {error}")))
}

fn select(recording: &Recording, server: Option<&str>) -> Result<Arc<ServerRecording>, (Exit, String)> {
    let names: Vec<&str> = recording.servers().iter().map(|server| server.server.as_str()).collect();
    let names = sanitize::line(&names.join(", "));
    match (server, recording.servers()) {
        (_, []) => Err((Exit::Failure, "the recording contains no server".to_owned())),
        (None, [only]) => Ok(Arc::clone(only)),
        (None, _) => Err((
            Exit::Usage,
            format!("the recording has several servers; use --server with one of: {names}"),
        )),
        (Some(name), _) => recording.server(name).map(Arc::clone).ok_or_else(|| {
            let message = format!(
                "there is no server `{}` in the recording; the servers are: {names}",
                sanitize::line(name)
            );
            (Exit::Usage, message)
        }),
    }
}
