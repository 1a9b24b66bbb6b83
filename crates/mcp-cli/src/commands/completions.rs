//! `completions`: prints the completion script for a shell, and answers its requests.
//!
//! The script runs this program at each completion. The servers are those of the configuration in the typed line, else
//! of the nearest one. The tools are those of its last run, because a completion starts no servers.

use std::env;
use std::path::{Path, PathBuf};

use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use mcp_host_runtime::{LoadRequest, load};

use crate::args::command_line;
use crate::config::locate::locate_config;
use crate::host::known_tools::known_tools;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::sanitize;

/// The variable by which the script requests completions.
const VARIABLE: &str = "MCP_HOST_COMPLETE";

/// What an argument is completed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Candidates {
    /// The servers of the configuration.
    Servers,
    /// The exposed names of its tools.
    Tools,
    /// The names that the servers give their tools.
    OriginalNames,
    /// The servers, and `SERVER/TOOL`.
    ServersAndTools,
}

/// The completion script for a shell.
pub(crate) fn run(shell: Shell) -> Result<Report, Failure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer =
        shells.completer(&shell.to_string()).ok_or_else(|| Failure::new("the shell is unknown"))?;
    completer
        .write_registration(VARIABLE, "mcp-host", "mcp-host", "mcp-host", &mut script)
        .map_err(|error| Failure::new(format!("could not write the script: {error}")))?;
    Ok(Report::out(String::from_utf8_lossy(&script).into_owned()))
}

/// Answers the request of a completion script and exits. Returns if this process was not started by one.
pub(crate) fn answer_request() {
    if env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(command_line_with_candidates).var(VARIABLE).complete();
    }
}

/// The command line with the candidates of its arguments.
fn command_line_with_candidates() -> clap::Command {
    command_line().mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|argument| match candidates_of(&name, argument.get_id().as_str()) {
            Some(candidates) => argument.add(ArgValueCandidates::new(move || candidates.list())),
            None => argument,
        })
    })
}

fn candidates_of(command: &str, argument: &str) -> Option<Candidates> {
    match (command, argument) {
        // These name new servers, or servers of other files.
        ("add" | "import", _) => None,
        (_, "server") => Some(Candidates::Servers),
        ("call", "tool") | ("tools", "schema" | "patterns") => Some(Candidates::Tools),
        ("explain", "tool") => Some(Candidates::OriginalNames),
        ("lock", "update") => Some(Candidates::ServersAndTools),
        (_, _) => None,
    }
}

impl Candidates {
    /// The candidates for the typed line. Reads the disk.
    fn list(self) -> Vec<CompletionCandidate> {
        let Some(config) = typed_config() else { return Vec::new() };
        let tools = || known_tools(&config).into_iter();
        let names: Vec<String> = match self {
            Candidates::Servers => server_names(&config),
            Candidates::Tools => tools().map(|tool| tool.name).collect(),
            Candidates::OriginalNames => tools().map(|tool| tool.original).collect(),
            Candidates::ServersAndTools => {
                let items = tools().map(|tool| format!("{}/{}", tool.server, tool.original));
                server_names(&config).into_iter().chain(items).collect()
            }
        };
        // A name that cannot be typed is no candidate.
        let is_plain = |name: &String| !name.is_empty() && *name == sanitize::line(name);
        names.into_iter().filter(is_plain).map(CompletionCandidate::new).collect()
    }
}

/// The configuration that the typed line names, else the nearest one.
fn typed_config() -> Option<PathBuf> {
    // The script passes the line after `--`: this program, the command and its arguments.
    let words = env::args_os().skip_while(|word| word != "--").skip(3);
    let named = words.map(PathBuf::from).find(|word| word.exists());
    locate_config(named.as_deref().unwrap_or(Path::new(""))).ok().map(|config| config.path)
}

fn server_names(config: &Path) -> Vec<String> {
    let request = LoadRequest::new(config.to_owned());
    let entries = load(&request).map(|loaded| loaded.reading.entries).unwrap_or_default();
    entries.into_iter().map(|entry| entry.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_name_a_server_or_tool_are_completed() {
        let check = |command, argument, want| assert_eq!(candidates_of(command, argument), want);
        check("doctor", "server", Some(Candidates::Servers));
        check("add", "server", None);
        check("call", "tool", Some(Candidates::Tools));
        check("explain", "tool", Some(Candidates::OriginalNames));
        check("explain", "prompt", None);
        command_line_with_candidates().debug_assert();
    }
}
