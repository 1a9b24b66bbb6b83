//! A program that reads MCP servers, and the conventions of its files (DIA-01, DIA-04, DIA-06 to DIA-08).

use mcp_host_model::StartLimit;

/// A program and the conventions of its files. A program with two kinds of files has two entries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its name, as shown to users.
    pub(crate) name: &'static str,
    /// Its files, relative to the home folder.
    pub(crate) home_files: &'static [&'static str],
    /// Its files, relative to the folder where the system keeps the settings of programs: `~/.config`,
    /// `~/Library/Application Support`, or `%APPDATA%`.
    pub(crate) app_data_files: &'static [&'static str],
    /// Its files, relative to `%LOCALAPPDATA%`.
    pub(crate) local_app_data_files: &'static [&'static str],
    /// The ends of the paths of its files in a workspace.
    pub(super) files: &'static [&'static str],
    /// The ends of the paths of its files that belong to a user, in whatever folder.
    pub(super) user_files: &'static [&'static str],
    /// The top-level key of the servers.
    pub(crate) key: &'static str,
    /// Other top-level keys of the servers in files of the same name, which another program or version reads. An empty
    /// key means servers without a key above them.
    pub(crate) other_keys: &'static [&'static str],
    /// The syntax of variables.
    pub(crate) variables: VariableSyntax,
    /// Whether it also replaces `$NAME`.
    pub(crate) shell_variables: ShellVariables,
    /// Whether it replaces `~`.
    pub(crate) home_prefix: HomePrefix,
    /// The values of variables that it accepts.
    pub(crate) env_values: EnvValues,
    /// How an entry disables its server.
    pub(crate) disabling: Disabling,
    /// The form of an entry.
    pub(crate) entry_form: EntryForm,
    /// What it accepts beyond JSON.
    pub(crate) json_extensions: JsonExtensions,
    /// The transport of a URL.
    pub(crate) url_transport: UrlTransport,
    /// Whether the file holds other settings too, so that it is valid without servers.
    pub(crate) file_purpose: FilePurpose,
    /// Whether it connects to URLs.
    pub(crate) url_support: UrlSupport,
    /// What limits a start in the program, or in mcp-host if the program has no such limit.
    pub(crate) start_limit: StartLimit,
    /// The unit of the key `timeout`.
    pub(crate) timeout_unit: TimeoutUnit,
    /// The keys that state which calls need a confirmation.
    pub(crate) approval_keys: ApprovalKeys,
    /// The lines without which the program refuses the file.
    pub(crate) required_lines: &'static [&'static str],
}

/// The unit of the key `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeoutUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Unknown: the size of the number tells.
    BySize,
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

impl VariableSyntax {
    /// A reference to a variable of the environment. Without variables, it is the one that only this host replaces.
    pub(crate) fn reference(self, name: &str) -> String {
        match self {
            VariableSyntax::EnvPrefix | VariableSyntax::EnvPrefixAndInputs => format!("${{env:{name}}}"),
            VariableSyntax::Braces => format!("{{env:{name}}}"),
            VariableSyntax::Secrets => format!("${{{{ secrets.{name} }}}}"),
            VariableSyntax::Plain | VariableSyntax::Unsupported => format!("${{{name}}}"),
        }
    }
}

/// Whether a program replaces `$NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellVariables {
    /// In `env`, `headers` and URLs.
    Replaced,
    /// In every text. One that is not set stays as it is.
    ReplacedEverywhere,
    Literal,
}

/// Whether a program replaces `~` at the start of a command, an argument and a working directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomePrefix {
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
    /// By this key.
    Key(SwitchKey),
    /// By name, in the lists `mcp.excluded` and `mcp.allowed` of the file.
    NameLists,
    /// Not in this file. The text says how the program itself disables a server.
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

/// Whether a program connects to URLs of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlSupport {
    Supported,
    /// It only starts programs. The text says how it connects to a URL.
    Unsupported(&'static str),
}

/// The keys of an entry that state which calls need a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalKeys {
    /// No key of the entry does.
    None,
    /// A list of tools that need none, under this key.
    Names(&'static str),
    /// `trust: true`: no tool needs one.
    Trust,
    /// `default_tools_approval_mode`, and `approval_mode` of each tool.
    Codex,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilePurpose {
    /// MCP servers.
    Servers,
    /// Settings, which may contain servers.
    Settings,
}

impl Program {
    /// The syntax of variables in the member `key` of an entry.
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

    /// The help of a diagnostic: how a server is disabled in a file of this program.
    pub(crate) fn disabling_help(&self) -> String {
        match (self.disabling, self.json_extensions) {
            (Disabling::Key(SwitchKey { name, disabled_value }), _) => {
                format!("set `{name}` to {disabled_value}; `mcp-host disable` does that")
            }
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

    /// Whether it prompts for `${input:id}`.
    pub(crate) fn prompts_for_inputs(&self) -> bool {
        self.variables == VariableSyntax::EnvPrefixAndInputs
    }
}

/// A key that disables a server by one of its two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SwitchKey {
    pub(crate) name: &'static str,
    /// The value for a disabled server.
    pub(crate) disabled_value: bool,
}

/// `"disabled": true`.
pub(crate) const DISABLED: SwitchKey = SwitchKey { name: "disabled", disabled_value: true };

/// `"enabled": false`.
pub(crate) const ENABLED: SwitchKey = SwitchKey { name: "enabled", disabled_value: false };
