//! The commands: one file each, and one for each thing that several of them show. A command gets words and gives words; what is right or wrong others decide.

mod acp_check;
mod arguments;
mod call;
pub(crate) mod check;
mod completions;
mod content;
pub(crate) mod convert;
mod demo;
mod doctor;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod import;
mod inline;
mod kept;
mod listing;
pub(crate) mod lock;
pub(crate) mod login;
mod man;
mod next;
mod pairs;
mod prompts;
pub(crate) mod record;
mod refused;
pub(crate) mod replay;
mod resources;
mod schema;
mod schemas;
pub(crate) mod serve;
mod shape;
pub(crate) mod shell;
mod status;
pub(crate) mod tools;
mod watch;

use std::path::Path;

use mcp_config::Switch;

use crate::args::{Arguments, Command, Format, Servers};
use crate::commands::listing::What;
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
        Command::Import(words) => console.tell(&import::run(&context, &words)),
        Command::Remove(words) => console.tell(&edit::remove(&context, &words)),
        Command::Enable(words) => console.tell(&edit::switch(&context, &words, Switch::On)),
        Command::Disable(words) => console.tell(&edit::switch(&context, &words, Switch::Off)),
        Command::Schema { name } => console.tell(&schema::run(&console, &global, name)),
        Command::AcpCheck { capabilities, protocol } => {
            console.tell(&acp_check::run(&console, &capabilities, protocol))
        }
        Command::Tools { servers, schema, tree } => {
            let manner = match (&schema, tree) {
                (Some(tool), _) => tools::Manner::One(tool),
                (None, true) => tools::Manner::Tree,
                (None, false) => tools::Manner::Table,
            };
            list(&context, &servers, What::Tools(manner))
        }
        Command::Prompts(servers) => list(&context, &servers, What::Prompts),
        Command::Resources(servers) => list(&context, &servers, What::Resources),
        Command::Explain(words) => {
            on_runtime(console, async |signals| explain::run(&context, words, signals).await)
        }
        Command::Call { file, tool, arguments, save } => on_runtime(console, async |signals| {
            let save = save.as_deref();
            let request = call::Request { file: &file, tool: &tool, arguments: &arguments, save };
            call::run(&context, request, signals).await
        }),
        Command::Watch { file, plain } => {
            let file = file.unwrap_or_default();
            let manner = if plain { watch::Manner::Plain } else { watch::Manner::Any };
            on_runtime(console, async |signals| watch::run(&context, &file, manner, signals).await)
        }
        Command::Serve(words) => {
            on_runtime(console, async |signals| serve::run(&context, words, signals).await)
        }
        Command::Doctor(servers) => {
            on_runtime(console, async |signals| doctor::run(&context, &servers, signals).await)
        }
        Command::Record(words) => {
            on_runtime(console, async |signals| record::run(&context, words, signals).await)
        }
        Command::Replay(words) => {
            on_runtime(console, async |signals| replay::run(&context, words, signals).await)
        }
        Command::Shell(words) => {
            on_runtime(console, async |signals| shell::run(&context, words, signals).await)
        }
        Command::Login(words) => {
            on_runtime(console, async |signals| login::log_in(&context, &words, signals).await)
        }
        Command::Logout(words) => {
            on_runtime(console, async |signals| login::log_out(&context, &words, signals).await)
        }
        Command::Lock(words) => {
            on_runtime(console, async |signals| lock::run(&context, words, signals).await)
        }
        Command::Completions { shell } => console.tell(&completions::run(shell)),
        Command::Man => console.tell(&man::run(&console)),
        Command::DemoServer { http } => {
            on_runtime(console, async |signals| demo::run(&console, http, signals).await)
        }
    }
}

fn list(context: &Context, servers: &Servers, what: What<'_>) -> Exit {
    let Servers { file, server } = servers;
    let file = file.as_deref().unwrap_or(Path::new(""));
    let request = listing::Request { file, server: server.as_deref(), what };
    on_runtime(context.console, async |signals| listing::run(context, request, signals).await)
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
