//! Suggested commands, quoted for a shell.
//!
//! A command that names a file or a folder starts its servers without an approval. So a suggestion names the
//! configuration of a project only if the user did.

use std::path::Path;

use mcp_host_runtime::HostSnapshot;
use serde_json::Value;

use crate::config::approval::has_unapproved;
use crate::config::command_line_server::CommandLineServer;
use crate::config::context::Context;
use crate::config::file::ConfigFile;
use crate::output::quote;

/// The maximum number of arguments in a suggested call.
const MAX_ARGUMENTS: usize = 6;

/// A path, quoted for a shell; `.` if it is empty.
pub(crate) fn quote_path(path: &Path) -> String {
    let path = path.display().to_string();
    if path.is_empty() { ".".to_owned() } else { quote(&path) }
}

/// The configuration of suggested commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SuggestedFile {
    /// The word that names it, after a blank. Empty for the nearest configuration.
    words: String,
    /// The last words, which name the program of a server of the command line, after a blank.
    program: String,
    /// Whether it is a server of the command line, which is in no file.
    is_command_line: bool,
    /// Whether servers of it wait for an approval.
    is_waiting: bool,
}

impl SuggestedFile {
    /// A configuration as the user named it. An empty path is the nearest one.
    pub(crate) fn named(path: &Path) -> SuggestedFile {
        let words =
            if path.as_os_str().is_empty() { String::new() } else { format!(" {}", quote_path(path)) };
        SuggestedFile { words, program: String::new(), is_command_line: false, is_waiting: false }
    }

    /// The server of the command line, else a configuration as the user named it.
    pub(crate) fn requested(context: &Context, path: &Path) -> SuggestedFile {
        context.command_line.as_ref().map_or_else(|| SuggestedFile::named(path), SuggestedFile::of_server)
    }

    fn of_server(server: &CommandLineServer) -> SuggestedFile {
        let CommandLineServer { text: _, words, program } = server.clone();
        SuggestedFile { words, program, is_command_line: true, is_waiting: false }
    }

    /// A file that was read. Blocks.
    pub(crate) fn read(file: &ConfigFile) -> SuggestedFile {
        if let Some(server) = file.command_line() {
            return SuggestedFile::of_server(server);
        }
        let path = if file.is_of_project { Path::new("") } else { &file.path };
        SuggestedFile::named(path).with_approvals_of(file)
    }

    /// The same with the approvals of its servers. Blocks.
    pub(crate) fn with_approvals_of(self, file: &ConfigFile) -> SuggestedFile {
        SuggestedFile { is_waiting: has_unapproved(&file.loaded.desired.servers), ..self }
    }

    /// Whether servers of it wait for an approval.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Whether it is a server of the command line, which is in no file.
    pub(crate) fn is_command_line(&self) -> bool {
        self.is_command_line
    }

    /// The command `mcp-host NAME` on this configuration.
    pub(crate) fn command(&self, name: &str) -> String {
        format!("mcp-host {name}{}{}", self.words, self.program)
    }

    /// The command `mcp-host NAME` on this configuration, with more words.
    pub(crate) fn command_with(&self, name: &str, words: &str) -> String {
        format!("mcp-host {name}{} {words}{}", self.words, self.program)
    }

    /// A suggestion to start the servers. While some of them wait for an approval, the command that shows and approves
    /// them is suggested instead.
    pub(crate) fn suggest_start(&self, suggestion: String) -> String {
        if self.is_waiting {
            "`mcp-host trust` shows what its servers start, and approves them".to_owned()
        } else {
            suggestion
        }
    }
}

/// A command that calls the first tool; without tools, a command that tests the servers.
pub(crate) fn suggest_call(published: &HostSnapshot, file: &SuggestedFile) -> String {
    let Some(tool) = published.catalog.tools().first() else {
        return file.suggest_start(format!("`{}` tests the servers step by step", file.command("doctor")));
    };
    let schema = tool.tool.input_schema.read::<Value>().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let arguments: String = required
        .iter()
        .filter_map(Value::as_str)
        .take(MAX_ARGUMENTS)
        .map(|name| format!(" {}=…", quote(name)))
        .collect();
    let call = file.command_with("call", &format!("{}{arguments}", quote(tool.name.as_str())));
    format!("`{call}` calls the first tool")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        assert_eq!(quote("a/b.json"), "a/b.json");
        assert_eq!(quote("my file"), "'my file'");
        assert_eq!(quote("it's $(x)"), "'it'\\''s $(x)'");
        assert_eq!((quote(""), quote_path(Path::new(""))), ("''".to_owned(), ".".to_owned()));
    }
}
