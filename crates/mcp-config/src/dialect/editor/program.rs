//! A program whose MCP configuration files are read, and its conventions (DIA-01, DIA-04, DIA-06 to DIA-08).
//!
//! A file whose path is not in the table belongs to the program that its content points to, else to [`UNKNOWN`], whose
//! conventions most programs share.

use crate::dialect::editor::entry_forms;
use crate::dialect::editor::programs::{
    CONTINUE, CRUSH, GEMINI_CLI, LIBRE_CHAT, LIBRE_CHAT_KEYS, PROGRAMS, UNKNOWN,
};
use crate::dialect::write::WriteReport;
use crate::syntax::output::OutputValue;
use crate::syntax::{Node, last, segments};

/// A program and the conventions of its files. A program with two kinds of files has two entries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its name, as shown to users.
    pub(crate) name: &'static str,
    /// Its files, relative to the home folder.
    pub(crate) home_files: &'static [&'static str],
    /// The ends of the paths of its other files, such as those of a workspace.
    pub(super) files: &'static [&'static str],
    /// The top-level key of the servers.
    pub(crate) key: &'static str,
    /// Other forms of a file of this name, in which another program or version reads the servers: keys, or nothing for
    /// servers without a key above them.
    pub(crate) other_keys: &'static [&'static str],
    /// The syntax of variables.
    pub(crate) variables: VariableSyntax,
    /// Whether it also replaces `$NAME`.
    pub(crate) shell_variables: ShellVariables,
    /// The values of variables that it accepts.
    pub(crate) env_values: EnvValues,
    /// How an entry disables its server.
    pub(crate) disabling: Disabling,
    /// The form of an entry.
    pub(crate) entry_form: EntryForm,
    /// What it accepts beyond JSON.
    pub(crate) syntax: JsonExtensions,
    /// The transport of a URL.
    pub(crate) url_transport: UrlTransport,
    /// Whether the file holds other settings too, so that it is valid without servers.
    pub(crate) content: FileContent,
    /// The lines without which the program refuses the file.
    pub(crate) required_lines: &'static [&'static str],
}

/// The syntax of environment variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableSyntax {
    /// `${NAME}`.
    Plain,
    /// `${env:NAME}`.
    EnvPrefix,
    /// Like `EnvPrefix`, and prompts for `${input:id}`.
    EnvPrefixAndInputs,
    /// `{env:NAME}`, and `{file:path}` for the content of a file.
    Braces,
    /// `${{ secrets.NAME }}`.
    Secrets,
    /// No variables: every text is used unchanged.
    Unsupported,
}

/// Whether a program replaces `$NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellVariables {
    Replaced,
    Literal,
}

/// The values that a program accepts in `env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvValues {
    /// Texts.
    Texts,
    /// Texts, numbers, and null for a variable to remove.
    NumbersAndNull,
}

/// How an entry disables its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disabling {
    /// `"disabled": true`.
    Disabled,
    /// `"enabled": false`.
    Enabled,
    /// The lists `mcp.excluded` and `mcp.allowed` of the file do, by name.
    NameLists,
    /// No key of the entry does. The text says how the program itself disables a server.
    Unsupported(&'static str),
}

/// The form of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// `command`, `args` and `env`, or `url` and `headers`.
    Common,
    /// A `type`, the program and its arguments as one list, and no other keys: opencode.
    Opencode,
    /// Codex's keys, and no others.
    Codex,
    /// Goose's keys, and no others.
    Goose,
    /// Continue's keys, and no others. The servers are a list.
    Continue,
}

/// What a program accepts beyond JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonExtensions {
    /// Nothing.
    None,
    /// Comments.
    Comments,
    /// Comments and trailing commas.
    CommentsAndCommas,
    /// Not known, or different between the versions of the program.
    Unknown,
}

/// The transport of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlTransport {
    /// Streamable HTTP, then server-sent events unless `http` is declared.
    HttpUnlessDeclared,
    /// Streamable HTTP, then server-sent events even if `http` is declared.
    HttpThenSse,
    /// Server-sent events, unless another transport is declared.
    SseUnlessDeclared,
    /// Server-sent events under `url`, Streamable HTTP under `httpUrl`.
    SseUnlessHttpUrl,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// MCP servers.
    Servers,
    /// Settings, which may contain servers.
    Settings,
}

impl Program {
    /// The program of the file at a path. `None` if neither the path nor the file name is in the table.
    pub(crate) fn of_file(path: &str) -> Option<&'static Program> {
        let path = path.replace('\\', "/");
        let is_end = |end: &&str| {
            path.strip_suffix(*end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        PROGRAMS.iter().find(|it| it.home_files.iter().chain(it.files).any(&is_end))
    }

    /// Like [`Program::of_file`], with the unknown program as the default.
    pub(crate) fn of(path: &str) -> &'static Program {
        Program::of_file(path).unwrap_or(&UNKNOWN)
    }

    /// Whether it is known, and its files include the one at a path.
    pub(super) fn is_of_file(&self, path: &str) -> bool {
        !self.is_unknown() && Program::of_file(path).is_some_and(|it| it.name == self.name)
    }

    /// The program of the servers at a pointer of a file: that of the path, unless the key of the servers or the content
    /// of the file is another program's.
    pub(crate) fn of_servers(path: &str, root: &Node, at: &str) -> &'static Program {
        let by_path = Program::of_file(path).filter(|it| !it.is_unknown());
        let keys = [segments(at).collect::<Vec<_>>().join("."), last(at)];
        // Many programs have the usual key.
        let of_key = |key: &String| PROGRAMS.iter().find(|it| it.key == key && it.key != UNKNOWN.key);
        match (by_path, keys.iter().find_map(of_key)) {
            (Some(program), _) if keys.iter().any(|it| program.key == it) => program,
            (_, Some(program)) => Program::of_content(root, at).unwrap_or(program),
            (Some(program), None) => program,
            (None, None) => Program::of_content(root, at).unwrap_or(&UNKNOWN),
        }
    }

    /// The program that the content of a file points to, beyond the key of the servers.
    fn of_content(root: &Node, at: &str) -> Option<&'static Program> {
        let servers = root.at(at);
        let has = |key: &str| root.get(key).is_some();
        let entries = servers.and_then(Node::members).unwrap_or_default().iter().map(|it| &it.value);
        let mut texts = entries.clone().filter_map(|it| it.get("command")?.value.text());
        match at {
            // opencode has this key too, and the program and its arguments as one list.
            "/mcp" if texts.next().is_some() => Some(&CRUSH),
            "/mcpServers" | "" if entries.clone().any(|it| it.get("httpUrl").is_some()) => Some(&GEMINI_CLI),
            "/mcpServers" if has("schema") && servers.is_none_or(|it| it.members().is_none()) => {
                Some(&CONTINUE)
            }
            "/mcpServers" if has("version") && LIBRE_CHAT_KEYS.iter().any(|it| has(it)) => Some(&LIBRE_CHAT),
            _ => None,
        }
    }

    /// The names of the programs that replace `$NAME`.
    pub(crate) fn names_with_shell_variables() -> Vec<&'static str> {
        let replacing = PROGRAMS.iter().filter(|it| it.shell_variables == ShellVariables::Replaced);
        let mut res: Vec<_> = replacing.map(|it| it.name).collect();
        res.dedup();
        res
    }

    /// Rewrites an entry for this program: its form and its variables. Returns the ids of the inputs that it prompts
    /// for. `None` if the program cannot have the server, which is reported.
    pub(crate) fn adapt_entry(
        &self,
        name: &str,
        data: OutputValue,
        report: &mut WriteReport<'_>,
    ) -> Option<(OutputValue, Vec<String>)> {
        let OutputValue::Map(members) = data else { return Some((data, Vec::new())) };
        let mut members = entry_forms::entry(self.entry_form, name, members, report)?;
        entry_forms::declare_http(self.url_transport, &mut members);
        let ids = self.rewrite_references(members.iter_mut().map(|(key, value)| (&**key, value)), report);
        Some((OutputValue::Map(members), ids))
    }

    /// Where an entry of this program has a field of the common form: its key, or a path of keys.
    pub(crate) fn path_of(&self, field: &str) -> Option<&'static str> {
        entry_forms::path_of(self.entry_form, field)
    }

    /// The syntax of variables in a member of an entry.
    pub(super) fn variables_in(&self, key: &str) -> VariableSyntax {
        match self.entry_form {
            EntryForm::Goose if key != "headers" => VariableSyntax::Unsupported,
            EntryForm::Common
            | EntryForm::Opencode
            | EntryForm::Codex
            | EntryForm::Goose
            | EntryForm::Continue => self.variables,
        }
    }

    /// How a server is disabled in a file of this program, as a help.
    pub(crate) fn way_to_disable(&self) -> String {
        match (self.disabling, self.syntax) {
            (Disabling::Disabled, _) => "set `disabled` to true; `mcp-host disable` does that".to_owned(),
            (Disabling::Enabled, _) => "set `enabled` to false; `mcp-host disable` does that".to_owned(),
            (Disabling::NameLists, _) => {
                "add the name to the list `mcp.excluded`; `mcp-host disable` does that".to_owned()
            }
            (Disabling::Unsupported(_), JsonExtensions::Comments | JsonExtensions::CommentsAndCommas) => {
                "turn the entry into a comment; `mcp-host disable` does that".to_owned()
            }
            (Disabling::Unsupported(own_way), JsonExtensions::None | JsonExtensions::Unknown) => {
                format!("{} obeys no key that disables a server; {own_way}", self.name)
            }
        }
    }

    /// Whether this is the entry for all programs that are not in the table.
    pub(crate) fn is_unknown(&self) -> bool {
        self.name == UNKNOWN.name
    }

    /// Whether it prompts for `${input:id}`.
    pub(crate) fn prompts_for_inputs(&self) -> bool {
        self.variables == VariableSyntax::EnvPrefixAndInputs
    }
}

/// A file with servers of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramFile {
    /// The name of the program.
    pub program: &'static str,
    /// The path relative to the home folder.
    pub path: &'static str,
}

/// The files of other programs.
pub fn program_files() -> impl Iterator<Item = ProgramFile> {
    PROGRAMS.iter().flat_map(|it| it.home_files.iter().map(|path| ProgramFile { program: it.name, path }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Syntax, child, parse_as};

    #[track_caller]
    fn check(path: &str, key: &str, servers: &str, want: &str) {
        check_file(path, &child("", key), &format!("{{\"{key}\": {servers}}}"), want);
    }

    #[track_caller]
    fn check_file(path: &str, at: &str, text: &str, want: &str) {
        let root = parse_as(text, Syntax::JsonWithComments).root.unwrap();
        assert_eq!(Program::of_servers(path, &root, at).name, want, "{path} {at} {text}");
    }

    #[test]
    fn dia_01_program_is_known_by_path_then_content() {
        for (path, want) in [
            (".vscode/mcp.json", "VS Code"),
            ("C:\\x\\Code\\User\\mcp.json", "VS Code"),
            ("/home/me/.cursor/mcp.json", "Cursor"),
            ("mcp_settings.json", "Roo Code"),
            ("x/.mcp.json", "Claude Code"),
            ("mcp.json", "an unknown program"),
            ("a.yaml", ""),
            ("settings.json", ""),
        ] {
            assert_eq!(Program::of_file(path).map_or("", |it| it.name), want, "{path}");
        }
        let plain = r#"{"a": {"url": "x"}}"#;
        let gemini = r#"{"a": {"url": "x"}, "b": {"httpUrl": "x"}}"#;
        check(".cursor/mcp.json", "mcpServers", plain, "Cursor");
        check(".cursor/mcp.json", "mcpServers", gemini, "Cursor");
        check("a.json", "mcpServers", plain, "an unknown program");
        check("mcp.json", "mcpServers", gemini, "Gemini CLI");
        // Visual Studio also has this file.
        check(".mcp.json", "servers", plain, "VS Code");
        check(".vscode/mcp.json", "mcpServers", plain, "VS Code");
        check("settings.json", "mcp.servers", plain, "VS Code");
        check("settings.json", "context_servers", plain, "Zed");
        check("a.json", "mcp", plain, "opencode");
        check("crush.json", "mcp", plain, "Crush");
        check("a.json", "mcp", r#"{"a": {"command": "x"}}"#, "Crush");
        check("opencode.json", "mcp", r#"{"a": {"command": "x"}}"#, "opencode");
        check("a.json", "mcp", r#"{"a": {"command": ["x"]}}"#, "opencode");
        check("a.toml", "mcp_servers", plain, "Codex");
        check("a.yaml", "extensions", plain, "Goose");
        check("a.json", "amp.mcpServers", plain, "Amp");
        let nested = r#"{"customizations": {"vscode": {"mcp": {"servers": {}}}}}"#;
        check_file("a.json", "/customizations/vscode/mcp/servers", nested, "Dev Containers");
        check_file("a.json", "/mcp/servers", r#"{"mcp": {"servers": {}}}"#, "VS Code");
        let assistant = r#"{"name": "a", "schema": "v1", "mcpServers": [{"name": "a", "command": "x"}]}"#;
        check_file("a.yaml", "/mcpServers", assistant, "Continue");
        check_file("mcp.json", "/mcpServers", r#"{"mcpServers": [{"command": "x"}]}"#, "an unknown program");
        let chat = r#"{"version": "1.2.1", "endpoints": {}, "mcpServers": {"a": {"url": "x"}}}"#;
        check_file("a.yaml", "/mcpServers", chat, "LibreChat");
        check_file("a.yaml", "/mcpServers", r#"{"version": 1, "mcpServers": {}}"#, "an unknown program");
        check_file("a.json", "", gemini, "Gemini CLI");
    }
}
