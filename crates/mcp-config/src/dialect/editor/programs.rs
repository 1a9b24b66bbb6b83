//! The table of programs whose MCP configuration files are read.
//!
//! No other file knows these programs. New knowledge about a program is a row or a field here.

use mcp_host_model::StartLimit;

use crate::dialect::editor::conventions::{
    ApprovalKeys, DISABLED, Disabling, ENABLED, EntryForm, EnvValues, FilePurpose, HomePrefix,
    JsonExtensions, Program, ShellVariables, TimeoutUnit, UrlSupport, UrlTransport, VariableSyntax,
};

/// A program that is not in the table. Its conventions are those of mcp-host itself.
pub(crate) const UNKNOWN: Program = Program {
    name: "an unknown program",
    home_files: &[],
    app_data_files: &[],
    local_app_data_files: &[],
    files: &[],
    user_files: &[],
    key: "mcpServers",
    other_keys: &[],
    variables: VariableSyntax::Plain,
    shell_variables: ShellVariables::Literal,
    home_prefix: HomePrefix::Literal,
    env_values: EnvValues::Texts,
    disabling: Disabling::Key(DISABLED),
    entry_form: EntryForm::Common,
    json_extensions: JsonExtensions::Unknown,
    url_transport: UrlTransport::HttpUnlessDeclared,
    file_purpose: FilePurpose::Servers,
    url_support: UrlSupport::Supported,
    start_limit: StartLimit::Key("startup_timeout_sec"),
    timeout_unit: TimeoutUnit::BySize,
    approval_keys: ApprovalKeys::None,
    required_lines: &[],
};

const VS_CODE: Program = Program {
    name: "VS Code",
    app_data_files: &["Code/User/mcp.json", "Code - Insiders/User/mcp.json", "VSCodium/User/mcp.json"],
    files: &[".vscode/mcp.json"],
    key: "servers",
    variables: VariableSyntax::EnvPrefixAndInputs,
    home_prefix: HomePrefix::Replaced,
    env_values: EnvValues::NumbersAndNull,
    disabling: Disabling::Unsupported("the view of MCP servers in VS Code disables it"),
    json_extensions: JsonExtensions::CommentsAndCommas,
    url_transport: UrlTransport::HttpThenSse,
    ..UNKNOWN
};

pub(super) const GEMINI_CLI: Program = Program {
    name: "Gemini CLI",
    home_files: &[".gemini/settings.json"],
    shell_variables: ShellVariables::ReplacedEverywhere,
    disabling: Disabling::NameLists,
    json_extensions: JsonExtensions::Comments,
    file_purpose: FilePurpose::Settings,
    start_limit: StartLimit::Key("timeout"),
    timeout_unit: TimeoutUnit::Milliseconds,
    approval_keys: ApprovalKeys::Trust,
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
    json_extensions: JsonExtensions::None,
    start_limit: StartLimit::Variable("MCP_TIMEOUT"),
    timeout_unit: TimeoutUnit::Milliseconds,
    ..UNKNOWN
};

const OPENCODE: Program = Program {
    name: "opencode",
    home_files: &[".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"],
    files: &["opencode.json", "opencode.jsonc"],
    key: "mcp",
    variables: VariableSyntax::Braces,
    disabling: Disabling::Key(ENABLED),
    entry_form: EntryForm::Opencode,
    json_extensions: JsonExtensions::CommentsAndCommas,
    file_purpose: FilePurpose::Settings,
    start_limit: StartLimit::Key("timeout"),
    timeout_unit: TimeoutUnit::Milliseconds,
    ..UNKNOWN
};

pub(super) const CRUSH: Program = Program {
    name: "Crush",
    home_files: &[".config/crush/crush.json"],
    local_app_data_files: &["crush/crush.json"],
    files: &["crush.json", ".crush.json"],
    key: "mcp",
    shell_variables: ShellVariables::Replaced,
    json_extensions: JsonExtensions::None,
    file_purpose: FilePurpose::Settings,
    start_limit: StartLimit::Key("timeout"),
    timeout_unit: TimeoutUnit::Seconds,
    ..UNKNOWN
};

pub(super) const CONTINUE: Program = Program {
    name: "Continue",
    home_files: &[".continue/config.yaml"],
    entry_form: EntryForm::Continue,
    required_lines: &["name: Local Assistant", "version: 1.0.0", "schema: v1"],
    variables: VariableSyntax::Secrets,
    disabling: Disabling::Unsupported("Continue starts every server of its file"),
    file_purpose: FilePurpose::Settings,
    start_limit: StartLimit::Key("connectionTimeout"),
    ..UNKNOWN
};

pub(super) const LIBRE_CHAT: Program = Program {
    name: "LibreChat",
    home_files: &[],
    files: &["librechat.yaml", "librechat.yml"],
    disabling: Disabling::Unsupported("LibreChat connects to every server of its file"),
    url_transport: UrlTransport::SseUnlessDeclared,
    file_purpose: FilePurpose::Settings,
    start_limit: StartLimit::Key("initTimeout"),
    timeout_unit: TimeoutUnit::Milliseconds,
    ..UNKNOWN
};

/// The pointer to the servers of a dev container.
pub(crate) const DEV_CONTAINER_SERVERS: &str = "/customizations/vscode/mcp/servers";

/// The pointer to the inputs of a dev container.
pub(crate) const DEV_CONTAINER_INPUTS: &str = "/customizations/vscode/mcp/inputs";

pub(super) const DEV_CONTAINER: Program = Program {
    name: "Dev Containers",
    app_data_files: &[],
    files: &["devcontainer.json", ".devcontainer.json"],
    key: "customizations.vscode.mcp.servers",
    file_purpose: FilePurpose::Settings,
    ..VS_CODE
};

/// Top-level keys of LibreChat's files, beside `version` and `mcpServers`.
pub(super) const LIBRE_CHAT_KEYS: [&str; 5] =
    ["endpoints", "mcpSettings", "interface", "registration", "fileConfig"];

/// All programs. The first one with the path of a file is its program. The last row has the file names of several
/// programs.
pub(super) const PROGRAMS: &[Program] = &[
    VS_CODE,
    Program {
        app_data_files: &[],
        files: &[".vscode/settings.json"],
        user_files: &["Code/User/settings.json"],
        key: "mcp.servers",
        file_purpose: FilePurpose::Settings,
        ..VS_CODE
    },
    Program {
        name: "Cursor",
        home_files: &[".cursor/mcp.json"],
        variables: VariableSyntax::EnvPrefix,
        disabling: Disabling::Unsupported("the settings of Cursor disable it, under MCP"),
        json_extensions: JsonExtensions::None,
        ..UNKNOWN
    },
    Program {
        name: "Windsurf",
        home_files: &[".codeium/windsurf/mcp_config.json"],
        files: &[".windsurf/mcp_config.json"],
        user_files: &["windsurf/mcp_config.json", ".codeium/mcp_config.json"],
        variables: VariableSyntax::EnvPrefix,
        ..UNKNOWN
    },
    Program {
        name: "Cline",
        approval_keys: ApprovalKeys::Names("autoApprove"),
        app_data_files: &["Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"],
        user_files: &["cline_mcp_settings.json"],
        variables: VariableSyntax::EnvPrefix,
        json_extensions: JsonExtensions::None,
        timeout_unit: TimeoutUnit::Seconds,
        ..UNKNOWN
    },
    Program {
        name: "Roo Code",
        approval_keys: ApprovalKeys::Names("alwaysAllow"),
        app_data_files: &["Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"],
        files: &[".roo/mcp.json"],
        user_files: &["mcp_settings.json"],
        variables: VariableSyntax::EnvPrefix,
        json_extensions: JsonExtensions::None,
        timeout_unit: TimeoutUnit::Seconds,
        ..UNKNOWN
    },
    Program {
        name: "Claude Desktop",
        app_data_files: &["Claude/claude_desktop_config.json"],
        // The package of the Microsoft Store has a folder of its own in place of `%APPDATA%`.
        local_app_data_files: &[
            "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
        ],
        user_files: &["claude_desktop_config.json"],
        variables: VariableSyntax::Unsupported,
        disabling: Disabling::Unsupported("it starts every server of its file"),
        json_extensions: JsonExtensions::None,
        url_support: UrlSupport::Unsupported(
            "add the URL in its settings, under Connectors; or start a bridge: `npx -y mcp-remote URL`",
        ),
        ..UNKNOWN
    },
    CLAUDE_CODE,
    Program {
        home_files: &[".claude.json"],
        files: &[],
        disabling: Disabling::Unsupported("`/mcp` in Claude Code disables it for a project"),
        file_purpose: FilePurpose::Settings,
        ..CLAUDE_CODE
    },
    GEMINI_CLI,
    Program {
        home_files: &[],
        files: &["gemini-extension.json"],
        disabling: Disabling::Unsupported(
            "the list `mcp.excluded` of .gemini/settings.json, or `gemini extensions disable`, does",
        ),
        json_extensions: JsonExtensions::None,
        ..GEMINI_CLI
    },
    Program {
        name: "Qwen Code",
        home_files: &[".qwen/settings.json"],
        files: &[".qwen/settings.local.json"],
        url_transport: UrlTransport::SseUnlessHttpUrl,
        ..GEMINI_CLI
    },
    Program {
        name: "Kiro",
        approval_keys: ApprovalKeys::Names("autoApprove"),
        home_files: &[".kiro/settings/mcp.json"],
        ..UNKNOWN
    },
    Program {
        name: "Zed",
        home_files: &[".config/zed/settings.json"],
        app_data_files: &["Zed/settings.json"],
        files: &[".zed/settings.json"],
        user_files: &["zed/settings.json"],
        key: "context_servers",
        variables: VariableSyntax::Unsupported,
        disabling: Disabling::Key(ENABLED),
        json_extensions: JsonExtensions::CommentsAndCommas,
        file_purpose: FilePurpose::Settings,
        ..UNKNOWN
    },
    OPENCODE,
    Program {
        name: "Kilo Code",
        approval_keys: ApprovalKeys::Names("alwaysAllow"),
        home_files: &[".config/kilo/kilo.json", ".config/kilo/kilo.jsonc"],
        files: &["kilo.json", "kilo.jsonc"],
        ..OPENCODE
    },
    CRUSH,
    Program {
        name: "Amazon Q",
        home_files: &[".aws/amazonq/mcp.json"],
        files: &[".amazonq/mcp.json"],
        variables: VariableSyntax::EnvPrefix,
        json_extensions: JsonExtensions::None,
        timeout_unit: TimeoutUnit::Milliseconds,
        ..UNKNOWN
    },
    Program {
        name: "LM Studio",
        home_files: &[".lmstudio/mcp.json"],
        disabling: Disabling::Unsupported("the switch of the server in LM Studio disables it"),
        ..UNKNOWN
    },
    Program {
        name: "Copilot CLI",
        home_files: &[".copilot/mcp-config.json"],
        shell_variables: ShellVariables::Replaced,
        disabling: Disabling::Unsupported(
            "`copilot --disable-mcp-server NAME`, or `/mcp disable NAME`, does",
        ),
        json_extensions: JsonExtensions::None,
        timeout_unit: TimeoutUnit::Milliseconds,
        ..UNKNOWN
    },
    Program {
        name: "Amp",
        home_files: &[".config/amp/settings.json", ".config/amp/settings.jsonc"],
        files: &[".amp/settings.json", ".amp/settings.jsonc"],
        user_files: &["amp/settings.json"],
        key: "amp.mcpServers",
        json_extensions: JsonExtensions::CommentsAndCommas,
        file_purpose: FilePurpose::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Codex",
        approval_keys: ApprovalKeys::Codex,
        home_files: &[".codex/config.toml"],
        key: "mcp_servers",
        entry_form: EntryForm::Codex,
        variables: VariableSyntax::Unsupported,
        disabling: Disabling::Key(ENABLED),
        file_purpose: FilePurpose::Settings,
        ..UNKNOWN
    },
    Program {
        name: "Goose",
        home_files: &[".config/goose/config.yaml"],
        app_data_files: &["Block/goose/config/config.yaml"],
        user_files: &["goose/config.yaml", "goose/config/config.yaml"],
        key: "extensions",
        entry_form: EntryForm::Goose,
        disabling: Disabling::Key(ENABLED),
        file_purpose: FilePurpose::Settings,
        start_limit: StartLimit::Key("timeout"),
        timeout_unit: TimeoutUnit::Seconds,
        ..UNKNOWN
    },
    CONTINUE,
    LIBRE_CHAT,
    DEV_CONTAINER,
    Program {
        files: &["mcp.json", "mcp_config.json", "mcp-config.json"],
        // The configuration of the user for mcp-host itself.
        user_files: &[".config/mcp-host/mcp.json", "AppData/Roaming/mcp-host/mcp.json"],
        ..UNKNOWN
    },
];
