//! The commands: one file each. A command gets words and gives words; what is right or wrong others decide.

mod acp_check;
mod arguments;
mod call;
pub(crate) mod check;
mod content;
pub(crate) mod convert;
mod demo;
pub(crate) mod edit;
mod refused;
mod schema;
mod status;
mod tools;
mod watch;

use mcp_config::Switch;

use crate::args::{Arguments, Command, Format};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::console::Console;
use crate::runtime::Runtime;
use crate::signals::Signals;

/// Does what the command line asks for.
pub(crate) fn run(arguments: Arguments, console: Console) -> Exit {
    let Arguments { global, command } = arguments;
    let refuse = |message: &str| console.tell(&console.failure(Exit::Usage, message, None));
    let format = match (global.format.common(), &command) {
        (Some(format), _) => format,
        // It writes more formats than the others, and looks at the words itself.
        (None, Command::Check(_)) => Format::Text,
        (None, _) => return refuse("only `check` writes sarif and github"),
    };
    let context = match Context::new(&global, format, console) {
        Ok(context) => context,
        Err(message) => return refuse(&message),
    };
    match command {
        Command::Check(words) => console.tell(&check::run(&context, &words, global.format)),
        Command::Convert(words) => console.tell(&convert::run(&context, &words)),
        Command::Add(words) => console.tell(&edit::add(&context, words)),
        Command::Remove(words) => console.tell(&edit::remove(&context, &words)),
        Command::Enable(words) => console.tell(&edit::switch(&context, &words, Switch::On)),
        Command::Disable(words) => console.tell(&edit::switch(&context, &words, Switch::Off)),
        Command::Schema { name } => console.tell(&schema::run(&console, &global, name)),
        Command::AcpCheck { capabilities, protocol } => {
            console.tell(&acp_check::run(&console, &capabilities, protocol))
        }
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
