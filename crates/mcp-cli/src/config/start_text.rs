//! Describes what a server starts or connects to, before the user approves it.
//!
//! Nothing is left out or shortened. Characters that could hide a part of it are shown as escapes.

use std::collections::BTreeSet;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{
    ConfigValue, Endpoint, EnvInheritance, Secret, StdioEndpoint, TemplatePart, TransportSpec,
};
use mcp_host_registry::{ProgramPart, ProgramRecord};
use mcp_host_runtime::PendingServer;

use crate::output::{quote, sanitize};

/// The maximum number of characters outside of ASCII that are named.
const MAX_NAMED_LETTERS: usize = 5;

/// What a server starts or connects to, what it receives, and what is new or changed, in lines.
pub(crate) fn start_text(pending: &PendingServer<'_>) -> String {
    let PendingServer { server, program, approved, .. } = pending;
    let mark = if approved.is_some() { "changed since you approved it" } else { "new" };
    let mut lines = Lines(format!("  {} ({mark})\n", sanitize::line(server.spec.id.as_str())));
    // A name in another script alone looks like no other name.
    if server.spec.id.as_str().contains(|it: char| it.is_ascii_alphabetic()) {
        let letters = letters_outside_ascii(server.spec.id.as_str());
        lines.add("its name has letters that may look like others", &letters);
    }
    match &server.endpoint {
        Endpoint::Stdio(stdio) => add_process(&mut lines, stdio, program),
        Endpoint::Sse(_) | Endpoint::WebSocket(_) | Endpoint::Http(_) => {
            lines.add("connects to", program.part(ProgramPart::Url));
            lines.add("sends the headers", program.part(ProgramPart::Headers));
        }
    }
    let UserInputs { variables, files } = user_inputs(server);
    lines.add("reads your variables", &variables);
    lines.add("reads the files", &files);
    lines.add("reads your secrets", &server.secrets.names);
    if let Some(before) = approved {
        let changes = change_texts(pending, before.program.as_ref()).join("; ");
        lines.add("changed", &[changes]);
    }
    lines.0
}

/// What the programs of a question can do beyond their lines. Empty if each has a sandbox.
pub(crate) fn rights_text(pending: &[PendingServer<'_>]) -> &'static str {
    let programs = pending.iter().filter_map(|it| match &it.server.endpoint {
        Endpoint::Stdio(stdio) if stdio.sandbox.is_none() => Some(stdio.inherit),
        Endpoint::Stdio(_) | Endpoint::Sse(_) | Endpoint::WebSocket(_) | Endpoint::Http(_) => None,
    });
    match programs.reduce(|one, other| if one == EnvInheritance::All { one } else { other }) {
        None => "",
        Some(EnvInheritance::All) => {
            "A program without a sandbox receives all your variables, and can read and change all that you can.\n"
        }
        Some(EnvInheritance::None | EnvInheritance::Safe) => {
            "A program without a sandbox can read and change all that you can.\n"
        }
    }
}

fn add_process(lines: &mut Lines, stdio: &StdioEndpoint, program: &ProgramRecord) {
    let words = [stdio.command.as_str()].into_iter().chain(stdio.args.iter().map(Secret::expose));
    let words: Vec<String> = words.map(|it| quote(&sanitize::visible(it))).collect();
    let command_line = words.join(" ");
    lines.add("starts the program", std::slice::from_ref(&command_line));
    lines.add("has letters that may look like others", &letters_outside_ascii(&command_line));
    for package in program.part(ProgramPart::Package) {
        let pinned = match package.strip_suffix(" not pinned") {
            Some(name) => format!("{name}, in the version that is newest at each start"),
            None => package.clone(),
        };
        lines.add("loads the package", &[pinned]);
    }
    if let Some(folder) = &stdio.cwd {
        lines.add("in the folder", &[folder.display().to_string()]);
    }
    if let Some(sandbox) = &stdio.sandbox {
        lines.add("in a sandbox", &[sandbox.to_string()]);
    }
    let name_of_file = |it: &String| file_name(it).to_owned();
    let files: Vec<String> = program.part(ProgramPart::Files).iter().map(name_of_file).collect();
    lines.add("runs files of the project", &files);
    lines.add("sets the variables", program.part(ProgramPart::Variables));
}

/// Returns the first letters of a text that are not ASCII, with their code points.
fn letters_outside_ascii(text: &str) -> Vec<String> {
    let letters: BTreeSet<char> = text.chars().filter(|it| !it.is_ascii()).collect();
    letters.iter().take(MAX_NAMED_LETTERS).map(|it| format!("{it} (U+{:04X})", u32::from(*it))).collect()
}

/// Lines with a label.
struct Lines(String);

impl Lines {
    /// Adds a line, unless it has no items.
    fn add<'a>(&mut self, label: &str, items: impl IntoIterator<Item = &'a String>) {
        let items: Vec<String> = items.into_iter().map(|it| sanitize::visible(it)).collect();
        if !items.is_empty() {
            self.0.push_str(&format!("    {label}: {}\n", items.join(", ")));
        }
    }
}

/// What a server reads of the user.
#[derive(Default)]
struct UserInputs {
    /// Names of variables of the environment.
    variables: BTreeSet<String>,
    /// Files of variables, and files whose content is a value.
    files: BTreeSet<String>,
}

/// Finds the references in the values of a server.
fn user_inputs(server: &ResolvedServer) -> UserInputs {
    let mut res = UserInputs::default();
    match &server.spec.transport {
        TransportSpec::Stdio(spec) => {
            spec.args.iter().chain(spec.env.iter().map(|it| &it.1)).for_each(|it| res.add(it));
            if let Some(file) = &spec.env_file {
                res.add(file);
                if let ConfigValue::Literal(path) = file {
                    res.files.insert(path.expose().to_owned());
                }
            }
        }
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            res.add(&spec.url);
            spec.headers.iter().for_each(|it| res.add(&it.1));
        }
    }
    res
}

impl UserInputs {
    fn add(&mut self, value: &ConfigValue) {
        match value {
            ConfigValue::Literal(_) => {}
            ConfigValue::HostEnv { name, prefix: _ } => {
                self.variables.insert(name.clone());
            }
            ConfigValue::Template(parts) => parts.iter().for_each(|it| self.add_part(it)),
        }
    }

    fn add_part(&mut self, part: &TemplatePart) {
        match part {
            TemplatePart::Variable(name)
            | TemplatePart::OptionalVariable(name)
            | TemplatePart::VariableOr { name, default: _ } => {
                self.variables.insert(name.clone());
            }
            TemplatePart::File(path) => {
                self.files.insert(path.clone());
            }
            // Inputs are secrets, which have a line of their own.
            TemplatePart::Text(_) | TemplatePart::Input(_) | TemplatePart::Secret(_) => {}
        }
    }
}

/// What differs from the approval, for each part.
fn change_texts(pending: &PendingServer<'_>, before: Option<&ProgramRecord>) -> Vec<String> {
    let (Some(before), Some(parts)) = (before, pending.changed_parts()) else {
        return vec!["unknown, because an earlier version of mcp-host approved it".to_owned()];
    };
    if parts.is_empty() {
        let text = "something that is not shown: the value of a variable or header, a secret, or a data file";
        return vec![text.to_owned()];
    }
    let change = |part: ProgramPart| {
        let (old, new) = (before.part(part), pending.program.part(part));
        if part == ProgramPart::Files {
            return file_changes(old, new);
        }
        let old = if old.is_empty() { "none".to_owned() } else { format!("`{}`", old.join(" ")) };
        vec![format!("{} (before: {old})", part.as_str())]
    };
    // The package is one of the arguments.
    let is_shown = |it: &ProgramPart| *it != ProgramPart::Package || !parts.contains(&ProgramPart::Arguments);
    parts.iter().copied().filter(is_shown).flat_map(change).collect()
}

/// The files that were added, removed or edited.
fn file_changes(before: &[String], now: &[String]) -> Vec<String> {
    let has_name = |files: &[String], name: &str| files.iter().any(|it| file_name(it) == name);
    let added = now.iter().filter(|it| !before.contains(it)).map(|it| {
        let name = file_name(it);
        let change = if has_name(before, name) { "was edited" } else { "was not run before" };
        format!("{name} {change}")
    });
    let gone = before.iter().map(|it| file_name(it)).filter(|it| !has_name(now, it));
    added.chain(gone.map(|it| format!("{it} is not run any more"))).collect()
}

/// The path of a file in a record, without its hash.
fn file_name(recorded: &str) -> &str {
    recorded.rsplit_once(" blake3:").map_or(recorded, |it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_files_are_named() {
        let files = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let before = files(&["a.sh blake3:1", "b.sh blake3:2", "c.sh blake3:3"]);
        let now = files(&["a.sh blake3:1", "b.sh blake3:9", "d.sh blake3:4"]);
        let want = ["b.sh was edited", "d.sh was not run before", "c.sh is not run any more"];
        assert_eq!(file_changes(&before, &now), want);
    }
}
