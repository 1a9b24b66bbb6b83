//! `completions`: a script that makes a shell complete the words of this command.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::exit::Exit;
use crate::output::console::Report;

/// The script of one shell.
pub(crate) fn run(shell: Shell) -> Report {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "mcp-host", &mut out);
    Report {
        out: String::from_utf8_lossy(&out).into_owned(),
        err: String::new(),
        exit: Exit::Done,
        after: String::new(),
    }
}
