//! The command line `mcp-host`.
//!
//! Parses arguments, calls the libraries of the workspace, and prints text or JSON. Every decision about
//! configuration, tools and servers is made in those libraries. The process exits only after the runtime is
//! dropped, so that no server process remains.

#![forbid(unsafe_code)]

mod args;
mod call_arguments;
mod commands;
mod config;
mod control;
mod host;
mod output;
mod render;
mod runtime;
mod shared_host;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use crate::output::console::Console;
use crate::output::log;

fn main() -> ExitCode {
    commands::completions::answer_request();
    let arguments = args::parse();
    let console = Console::new(arguments.global.colour, arguments.global.verbosity());
    // `serve` starts its own log.
    if arguments.global.verbose && !matches!(arguments.command, args::Command::Serve(_)) {
        log::start_verbose(console.err_colour);
    }
    // With the earlier limit, the host runs as many servers as it allows.
    let _ = mcp_host_transport::raise_descriptor_limit();
    let exit = commands::run(arguments, console);
    log::flush();
    exit.into()
}
