//! The keys of a server in the files of editors and agents: one row for each (DIA-03 to DIA-07).
//!
//! Reading, writing, editing, the JSON Schema and the names in diagnostics follow from the rows. A program whose
//! entries have other keys needs rows with its [`EntryForm`]. Further tables have the keys that are known and not read.

use std::collections::HashMap;
use std::sync::LazyLock;

use EntryField as F;
use EntryForm::{Codex, Common, Continue, Goose, Opencode};

use crate::de::ForeignKey;
use crate::dialect::editor::conventions::{DISABLED, ENABLED, EntryForm};

/// A key of an entry.
pub(super) struct EntryKey {
    /// Its name.
    pub(super) name: &'static str,
    /// The field that it sets. Several keys may set one field.
    pub(super) field: EntryField,
    /// The forms of entries that have it. Reading accepts each key in every form; writing uses the first row of a field
    /// and a form.
    pub(super) forms: &'static [EntryForm],
    /// The description in the JSON Schema.
    pub(super) description: &'static str,
}

/// A field of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryField {
    Name,
    Description,
    Transport,
    Command,
    Arguments,
    Environment,
    /// The environment under the key of opencode.
    SecondEnvironment,
    /// Names of variables that the server needs.
    RequiredVariables,
    EnvFile,
    /// The working directory.
    Directory,
    Sandbox,
    SandboxEnabled,
    Url,
    Headers,
    /// Names of variables that hold headers.
    HeaderVariables,
    /// The name of the variable that holds a token.
    TokenVariable,
    ContinueOptions,
    /// The timeout of a request, without a fixed unit.
    Timeout,
    /// The timeout of a request, in this unit. The next ones are those of connecting and of a start.
    RequestMilliseconds,
    RequestSeconds,
    ConnectMilliseconds,
    StartSeconds,
    StartMilliseconds,
    Sharing,
    /// Rules for calls.
    Calls,
    Disabled,
    Enabled,
    IncludedTools,
    /// Like `IncludedTools`, but an empty list includes all.
    AvailableTools,
    /// Names of included tools, or the settings of another program.
    Tools,
    ExcludedTools,
    /// Marks a server that the program provides itself.
    Provided,
    /// Has no effect here, and is kept.
    Kept,
}

impl EntryField {
    /// The field with the same meaning that represents both.
    fn canonical(self) -> EntryField {
        if self == EntryField::SecondEnvironment { EntryField::Environment } else { self }
    }
}

impl EntryKey {
    /// Whether the key is lowered to the model. Any other is kept in the metadata.
    pub(super) fn is_lowered(&self) -> bool {
        !matches!(self.field, EntryField::Tools | EntryField::Provided | EntryField::Kept)
    }

    /// Whether entries of the common form have it.
    pub(super) fn is_common(&self) -> bool {
        self.forms.contains(&EntryForm::Common)
    }

    /// Whether the common form is written with it.
    pub(super) fn is_primary(&self) -> bool {
        self.is_common() && self.name == primary_name(self.field) || self.field == EntryField::Kept
    }
}

/// The row with this name.
pub(super) fn find_row(name: &str) -> Option<usize> {
    static ROWS: LazyLock<HashMap<&str, usize>> =
        LazyLock::new(|| NAMES.iter().enumerate().map(|(row, name)| (*name, row)).collect());
    ROWS.get(name).copied()
}

/// The key with this name.
pub(super) fn find(name: &str) -> Option<&'static EntryKey> {
    find_row(name).map(|row| &KEYS[row])
}

/// The rows of a field, in the order of the table.
pub(super) fn rows_of(field: EntryField) -> impl Iterator<Item = usize> + Clone {
    static ROWS: LazyLock<[Vec<usize>; EntryField::Kept as usize + 1]> = LazyLock::new(|| {
        let mut rows = [const { Vec::new() }; EntryField::Kept as usize + 1];
        for (row, key) in KEYS.iter().enumerate() {
            rows[key.field as usize].push(row);
        }
        rows
    });
    ROWS[field as usize].iter().copied()
}

/// The keys of a field.
pub(super) fn of_field(field: EntryField) -> impl Iterator<Item = &'static EntryKey> + Clone {
    rows_of(field).map(|row| &KEYS[row])
}

/// The name of the key of a field in the common form, or else of its first key.
pub(super) fn primary_name(field: EntryField) -> &'static str {
    name_in(field, EntryForm::Common).or(of_field(field).next().map(|it| it.name)).unwrap_or_default()
}

/// The name of the key of a field in entries of this form. `None` if they have no such key.
pub(super) fn name_in(field: EntryField, form: EntryForm) -> Option<&'static str> {
    let same_field =
        |key: &&EntryKey| key.field.canonical() == field.canonical() && key.forms.contains(&form);
    let key = of_field(field).find(|key| key.forms.contains(&form));
    key.or_else(|| KEYS.iter().find(same_field)).map(|it| it.name)
}

/// Whether entries of this form have a key.
pub(super) fn has_key(form: EntryForm, name: &str) -> bool {
    find(name).is_some_and(|it| it.forms.contains(&form))
}

/// The keys with the same meaning as this one, including itself. Empty for a key that is not lowered.
pub(crate) fn spellings(name: &str) -> impl Iterator<Item = &'static str> + Clone {
    let field = find(name).filter(|it| it.is_lowered()).map(|it| it.field.canonical());
    KEYS.iter().filter(move |it| Some(it.field.canonical()) == field).map(|it| it.name)
}

/// Whether the value of this key is a map of texts under names of the user's choice: variables or headers.
pub(crate) fn is_text_map(name: &str) -> bool {
    find(name).is_some_and(|it| matches!(it.field.canonical(), EntryField::Environment | EntryField::Headers))
}

/// What is known about a key of an entry of this form that is not in [`KEYS`]; `None` if nothing is.
pub(super) fn foreign_key(name: &str, form: EntryForm) -> Option<ForeignKey> {
    let folded: String =
        name.chars().filter(|it| !matches!(it, '_' | '-')).flat_map(char::to_lowercase).collect();
    if IRRELEVANT.iter().any(|it| it.split(' ').any(|word| word == folded)) {
        return Some(ForeignKey::Irrelevant);
    }
    let synonym = SYNONYMS.iter().find(|it| it.0 == folded);
    let same = synonym.and_then(|(_, field)| name_in(*field, form)).map(ForeignKey::SameAs);
    same.or_else(|| {
        let (_, help) = UNSUPPORTED.iter().find(|it| it.0 == folded)?;
        Some(ForeignKey::Unsupported(help))
    })
}

/// Whether other programs have the token itself under this key.
pub(super) fn is_token(name: &str) -> bool {
    matches!(foreign_key(name, EntryForm::Common), Some(ForeignKey::Unsupported(TOKEN_HEADER)))
}

/// Whether a key names what is started or connected to.
pub(crate) fn is_source(name: &str) -> bool {
    find(name).is_some_and(|it| matches!(it.field, EntryField::Command | EntryField::Url))
}

/// The keys of a command and of a URL in the common form. An object that has one of them looks like a server.
pub(super) fn command_and_url_keys() -> impl Iterator<Item = &'static str> {
    let keys = of_field(EntryField::Command).chain(of_field(EntryField::Url));
    keys.filter(|it| it.is_common()).map(|it| it.name)
}

/// The names of all keys.
pub(super) static NAMES: [&str; KEYS.len()] = {
    let mut res = [""; KEYS.len()];
    let mut index = 0;
    while index < res.len() {
        res[index] = KEYS[index].name;
        index += 1;
    }
    res
};

const COMMON: &[EntryForm] = &[EntryForm::Common];
const CODEX: &[EntryForm] = &[EntryForm::Codex];
const GOOSE: &[EntryForm] = &[EntryForm::Goose];
const CONTINUE: &[EntryForm] = &[EntryForm::Continue];
const ALL_BUT_GOOSE: &[EntryForm] =
    &[EntryForm::Common, EntryForm::Opencode, EntryForm::Codex, EntryForm::Continue];
const ALL_BUT_OPENCODE: &[EntryForm] =
    &[EntryForm::Common, EntryForm::Codex, EntryForm::Goose, EntryForm::Continue];

const fn key(
    name: &'static str,
    field: EntryField,
    forms: &'static [EntryForm],
    description: &'static str,
) -> EntryKey {
    EntryKey { name, field, forms, description }
}

/// All keys, in the order of the JSON Schema and of written entries.
pub(super) const KEYS: &[EntryKey] = &[
    key("name", F::Name, &[Common, Goose, Continue], "Its name, if the servers are a list."),
    key("description", F::Description, &[Common, Goose], "What it is for."),
    key(
        "type",
        F::Transport,
        &[Common, Opencode, Goose, Continue],
        "The transport: `stdio`, `http`, `sse` or `ws`. Default: by `command` and `url`.",
    ),
    key("transport", F::Transport, COMMON, "The same as `type`."),
    key("transportType", F::Transport, COMMON, "The same as `type`."),
    key("command", F::Command, ALL_BUT_GOOSE, "The program to start."),
    key("cmd", F::Command, GOOSE, "The same as `command`."),
    key("args", F::Arguments, ALL_BUT_OPENCODE, "Its arguments."),
    key(
        "env",
        F::Environment,
        &[Common, Codex, Continue],
        "Its environment variables, added to the inherited ones.",
    ),
    key("environment", F::SecondEnvironment, &[Common, Opencode], "The same as `env`."),
    key("envs", F::Environment, GOOSE, "The same as `env`."),
    key("env_keys", F::RequiredVariables, GOOSE, "Variables of the environment that the server needs."),
    key("envFile", F::EnvFile, COMMON, "A `.env` file; `env` takes precedence."),
    key("cwd", F::Directory, &[Common, Codex, Continue], "Its working directory, relative to the workspace."),
    key(
        "sandbox",
        F::Sandbox,
        COMMON,
        "What the processes of the server may reach: `project`, `network`, `off`, or a mapping. Default: `off`.",
    ),
    key(
        "sandboxEnabled",
        F::SandboxEnabled,
        COMMON,
        "`true`: the server has a sandbox, in the form of VS Code.",
    ),
    key("url", F::Url, ALL_BUT_GOOSE, "The URL of the server."),
    key("serverUrl", F::Url, COMMON, "The same as `url`."),
    key("httpUrl", F::Url, COMMON, "The same as `url`, over Streamable HTTP."),
    key("uri", F::Url, GOOSE, "The same as `url`."),
    key("headers", F::Headers, &[Common, Opencode, Goose], "Headers of every request."),
    key("http_headers", F::Headers, CODEX, "The same as `headers`."),
    key(
        "env_http_headers",
        F::HeaderVariables,
        CODEX,
        "Headers whose values are variables of the environment: the header and the name of the variable.",
    ),
    key(
        "bearer_token_env_var",
        F::TokenVariable,
        CODEX,
        "The variable of the environment that holds the bearer token of every request.",
    ),
    key("requestOptions", F::ContinueOptions, CONTINUE, "The headers of every request, in Continue's form."),
    key(
        "timeout",
        F::Timeout,
        &[Common, Opencode, Goose],
        "The timeout of a request: milliseconds from 1000 on, seconds below.",
    ),
    key("requestTimeout", F::RequestMilliseconds, COMMON, "The timeout of a request, in milliseconds."),
    key(
        "connectionTimeout",
        F::ConnectMilliseconds,
        &[Common, Continue],
        "The timeout of connecting, in milliseconds.",
    ),
    key("startup_timeout_sec", F::StartSeconds, &[Common, Codex], "The timeout of a start, in seconds."),
    key("startup_timeout_ms", F::StartMilliseconds, CODEX, "The timeout of a start, in milliseconds."),
    key("initTimeout", F::StartMilliseconds, COMMON, "The timeout of a start, in milliseconds."),
    key("tool_timeout_sec", F::RequestSeconds, CODEX, "The timeout of a request, in seconds."),
    key(
        "sharing",
        F::Sharing,
        COMMON,
        "Which clients of a gateway share a running instance. `auto`: all, until the server sends a request such as\n\
         sampling, elicitation or roots; then each client has its own. Default: `auto`.",
    ),
    key(
        "calls",
        F::Calls,
        COMMON,
        "Rules for calls; the first one that matches decides: `EFFECT [tools=a,b*] [hints=reads,writes,destructive]\n\
         [users=…]`, with the effect `allow`, `ask` or `deny`. The annotations of a tool count only if a lock file\n\
         approves it; any other tool is `destructive`.",
    ),
    key(DISABLED.name, F::Disabled, COMMON, "`true` disables the server."),
    key(ENABLED.name, F::Enabled, &[Common, Opencode, Codex, Goose], "`false` disables the server."),
    key("includeTools", F::IncludedTools, COMMON, "The exposed tools, by the server's own names."),
    key("enabled_tools", F::IncludedTools, CODEX, "The same as `includeTools`."),
    key(
        "available_tools",
        F::AvailableTools,
        GOOSE,
        "The same as `includeTools`; an empty list exposes all.",
    ),
    key("tools", F::Tools, COMMON, "The same as `includeTools`, if it is a list."),
    key("excludeTools", F::ExcludedTools, COMMON, "The hidden tools."),
    key("disabledTools", F::ExcludedTools, COMMON, "The same as `excludeTools`."),
    key("disabled_tools", F::ExcludedTools, CODEX, "The same as `excludeTools`."),
    key(
        "settings",
        F::Provided,
        COMMON,
        "Settings of an editor's extension, which provides the server itself.",
    ),
    key("source", F::Provided, COMMON, "The origin of the entry in an editor."),
    key("autoApprove", F::Kept, COMMON, "Tools that the editor calls without confirmation; kept."),
    key("alwaysAllow", F::Kept, COMMON, "Tools that the editor calls without confirmation; kept."),
    key("trust", F::Kept, COMMON, "Whether the editor confirms calls; kept."),
    key("tags", F::Kept, COMMON, "Keywords of the server; kept."),
    key("dev", F::Kept, COMMON, "How the editor watches and debugs the server; kept."),
    key("oauth", F::Kept, &[Common, Opencode], "How the editor signs in; kept."),
    key("auth", F::Kept, COMMON, "How the editor signs in; kept."),
    key("authProviderType", F::Kept, COMMON, "How the editor signs in; kept."),
    key("gallery", F::Kept, COMMON, "Where the editor found the server; kept."),
    key("version", F::Kept, COMMON, "The server's version; kept."),
    key("options", F::Kept, COMMON, "Options of a proxy; kept."),
    key("icon", F::Kept, COMMON, "A picture; kept."),
    key("restartOnExit", F::Kept, COMMON, "When a gateway restarts the server; kept."),
    key("maxRestarts", F::Kept, COMMON, "When a gateway restarts the server; kept."),
    key("restartDelay", F::Kept, COMMON, "When a gateway restarts the server; kept."),
    key("required", F::Kept, COMMON, "Whether an editor needs the server; kept."),
];

/// Keys of other programs that are not read, with the fields that they set there. Here and below, names are in lower
/// case and without `_` and `-`.
const SYNONYMS: &[(&str, EntryField)] = &[
    // Warp, Visual Studio and others.
    ("workingdirectory", F::Directory),
    ("workingdir", F::Directory),
    ("workdir", F::Directory),
    ("protocol", F::Transport),
    ("servertype", F::Transport),
    // Goose and Cherry Studio.
    ("cmd", F::Command),
    ("envs", F::Environment),
    ("uri", F::Url),
    ("baseurl", F::Url),
    ("endpoint", F::Url),
    // Codex.
    ("httpheaders", F::Headers),
    // Timeouts: a similar word would not tell the unit.
    ("timeoutms", F::RequestMilliseconds),
    ("requesttimeoutms", F::RequestMilliseconds),
    ("connectiontimeoutms", F::ConnectMilliseconds),
];

const HEADERS: &str = "write the headers as `headers`, next to `url`";
const TOKEN_HEADER: &str = "write `headers: {\"Authorization\": \"Bearer ${NAME}\"}`";

/// Keys that are not supported, each with a help that says what to write instead.
const UNSUPPORTED: &[(&str, &str)] = &[
    // Goose and Cherry Studio.
    ("isactive", "to switch the server off, write `\"disabled\": true`"),
    ("envkeys", "write the variables in `env`, such as `\"NAME\": \"${NAME}\"`"),
    // Codex.
    ("envhttpheaders", "write `headers: {\"NAME\": \"${VARIABLE}\"}`"),
    ("bearertokenenvvar", TOKEN_HEADER),
    // The MCP SDK for TypeScript and programs that pass its options on, such as Mastra.
    ("requestinit", HEADERS),
    ("eventsourceinit", HEADERS),
    // Continue.
    ("requestoptions", HEADERS),
    // Claude Code.
    ("headershelper", "its program is not run here; write `headers`, with a variable for the secret"),
    // mcp-use and others.
    ("authtoken", TOKEN_HEADER),
    ("bearertoken", TOKEN_HEADER),
    ("apikey", TOKEN_HEADER),
    // LibreChat and AnythingLLM.
    ("inittimeout", "write `connectionTimeout`, in milliseconds"),
];

/// Keys without influence on how a server is started and used, separated by blanks.
const IRRELEVANT: &[&str] = &[
    // Warp.
    "startonlaunch",
    // Codex.
    "supportsparalleltoolcalls envvars oauthresource experimentalenvironment bundled servername faviconurl \
     oauthheaders ssereadtimeout defaulttoolsapprovalmode",
    // Claude Code, VS Code and Gemini CLI.
    "alwaysload targetaudience targetserviceaccount extensionname",
    // Roo Code and Cline.
    "watchpaths remoteconfigured",
    // LibreChat and AnythingLLM.
    "serverinstructions customuservars requiresoauth chatmenu iconpath startup stderr anythingllm",
    // Copilot CLI.
    "isdefaultserver sourcepath filtermapping oauthclientid oauthscopes scopes",
    // Descriptions, in many programs.
    "title displayname author category homepage license logourl provider providerurl registryurl repository \
     comment note notes id metadata",
];
