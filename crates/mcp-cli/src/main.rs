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

use mcp_host_model::Severity;

use crate::output::console::{Console, Report};
use crate::output::failure::Failure;
use crate::output::{log, otlp, style};

fn main() -> ExitCode {
    commands::completions::answer_request();
    let arguments = args::parse();
    let console = Console::new(arguments.global.colour, arguments.global.verbosity());
    // A client of a shared host runs no servers.
    let runs_servers = !matches!(&arguments.command, args::Command::Serve(args) if args.shared && args.stdio);
    let otlp_options = arguments.global.otlp_options().filter(|_| runs_servers);
    let is_exporting = otlp_options.is_some();
    if let Some(Err(message)) = otlp_options.map(otlp::start) {
        return console.print(&Failure::usage(message).report(&console)).into();
    }
    // `serve` starts its own log and metrics.
    if !matches!(arguments.command, args::Command::Serve(_)) {
        match (arguments.global.verbose, is_exporting) {
            (true, _) => log::start_verbose(console.err_colour),
            (false, true) => log::start_silent(),
            (false, false) => {}
        }
        otlp::install_recorder();
    }
    // With the earlier limit, the host runs as many servers as it allows.
    let _ = mcp_host_transport::raise_descriptor_limit();
    let exit = commands::run(arguments, console);
    log::flush();
    if let Some(message) = otlp::finish() {
        let colour = console.err_colour;
        let help = style::help(colour, "check that the collector of --otlp runs at its URL");
        let warning = style::severity(colour, Severity::Warning);
        console.print(&Report::err(format!("{warning}: {message}\n{help}")));
    }
    exit.into()
}
