//! The commands, one module each, in folders by what they do.
//!
//! A command that runs no servers returns a report, which is printed here. The others print their output themselves and
//! return the exit code. A failure is printed here for all commands.

mod calls;
pub(crate) mod completions;
mod files;
mod hosts;
mod man;
mod servers;
mod serving;

use std::path::Path;

use mcp_host_config::Switch;

use crate::args::{
    AddArgs, Arguments, Command, Format, GlobalArgs, RequestedFormat, ResourcesArgs, SchemaArgs, ServerArgs,
    TargetArgs, ToolsArgs,
};
use crate::commands::calls::{approvals, call, prompt, record, shell, tasks};
use crate::commands::files::{acp_check, check, connect, convert, edit, import, schema, secret, views};
use crate::commands::hosts::{logs, ps, restart, stop};
use crate::commands::servers::list::ListTarget;
use crate::commands::servers::list::name_filter::NameFilter;
use crate::commands::servers::list::tools::ToolsView;
use crate::commands::servers::read::SaveTarget;
use crate::commands::servers::{doctor, explain, list, lock, login, read, skills, trust, watch};
use crate::commands::serving::{demo_server, replay, serve};
use crate::config::command_line_server::CommandLineServer;
use crate::config::context::Context;
use crate::config::locate::names_config;
use crate::output::console::{Console, Report};
use crate::output::failure::Failure;
use crate::output::quote;
use crate::runtime::exit::Exit;
use crate::runtime::signals::Signals;
use crate::runtime::{Runtime, command_workers, serving_workers};
use crate::shared_host::identity::HostIdentity;
use crate::shared_host::shim;
use crate::shared_host::start::start_detached;

/// Runs the command of the command line.
pub(crate) fn run(arguments: Arguments, console: Console) -> Exit {
    let Arguments { global, command } = arguments;
    let result = try_run(global, command, console);
    console.print(&result.unwrap_or_else(|failure| failure.report(&console)))
}

/// Runs the command. Returns what is left to print, and the exit code.
fn try_run(global: GlobalArgs, command: Command, console: Console) -> Result<Report, Failure> {
    if let Command::Serve(args) = &command {
        if args.detach {
            return start_detached();
        }
        if args.shared && args.stdio {
            return shim::run(console, &global, args);
        }
    }
    let format = match (global.format, &command) {
        (RequestedFormat::Text, _) => Format::Text,
        (RequestedFormat::Json, _) => Format::Json,
        // These commands read `global.format` themselves.
        (RequestedFormat::Sarif | RequestedFormat::Github, Command::Check(_))
        | (RequestedFormat::Sarif, Command::Schema(SchemaArgs { compare: Some(_), .. })) => Format::Text,
        (RequestedFormat::Sarif, _) => {
            return Err(Failure::usage("only `check` and `schema --compare` support the format sarif"));
        }
        (RequestedFormat::Github, _) => {
            return Err(Failure::usage("only `check` supports the format github"));
        }
    };
    let context = Context::new(&global, format, console).map_err(Failure::usage)?;
    match command {
        Command::Check(args) => Ok(check::run(&context, &args, global.format)),
        Command::Convert(args) => convert::run(&context, &args),
        Command::Secret(args) => secret::run(&context, &args),
        Command::Add(args) => edit::add::run(&context, args),
        Command::Import(args) => import::run(&context, &args),
        Command::Views(args) => views::run(&context, &args),
        Command::Connect(args) => connect::run(&context, &args),
        Command::Set(args) => edit::set(&context, args),
        Command::Trust(args) => trust::run(&context, &args),
        Command::Remove(args) => edit::remove(&context, &args),
        Command::Enable(args) => edit::set_enabled(&context, &args, Switch::On),
        Command::Disable(args) => edit::set_enabled(&context, &args, Switch::Off),
        Command::Schema(args) => schema::run(&global, &args),
        Command::AcpCheck(args) => acp_check::run(&args),
        Command::Completions { shell } => completions::run(shell),
        Command::Man => man::run(),
        Command::Tools(args) => {
            let ToolsArgs { file, server, patterns, schema, tree, provider, target } =
                args.resolve_patterns();
            let servers = ServerArgs { file, server, target };
            let view = match (&schema, tree, provider) {
                (Some(tool), _, _) => ToolsView::Single(tool),
                (None, _, Some(provider)) => ToolsView::Provider(provider),
                (None, true, None) => ToolsView::Tree,
                (None, false, None) => ToolsView::Table,
            };
            run_list(&context, &servers, ListTarget::Tools(view, &NameFilter::new(&patterns)))
        }
        Command::Prompts(servers) => run_list(&context, &servers, ListTarget::Prompts),
        Command::Resources(ResourcesArgs { servers, read: None, .. }) => {
            run_list(&context, &servers, ListTarget::Resources)
        }
        Command::Resources(ResourcesArgs { servers, read: Some(uri), save, overwrite }) => {
            let target = save.map(|path| SaveTarget { path, overwrite });
            run_on_target(&context, &servers.target, servers.file.as_deref(), async |context, signals| {
                read::run(context, &servers, &uri, target, signals).await
            })
        }
        Command::Skills(args) => {
            let ServerArgs { file, target, .. } = &args.servers;
            run_on_target(&context, target, file.as_deref(), async |context, signals| {
                skills::run(context, &args, signals).await
            })
        }
        Command::Explain(args) => run_on_runtime(async |signals| explain::run(&context, args, signals).await),
        Command::Call(args) => {
            let args = args.resolve_file(names_config).map_err(Failure::usage)?;
            run_on_target(&context, &args.target, Some(&args.config.file), async |context, signals| {
                call::run(context, &args, signals).await
            })
        }
        Command::Approvals(args) => {
            run_on_runtime(async |signals| approvals::run(&context, args, signals).await)
        }
        Command::Ps => run_on_runtime(async |signals| ps::run(&context, signals).await),
        Command::Stop(args) => run_on_runtime(async |signals| stop::run(&context, args, signals).await),
        Command::Logs(args) => run_on_runtime(async |signals| logs::run(&context, args, signals).await),
        Command::Restart(args) => run_on_runtime(async |signals| restart::run(&context, args, signals).await),
        Command::Prompt(args) => {
            let args = args.resolve_file(names_config).map_err(Failure::usage)?;
            run_on_target(&context, &args.target, Some(&args.config.file), async |context, signals| {
                prompt::run(context, &args, signals).await
            })
        }
        Command::Tasks(args) => {
            let args = args.resolve_file(names_config).map_err(Failure::usage)?;
            run_on_target(&context, &args.target, Some(&args.config.file), async |context, signals| {
                tasks::run(context, &args, signals).await
            })
        }
        Command::Watch(args) => run_on_runtime(async |signals| watch::run(&context, args, signals).await),
        Command::Serve(args) => {
            let workers = args.workers.unwrap_or_else(serving_workers);
            let identity = args.socket.then(|| HostIdentity::of_process(&global, &args)).transpose();
            let identity =
                identity.map_err(|error| Failure::new(format!("the program is not readable: {error}")))?;
            run_on_workers(workers, async |signals| serve::run(&context, *args, identity, signals).await)
        }
        Command::Doctor(args) => run_on_target(
            &context,
            &args.servers.target,
            args.servers.file.as_deref(),
            async |context, signals| doctor::run(context, &args, signals).await,
        ),
        Command::Record(args) => run_on_runtime(async |signals| record::run(&context, &args, signals).await),
        Command::Replay(args) => run_on_runtime(async |signals| replay::run(&context, args, signals).await),
        Command::Shell(args) => run_on_runtime(async |signals| shell::run(&context, args, signals).await),
        Command::Login(args) => run_on_runtime(async |signals| login::log_in(&context, &args, signals).await),
        Command::Logout(args) => {
            run_on_runtime(async |signals| login::log_out(&context, &args, signals).await)
        }
        Command::Lock(args) => run_on_runtime(async |signals| lock::run(&context, args, signals).await),
        Command::DemoServer(args) => {
            run_on_runtime(async |signals| demo_server::run(args.http, signals).await)
        }
    }
}

fn run_list(context: &Context, servers: &ServerArgs, target: ListTarget<'_>) -> Result<Report, Failure> {
    run_on_target(context, &servers.target, servers.file.as_deref(), async |context, signals| {
        list::run(context, servers, target, signals).await
    })
}

/// Runs an async command on a configuration, or on the server that the command line describes. `file` is the word FILE.
fn run_on_target(
    context: &Context,
    target: &TargetArgs,
    file: Option<&Path>,
    command: impl AsyncFnOnce(&Context, &mut Signals) -> Result<Exit, Failure>,
) -> Result<Report, Failure> {
    let mut context = context.clone();
    if let Some(args) = target.to_server(file).map_err(Failure::usage)? {
        context.command_line = Some(command_line_server(args).map_err(Failure::usage)?);
    }
    run_on_runtime(async |signals| command(&context, signals).await)
}

/// The server that the command line describes. The error is a message for the user.
fn command_line_server(args: AddArgs) -> Result<CommandLineServer, String> {
    let mut words: String = args.words.iter().map(|url| format!(" {}", quote(url))).collect();
    for (option, values) in [("--header", &args.header), ("--env", &args.env)] {
        words.push_str(&format!(" {option} …").repeat(values.len()));
    }
    let mut program: String = args.program.iter().map(|word| format!(" {}", quote(word))).collect();
    if !program.is_empty() {
        program.insert_str(0, " --");
    }
    let text = edit::add::configuration_text(args)?.into();
    Ok(CommandLineServer { text, words, program })
}

/// Runs an async command. On return, the runtime and all its tasks and child processes are dropped.
fn run_on_runtime(
    command: impl AsyncFnOnce(&mut Signals) -> Result<Exit, Failure>,
) -> Result<Report, Failure> {
    run_on_workers(command_workers(), command)
}

/// Runs an async command like [`run_on_runtime`], on this many worker threads.
fn run_on_workers(
    workers: usize,
    command: impl AsyncFnOnce(&mut Signals) -> Result<Exit, Failure>,
) -> Result<Report, Failure> {
    let start_failure = |error: std::io::Error| Failure::new(format!("cannot start the runtime: {error}"));
    let runtime = Runtime::start(workers).map_err(start_failure)?;
    let exit = runtime.block_on(async { command(&mut Signals::install().map_err(start_failure)?).await })?;
    Ok(Report { exit, ..Report::default() })
}
