//! `completions`: prints the completion script for a shell.

use clap_complete::Shell;

use crate::args::command_line;
use crate::output::console::Report;

/// The completion script for a shell.
pub(crate) fn run(shell: Shell) -> Report {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "mcp-host", &mut out);
    Report::out(String::from_utf8_lossy(&out).into_owned())
}
