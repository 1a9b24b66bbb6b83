//! The programs whose MCP configuration files are read, and their conventions (DIA-01, DIA-04, DIA-06 to DIA-08).
//!
//! The only place that knows these programs. A file whose path is not in the table belongs to the program that its
//! content points to, else to [`UNKNOWN`], whose conventions most programs share.

use crate::dialect::editor::{codex, opencode};
use crate::dialect::write::WriteReport;
use crate::syntax::Node;
use crate::syntax::output::OutputValue;

/// A program and the conventions of its files. A program with two kinds of files has two entries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its name, as shown to users.
    pub(crate) name: &'static str,
    /// Its files, relative to the home folder.
    pub(crate) home_files: &'static [&'static str],
    /// The ends of the paths of its other files, such as those of a workspace.
    files: &'static [&'static str],
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
    /// Goose's, which is not written.
    Goose,
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
    Sse,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// MCP servers.
    Servers,
    /// Settings, which may contain servers.
    Settings,
}

/// An unknown program. Its conventions are those of mcp-host itself.
pub(crate) const UNKNOWN: Program = Program {
    name: "an unknown program",
    home_files: &[],
    files: &["mcp.json", "mcp_config.json", "mcp-config.json"],
    key: "mcpServers",
    other_keys: &[],
    variables: VariableSyntax::Plain,
    shell_variables: ShellVariables::Literal,
    env_values: EnvValues::Texts,
    disabling: Disabling::Disabled,
    entry_form: EntryForm::Common,
    syntax: JsonExtensions::Unknown,
    url_transport: UrlTransport::HttpUnlessDeclared,
    content: FileContent::Servers,
};

const VS_CODE: Program = Program {
    name: "VS Code",
    home_files: &[
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        ".config/Code - Insiders/User/mcp.json",
        "Library/Application Support/Code - Insiders/User/mcp.json",
        ".config/VSCodium/User/mcp.json",
        "Library/Application Support/VSCodium/User/mcp.json",
    ],
    files: &[
        ".vscode/mcp.json",
        "Code/User/mcp.json",
        "Code - Insiders/User/mcp.json",
        "VSCodium/User/mcp.json",
    ],
    key: "servers",
    variables: VariableSyntax::EnvPrefixAndInputs,
    env_values: EnvValues::NumbersAndNull,
    disabling: Disabling::Unsupported("the view of MCP servers in VS Code disables it"),
    syntax: JsonExtensions::CommentsAndCommas,
    url_transport: UrlTransport::HttpThenSse,
    ..UNKNOWN
};

const GEMINI_CLI: Program = Program {
    name: "Gemini CLI",
    home_files: &[".gemini/settings.json"],
    files: &["gemini-extension.json"],
    shell_variables: ShellVariables::Replaced,
    disabling: Disabling::Unsupported(
        "`gemini mcp disable`, or the list `mcp.excluded` of its settings, does",
    ),
    syntax: JsonExtensions::Comments,
    url_transport: UrlTransport::Sse,
    content: FileContent::Settings,
    ..UNKNOWN
};

const CLAUDE_CODE: Program = Program {
    name: "Claude Code",
    home_files: &[],
    files: &[".mcp.json"],
    // Visual Studio, and the plugins of Claude Code.
    other_keys: &["servers", ""],
    disabling: Disabling::Unsupported(
        "the list `disabledMcpjsonServers` of .claude/settings.local.json, or `/mcp` in Claude Code, does",
    ),
    syntax: JsonExtensions::None,
    ..UNKNOWN
};

/// All programs. The first whose path fits is the program of a file; the last one is unknown.
const PROGRAMS: &[Program] = &[
    VS_CODE,
    Program {
        home_files: &[],
        files: &[".vscode/settings.json", "Code/User/settings.json"],
        key: "mcp.servers",
        content: FileContent::Settings,
        ..VS_CODE
    },
    Program {
        name: "Cursor",
        home_files: &[".cursor/mcp.json"],
        files: &[],
        variables: VariableSyntax::EnvPrefix,
        disabling: Disabling::Unsupported("the settings of Cursor disable it, under MCP"),
        syntax: JsonExtensions::None,
        ..UNKNOWN
    },
    Program {
        name: "Windsurf",
        home_files: &[".codeium/windsurf/mcp_config.json"],
        files: &["windsurf/mcp_config.json", ".codeium/mcp_config.json"],
        variables: VariableSyntax::EnvPrefix,
        ..UNKNOWN
    },
    Program {
        name: "Cline",
        home_files: &[
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ],
        files: &["cline_mcp_settings.json"],
        variables: VariableSyntax::EnvPrefix,
        syntax: JsonExtensions::None,
        ..UNKNOWN
    },
    Program {
        name: "Roo Code",
        home_files: &[
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ],
        files: &[".roo/mcp.json", "mcp_settings.json"],
        variables: VariableSyntax::EnvPrefix,
        syntax: JsonExtensions::None,
        ..UNKNOWN
    },
    Program {
        name: "Claude Desktop",
        home_files: &[
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
        ],
        files: &["claude_desktop_config.json"],
        variables: VariableSyntax::Unsupported,
        disabling: Disabling::Unsupported("it starts every server of its file"),
        syntax: JsonExtensions::None,
        ..UNKNOWN
    },
    CLAUDE_CODE,
    Program {
        home_files: &[".claude.json"],
        files: &[],
        disabling: Disabling::Unsupported("`/mcp` in Claude Code disables it for a project"),
        content: FileContent::Settings,
        ..CLAUDE_CODE
    },
    GEMINI_CLI,
    Program { name: "Qwen Code", home_files: &[".qwen/settings.json"], files: &[], ..GEMINI_CLI },
    Program { name: "Kiro", home_files: &[".kiro/settings/mcp.json"], files: &[], ..UNKNOWN },
    Program {
        name: "Zed",
        home_files: &[".config/zed/settings.json"],
        files: &[".zed/settings.json", "zed/settings.json", "Zed/settings.json"],
        key: "context_servers",
        variables: VariableSyntax::Unsupported,
        disabling: Disabling::Enabled,
        syntax: JsonExtensions::CommentsAndCommas,
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "opencode",
        home_files: &[".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"],
        files: &["opencode.json", "opencode.jsonc"],
        key: "mcp",
        variables: VariableSyntax::Braces,
        disabling: Disabling::Enabled,
        entry_form: EntryForm::Opencode,
        syntax: JsonExtensions::CommentsAndCommas,
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Crush",
        home_files: &[".config/crush/crush.json"],
        files: &["crush.json", ".crush.json"],
        key: "mcp",
        shell_variables: ShellVariables::Replaced,
        syntax: JsonExtensions::None,
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Amazon Q",
        home_files: &[".aws/amazonq/mcp.json"],
        files: &[".amazonq/mcp.json"],
        variables: VariableSyntax::EnvPrefix,
        syntax: JsonExtensions::None,
        ..UNKNOWN
    },
    Program {
        name: "LM Studio",
        home_files: &[".lmstudio/mcp.json"],
        disabling: Disabling::Unsupported("the switch of the server in LM Studio disables it"),
        files: &[],
        ..UNKNOWN
    },
    Program {
        name: "Copilot CLI",
        home_files: &[".copilot/mcp-config.json"],
        files: &[],
        shell_variables: ShellVariables::Replaced,
        disabling: Disabling::Unsupported(
            "`copilot --disable-mcp-server NAME`, or `/mcp disable NAME`, does",
        ),
        syntax: JsonExtensions::None,
        ..UNKNOWN
    },
    Program {
        name: "Amp",
        home_files: &[".config/amp/settings.json", ".config/amp/settings.jsonc"],
        files: &[".amp/settings.json", ".amp/settings.jsonc", "amp/settings.json"],
        key: "amp.mcpServers",
        syntax: JsonExtensions::CommentsAndCommas,
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Codex",
        home_files: &[".codex/config.toml"],
        files: &[],
        key: "mcp_servers",
        entry_form: EntryForm::Codex,
        variables: VariableSyntax::Unsupported,
        disabling: Disabling::Enabled,
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Goose",
        home_files: &[".config/goose/config.yaml"],
        files: &[],
        key: "extensions",
        entry_form: EntryForm::Goose,
        disabling: Disabling::Enabled,
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Continue",
        home_files: &[".continue/config.yaml"],
        files: &[],
        variables: VariableSyntax::Secrets,
        disabling: Disabling::Unsupported("Continue starts every server of its file"),
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "LibreChat",
        home_files: &[],
        files: &["librechat.yaml", "librechat.yml"],
        disabling: Disabling::Unsupported("LibreChat connects to every server of its file"),
        url_transport: UrlTransport::Sse,
        content: FileContent::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Dev Containers",
        home_files: &[],
        files: &["devcontainer.json", ".devcontainer.json"],
        key: "customizations.vscode.mcp.servers",
        content: FileContent::Settings,
        ..VS_CODE
    },
    UNKNOWN,
];

impl Program {
    /// The program of the file at a path. `None` if neither the path nor the file name is in the table.
    pub(crate) fn of_file(path: &str) -> Option<&'static Program> {
        let path = path.replace('\\', "/");
        let is_end = |end: &&str| {
            path.strip_suffix(*end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        PROGRAMS.iter().find(|it| it.home_files.iter().chain(it.files).any(&is_end))
    }

    /// The program of the servers under a key of a file: that of the path, unless the key is another program's.
    pub(crate) fn of_servers(path: &str, key: &str, servers: &Node) -> &'static Program {
        let by_path = Program::of_file(path).filter(|it| !it.is_unknown());
        let by_key = || PROGRAMS.iter().find(|it| it.key == key && !it.is_unknown());
        match by_path {
            Some(program) if program.key == key => program,
            // A path of keys leads there.
            Some(program) if program.key.ends_with(&format!(".{key}")) => program,
            _ if key != UNKNOWN.key => by_key().unwrap_or(&UNKNOWN),
            Some(program) => program,
            None => {
                let entries = servers.members().unwrap_or_default();
                let is_gemini = entries.iter().any(|it| it.value.get("httpUrl").is_some());
                if is_gemini { &GEMINI_CLI } else { &UNKNOWN }
            }
        }
    }

    /// The names of the programs that replace `$NAME`.
    pub(crate) fn names_with_shell_variables() -> Vec<&'static str> {
        PROGRAMS
            .iter()
            .filter(|it| it.shell_variables == ShellVariables::Replaced)
            .map(|it| it.name)
            .collect()
    }

    /// Rewrites an entry for this program: its form and its variables. Returns the ids of the inputs that it prompts
    /// for. `None` if the program cannot have the server, which is reported.
    pub(crate) fn adapt_entry(
        &self,
        data: OutputValue,
        report: &mut WriteReport<'_>,
    ) -> Option<(OutputValue, Vec<String>)> {
        let mut data = match self.entry_form {
            EntryForm::Common => data,
            EntryForm::Opencode => opencode::entry(data, report)?,
            EntryForm::Codex => codex::entry(data, report)?,
            EntryForm::Goose => {
                return report.server_omitted("server", "Goose's entries are read, but not written");
            }
        };
        let ids = self.rewrite_references(&mut data, report);
        Some((data, ids))
    }

    /// Whether this is the entry for all programs that are not in the table.
    pub(crate) fn is_unknown(&self) -> bool {
        *self == UNKNOWN
    }

    /// Whether it prompts for `${input:id}`.
    pub(crate) fn prompts_for_inputs(&self) -> bool {
        self.variables == VariableSyntax::EnvPrefixAndInputs
    }
}

/// The files of other programs: the name of the program, and the path relative to the home folder.
pub fn program_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROGRAMS.iter().flat_map(|program| program.home_files.iter().map(|path| (program.name, *path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Syntax, parse_as};

    #[track_caller]
    fn check(path: &str, key: &str, servers: &str, want: &str) {
        let root = parse_as(servers, Syntax::Json).root.unwrap();
        assert_eq!(Program::of_servers(path, key, &root).name, want, "{path} {key}");
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
    }
}
