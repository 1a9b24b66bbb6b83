//! Windows: programs are searched here, because the system finds `.exe` files only. No signal ends a process.

use std::path::PathBuf;

use mcp_host_transport::{ProgramSearch, ProgramSearchResult, find_program};

/// The path of a command, such as `npx` for `npx.cmd`.
pub(crate) fn program_path(command: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    let directory = std::env::current_dir().unwrap_or_default();
    match find_program(command, ProgramSearch::new(&path, &directory)) {
        ProgramSearchResult::Found(file) => file,
        _ => PathBuf::from(command),
    }
}

/// Does nothing: Windows has no signal that asks one process to end. The process ends when its input is closed.
pub(crate) fn terminate(_: u32) {}
