//! `mcp-host`: MCP servers from the configuration you already have.
//!
//! Arguments in, words and JSON out. What a file means, which tools are shown and how servers live is decided in the
//! crates below; here stands what a user sees of it. The process ends only after the runtime is gone, so that no
//! server outlives it.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod context;
mod counted;
mod examples;
mod exit;
#[cfg(test)]
mod fixture;
mod hosted;
mod locked;
mod log;
mod output;
mod runtime;
mod signals;
mod source;
mod starting;
mod target;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Arguments;
use crate::output::console::Console;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let console = Console::new(arguments.global.color, arguments.global.chatter());
    if arguments.global.verbose {
        log::start(console.err);
    }
    commands::run(arguments, console).into()
}
