//! Arguments of the commands that read and write configuration files without starting servers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use mcp_host_config::{Applicability, FieldChange, Profile, UrlTransportKind};
use mcp_host_model::SandboxPreset;

use crate::args::choice::{Choices, PROFILES, choice_parser};

/// What is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixLevel {
    /// Mistakes with a fix that is at least as certain.
    Mistakes(Applicability),
    /// Secrets in the file are moved to the store of secrets.
    Secrets,
    /// Packages of `npx`, `uvx` and containers get their newest version.
    Packages,
}

const FIX_LEVELS: Choices<FixLevel> = &[
    ("sure", "Only fixes that are certain", FixLevel::Mistakes(Applicability::Certain)),
    (
        "all",
        "Also suggestions, which may be wrong or change behaviour",
        FixLevel::Mistakes(Applicability::Suggested),
    ),
    (
        "secrets",
        "Move values that may be secrets to the keyring, and refer to them as `${secret:NAME}`",
        FixLevel::Secrets,
    ),
    (
        "pin",
        "Look up the newest versions of the packages of npx, uvx and docker, and write them into the file",
        FixLevel::Packages,
    ),
];

const SANDBOXES: Choices<SandboxChoice> = &[
    ("proposed", "What is proposed for the kind of the program", SandboxChoice::Proposed),
    (
        "project",
        "Packages and the working directory, no network",
        SandboxChoice::Preset(SandboxPreset::Project),
    ),
    ("network", "The same, and the whole network", SandboxChoice::Preset(SandboxPreset::Network)),
    ("off", "No sandbox", SandboxChoice::Preset(SandboxPreset::Off)),
];

pub(super) const TRANSPORTS: Choices<TransportName> = &[
    ("http", "Streamable HTTP", TransportName::Url(UrlTransportKind::Http)),
    ("sse", "HTTP with server-sent events", TransportName::Url(UrlTransportKind::Sse)),
    ("websocket", "WebSocket", TransportName::Url(UrlTransportKind::WebSocket)),
    ("stdio", "A program", TransportName::Stdio),
    // Accepted and not listed: the name in many configurations.
    ("streamable-http", "", TransportName::Url(UrlTransportKind::Http)),
];

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Configuration files or folders [default: the nearest configuration]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Fix mistakes that have a certain correction, and show the changes; =all also applies suggestions. Instead
    /// of mistakes, =secrets moves secrets to the keyring, and =pin pins the versions of packages
    #[arg(long, value_name = "LEVEL", value_parser = choice_parser(FIX_LEVELS), num_args = 0..=1, require_equals = true,
        default_missing_value = "sure")]
    pub(crate) fix: Option<FixLevel>,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// Configuration file or folder
    pub(crate) file: PathBuf,
    /// Dialect to write
    #[arg(long, value_parser = choice_parser(PROFILES), value_name = "DIALECT")]
    pub(crate) to: Profile,
    /// New file for the result [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Exit with 0 even if a server cannot be written and is left out
    #[arg(long)]
    pub(crate) lossy: bool,
}

/// Arguments of `remove`, `enable` and `disable`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Configuration file or folder
    pub(crate) file: PathBuf,
    /// Name of the server
    pub(crate) server: String,
    /// Show the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Configuration file or folder
    pub(crate) file: PathBuf,
    /// Name of the server
    pub(crate) server: String,
    /// Changes: FIELD=VALUE sets a value, FIELD+=ITEM and FIELD-=ITEM change a list, FIELD:=JSON sets JSON as it is. A
    /// field is a key of the server, or a path such as env.NAME. `${NAME}` in a value is replaced when the
    /// server starts
    #[arg(value_name = "CHANGE", value_parser = FieldChange::parse, required_unless_present = "unset")]
    pub(crate) changes: Vec<FieldChange>,
    /// Remove this field, such as env.NAME; may be given several times
    #[arg(long, value_name = "FIELD")]
    pub(crate) unset: Vec<String>,
    /// Show the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `add`.
#[derive(Debug, Default, Args)]
#[command(
    group(clap::ArgGroup::new("source").args(["command", "url", "npm", "pypi", "image", "server_json"])),
    override_usage = "mcp-host add [OPTIONS] [FILE] [SERVER] -- <COMMAND> [ARGS]...\n       \
                      mcp-host add [OPTIONS] [FILE] [SERVER] <URL|JSON>\n       \
                      mcp-host add [OPTIONS] [FILE] [SERVER] <--npm|--pypi|--image|--server-json ...>"
)]
pub(crate) struct AddArgs {
    /// Configuration file or folder; a missing file is created [default: the nearest configuration, else .mcp.json]
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub(crate) file: Option<String>,
    /// Name of the new server [default: derived from the package or URL]
    pub(crate) server: Option<String>,
    /// URL to connect to, or the server's entry of an mcp.json: '{"command": "npx", "args": ["PACKAGE"]}'
    #[arg(value_name = "URL|JSON")]
    pub(crate) words: Vec<String>,
    /// Program to start, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) program: Vec<String>,
    /// Program to start
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<String>,
    /// npm package to start with npx, such as @modelcontextprotocol/server-everything@2026.7.4
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) npm: Option<String>,
    /// PyPI package to start with uvx, such as mcp-server-git
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) pypi: Option<String>,
    /// Container image to start with docker
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Server description in the MCP registry's server.json format; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) server_json: Option<PathBuf>,
    /// Arguments of the program: everything that follows
    #[arg(long, value_name = "ARG", num_args = 1.., allow_hyphen_values = true,
        conflicts_with_all = ["url", "server_json"])]
    pub(crate) args: Vec<String>,
    /// Environment variable of the program; `${NAME}` in the value is replaced when the server starts
    #[arg(short, long, value_name = "NAME=VALUE", conflicts_with_all = ["url", "server_json"])]
    pub(crate) env: Vec<String>,
    /// URL to connect to
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Transport [default: by the scheme of the URL]
    #[arg(short, long, value_parser = choice_parser(TRANSPORTS))]
    pub(crate) transport: Option<TransportName>,
    /// Header of every request; `${NAME}` in the value is replaced when the server starts
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Environment variable that holds the bearer token of every request
    #[arg(long, value_name = "NAME")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// Description of the server
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Restrict what the program reaches [default: no sandbox; without a value: what is proposed for its kind]
    #[arg(long, value_name = "PRESET", value_parser = choice_parser(SANDBOXES), num_args = 0..=1, require_equals = true,
        default_missing_value = "proposed")]
    pub(crate) sandbox: Option<SandboxChoice>,
    /// Show the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The sandbox of a new server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxChoice {
    /// What is proposed for the kind of its program.
    Proposed,
    /// This preset, with nothing else.
    Preset(SandboxPreset),
}

/// The transport of a new server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportName {
    /// A program.
    Stdio,
    /// A URL.
    Url(UrlTransportKind),
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Configuration to add the servers to, which is created if it is missing; without it, they are only listed
    #[arg(long, value_name = "FILE")]
    pub(crate) into: Option<PathBuf>,
    /// File to import from [default: the known files of other programs]; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Vec<PathBuf>,
    /// Import only this server; may be given several times
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Vec<String>,
    /// Show the change without writing it
    #[arg(long, requires = "into")]
    pub(crate) dry_run: bool,
}

/// Arguments of `views`.
#[derive(Debug, Args)]
pub(crate) struct ViewsArgs {
    /// Configuration file or folder; its views are in the file mcp.views beside it [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Print only this view
    #[arg(long, value_name = "NAME")]
    pub(crate) view: Option<String>,
}

/// Arguments of `connect`.
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// Programs such as `cursor` or `claude-desktop`, or their files [default: list those of this user, and what would
    /// change]
    #[arg(value_name = "CLIENT")]
    pub(crate) clients: Vec<String>,
    /// Configuration of the host, which receives the servers of the clients [default: mcp-host/mcp.json in the user's
    /// folder of settings, such as ~/.config]
    #[arg(long, value_name = "FILE", conflicts_with = "undo")]
    pub(crate) config: Option<PathBuf>,
    /// View that the clients get: a line of the file mcp.views beside the configuration of the host
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    pub(crate) view: Option<String>,
    /// Let the clients share one host and its servers, as `serve --shared` does
    #[arg(long, conflicts_with = "undo")]
    pub(crate) shared: bool,
    /// Restore the files of the clients as they were
    #[arg(long)]
    pub(crate) undo: bool,
    /// Show the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `secret`.
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    pub(crate) command: SecretCommandArgs,
}

/// What `secret` does.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommandArgs {
    /// Store a secret; its value is asked for at a terminal, else read from standard input
    Set {
        /// Name of the secret: letters, digits, `_` and `-`
        name: String,
    },
    /// List the names of the secrets
    List,
    /// Remove a secret
    Remove {
        /// Name of the secret
        name: String,
    },
}
