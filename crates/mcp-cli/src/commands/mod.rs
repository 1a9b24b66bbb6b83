//! The commands, one module each. A command that runs no servers returns a report, which is printed here. The
//! others print their output themselves and return the exit code.

mod acp_check;
mod call;
mod check;
mod completions;
mod convert;
mod demo_server;
mod doctor;
mod edit;
mod explain;
mod import;
mod list;
mod lock;
mod login;
mod man;
mod record;
mod replay;
mod schema;
mod serve;
mod shell;
mod watch;

use mcp_config::Switch;
use mcp_host::Provider;

use crate::args::{Arguments, Command, Format, ProviderName, ServerArgs, ToolsArgs};
use crate::commands::list::ListTarget;
use crate::commands::list::tools::ToolsView;
use crate::config::context::Context;
use crate::output::console::Console;
use crate::runtime::Runtime;
use crate::runtime::exit::Exit;
use crate::runtime::signals::Signals;

/// Runs the command of the command line.
pub(crate) fn run(arguments: Arguments, console: Console) -> Exit {
    let Arguments { global, command } = arguments;
    let usage_error = |message: &str| console.print(&console.failure(Exit::Usage, message, None));
    let format = match (global.format.common(), &command) {
        (Some(format), _) => format,
        // `check` supports all formats and reads `global.format` itself.
        (None, Command::Check(_)) => Format::Text,
        (None, _) => return usage_error("only `check` supports the formats sarif and github"),
    };
    let context = match Context::new(&global, format, console) {
        Ok(context) => context,
        Err(message) => return usage_error(&message),
    };
    match command {
        Command::Check(args) => console.print(&check::run(&context, &args, global.format)),
        Command::Convert(args) => console.print(&convert::run(&context, &args)),
        Command::Add(args) => console.print(&edit::add::run(&context, args)),
        Command::Import(args) => console.print(&import::run(&context, &args)),
        Command::Remove(args) => console.print(&edit::remove(&context, &args)),
        Command::Enable(args) => console.print(&edit::switch(&context, &args, Switch::On)),
        Command::Disable(args) => console.print(&edit::switch(&context, &args, Switch::Off)),
        Command::Schema { name } => console.print(&schema::run(&console, &global, name)),
        Command::AcpCheck(args) => console.print(&acp_check::run(&console, &args)),
        Command::Completions { shell } => console.print(&completions::run(shell)),
        Command::Man => console.print(&man::run(&console)),
        Command::Tools(ToolsArgs { servers, schema, tree, provider }) => {
            let provider = provider.map(|name| match name {
                ProviderName::Openai => Provider::OpenAiStrict,
                ProviderName::Anthropic => Provider::Anthropic,
                ProviderName::Gemini => Provider::Gemini,
            });
            let view = match (&schema, tree, provider) {
                (Some(tool), _, _) => ToolsView::Single(tool),
                (None, _, Some(provider)) => ToolsView::Provider(provider),
                (None, true, None) => ToolsView::Tree,
                (None, false, None) => ToolsView::Table,
            };
            list(&context, &servers, ListTarget::Tools(view))
        }
        Command::Prompts(servers) => list(&context, &servers, ListTarget::Prompts),
        Command::Resources(servers) => list(&context, &servers, ListTarget::Resources),
        Command::Explain(args) => {
            on_runtime(console, async |signals| explain::run(&context, args, signals).await)
        }
        Command::Call(args) => on_runtime(console, async |signals| call::run(&context, &args, signals).await),
        Command::Watch(args) => {
            on_runtime(console, async |signals| watch::run(&context, args, signals).await)
        }
        Command::Serve(args) => {
            on_runtime(console, async |signals| serve::run(&context, args, signals).await)
        }
        Command::Doctor(args) => {
            on_runtime(console, async |signals| doctor::run(&context, &args, signals).await)
        }
        Command::Record(args) => {
            on_runtime(console, async |signals| record::run(&context, &args, signals).await)
        }
        Command::Replay(args) => {
            on_runtime(console, async |signals| replay::run(&context, args, signals).await)
        }
        Command::Shell(args) => {
            on_runtime(console, async |signals| shell::run(&context, args, signals).await)
        }
        Command::Login(args) => {
            on_runtime(console, async |signals| login::log_in(&context, &args, signals).await)
        }
        Command::Logout(args) => {
            on_runtime(console, async |signals| login::log_out(&context, &args, signals).await)
        }
        Command::Lock(args) => on_runtime(console, async |signals| lock::run(&context, args, signals).await),
        Command::DemoServer(args) => {
            on_runtime(console, async |signals| demo_server::run(&console, args.http, signals).await)
        }
    }
}

fn list(context: &Context, servers: &ServerArgs, target: ListTarget<'_>) -> Exit {
    on_runtime(context.console, async |signals| list::run(context, servers, target, signals).await)
}

/// Runs an async command. On return, the runtime and all its tasks and child processes are dropped.
fn on_runtime(console: Console, command: impl AsyncFnOnce(&mut Signals) -> Exit) -> Exit {
    let failed = |error: std::io::Error| {
        console.print(&console.failure(Exit::Failure, &format!("cannot start the runtime: {error}"), None))
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
