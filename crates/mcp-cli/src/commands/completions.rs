//! `completions`: prints the completion script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::output::console::Report;

/// The completion script for a shell.
pub(crate) fn run(shell: Shell) -> Report {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "mcp-host", &mut out);
    Report::out(String::from_utf8_lossy(&out).into_owned())
}
