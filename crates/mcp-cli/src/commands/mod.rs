//! The commands: one file each. A command gets words and gives words; what is right or wrong others decide.

mod arguments;
mod call;
mod check;
mod content;
mod demo;
mod refused;
mod schema;
mod status;
mod tools;
mod watch;

use crate::args::{Arguments, Command};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::console::Console;
use crate::runtime::Runtime;
use crate::signals::Signals;

/// Does what the command line asks for.
pub(crate) fn run(arguments: Arguments, console: Console) -> Exit {
    let Arguments { global, command } = arguments;
    let context = match Context::new(&global, console) {
        Ok(context) => context,
        Err(message) => return console.tell(&console.failure(Exit::Usage, &message, None)),
    };
    match command {
        Command::Check { files } => console.tell(&check::run(&context, &files)),
        Command::Schema { dialect } => console.tell(&schema::run(&console, &global, dialect)),
        Command::Tools { file, server } => on_runtime(console, async |signals| {
            tools::run(&context, tools::Request { file: &file, server: server.as_deref() }, signals).await
        }),
        Command::Call { file, tool, arguments } => on_runtime(console, async |signals| {
            let request = call::Request { file: &file, tool: &tool, arguments: &arguments };
            call::run(&context, request, signals).await
        }),
        Command::Watch { file } => {
            on_runtime(console, async |signals| watch::run(&context, &file, signals).await)
        }
        Command::DemoServer { http } => {
            on_runtime(console, async |signals| demo::run(&console, http, signals).await)
        }
    }
}

/// Runs a command that waits. The runtime is gone when this returns, and with it everything it started.
fn on_runtime(console: Console, command: impl AsyncFnOnce(&mut Signals) -> Exit) -> Exit {
    let failed = |error: std::io::Error| {
        console.tell(&console.failure(Exit::Wrong, &format!("the system refuses to begin: {error}"), None))
    };
    let runtime = match Runtime::start() {
        Ok(runtime) => runtime,
        Err(error) => return failed(error),
    };
    runtime.block_on(async {
        match Signals::install() {
            Ok(mut signals) => command(&mut signals).await,
            Err(error) => failed(error),
        }
    })
}
