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
use crate::host::known_tools::load_known_tools;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::sanitize;

/// The variable by which the script requests completions.
const REQUEST_VARIABLE: &str = "MCP_HOST_COMPLETE";

/// The kind of names that complete an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CandidateKind {
    /// The servers of the configuration.
    Servers,
    /// The exposed names of its tools.
    Tools,
    /// The names that the servers give their tools.
    OriginalNames,
    /// The servers, and `SERVER/TOOL`.
    ServersAndTools,
}

/// Returns the completion script for a shell.
pub(crate) fn run(shell: Shell) -> Result<Report, Failure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer =
        shells.completer(&shell.to_string()).ok_or_else(|| Failure::new("the shell is unknown"))?;
    completer
        .write_registration(REQUEST_VARIABLE, "mcp-host", "mcp-host", "mcp-host", &mut script)
        .map_err(|error| Failure::new(format!("could not write the script: {error}")))?;
    Ok(Report::out(String::from_utf8_lossy(&script).into_owned()))
}

/// Answers the request of a completion script and exits. Returns if this process was not started by one.
pub(crate) fn answer_request() {
    if env::var_os(REQUEST_VARIABLE).is_some() {
        CompleteEnv::with_factory(command_line_with_candidates).var(REQUEST_VARIABLE).complete();
    }
}

/// The command line with the candidates of its arguments.
fn command_line_with_candidates() -> clap::Command {
    command_line().mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|argument| match candidate_kind(&name, argument.get_id().as_str()) {
            Some(kind) => argument.add(ArgValueCandidates::new(move || kind.list_candidates())),
            None => argument,
        })
    })
}

/// What the values of an argument of a command name. Both are clap's ids.
fn candidate_kind(command: &str, argument: &str) -> Option<CandidateKind> {
    match (command, argument) {
        // These name new servers, or servers of other files.
        ("add" | "import", _) => None,
        (_, "server") => Some(CandidateKind::Servers),
        ("call", "tool") | ("tools", "schema" | "patterns") => Some(CandidateKind::Tools),
        ("explain", "tool") => Some(CandidateKind::OriginalNames),
        ("lock", "update") => Some(CandidateKind::ServersAndTools),
        (_, _) => None,
    }
}

impl CandidateKind {
    /// The candidates for the typed line. Reads the disk.
    fn list_candidates(self) -> Vec<CompletionCandidate> {
        let Some(config) = find_typed_config() else { return Vec::new() };
        let tools = || load_known_tools(&config).into_iter();
        let names: Vec<String> = match self {
            CandidateKind::Servers => server_names(&config),
            CandidateKind::Tools => tools().map(|tool| tool.name).collect(),
            CandidateKind::OriginalNames => tools().map(|tool| tool.original).collect(),
            CandidateKind::ServersAndTools => {
                let items = tools().map(|tool| format!("{}/{}", tool.server, tool.original));
                server_names(&config).into_iter().chain(items).collect()
            }
        };
        // A name that cannot be typed is no candidate.
        let is_plain = |name: &String| !name.is_empty() && *name == sanitize::line(name);
        names.into_iter().filter(is_plain).map(CompletionCandidate::new).collect()
    }
}

/// Finds the configuration that the typed line names, else the nearest one.
fn find_typed_config() -> Option<PathBuf> {
    // The script passes the line after `--`: this program, the command and its arguments.
    let words = env::args_os().skip_while(|word| word != "--").skip(3);
    let named = words.map(PathBuf::from).find(|word| word.exists());
    locate_config(named.as_deref().unwrap_or(Path::new(""))).ok().map(|config| config.path)
}

/// The names of the servers in a configuration; none if it cannot be read.
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
        let check = |command, argument, want| assert_eq!(candidate_kind(command, argument), want);
        check("doctor", "server", Some(CandidateKind::Servers));
        check("add", "server", None);
        check("call", "tool", Some(CandidateKind::Tools));
        check("explain", "tool", Some(CandidateKind::OriginalNames));
        check("explain", "prompt", None);
        command_line_with_candidates().debug_assert();
    }
}
