//! Arguments of the commands that act as an MCP server, a proxy or an ACP agent.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use mcp_host_acp::AcpVersion;
use mcp_host_gateway::Rate;
use mcp_host_model::RawJson;
use mcp_host_transport::Eras;

use crate::args::call_rules::CallRuleArgs;
use crate::args::choice::{Choices, choice_parser};
use crate::args::limit::parse_limit;
use crate::output::log::{LogFormatName, LogLevelName};

/// Maximum of `--workers`.
const MAX_WORKERS: usize = 1024;

/// The eras of the protocol.
const ERAS: Choices<Eras> = &[
    ("legacy", "With sessions: up to 2025-11-25", Eras::Legacy),
    ("modern", "Stateless: 2026-07-28", Eras::Modern),
];

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("transport").required(true).args(["stdio", "http", "socket", "detach"]))]
pub(crate) struct ServeArgs {
    /// Configuration file or folder; the file may be missing [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Serve one client over standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Serve through a host that the clients of this user share: those with the same file, options and environment. The
    /// first one starts it
    #[arg(long, conflicts_with = "http")]
    pub(crate) shared: bool,
    /// End the shared host after it had no client for this many seconds
    #[arg(long, value_name = "SECONDS", requires = "shared", default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) shared_idle: u64,
    /// Be the shared host: serve clients at its socket
    #[arg(long, hide = true, requires = "shared")]
    pub(crate) socket: bool,
    /// Start the shared host in a session of its own
    #[arg(long, hide = true, requires = "shared")]
    pub(crate) detach: bool,
    /// Serve over HTTP at this address, such as 127.0.0.1:8807; port 0 takes any free port. The path is /mcp, or
    /// /mcp/SERVER for one server
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve only this server
    #[arg(long, value_name = "SERVER")]
    pub(crate) only: Option<String>,
    /// Serve only what this view shows: a line of the file mcp.views beside the configuration, which is read at the
    /// start. `mcp-host views` lists the views
    #[arg(long, value_name = "NAME")]
    pub(crate) view: Option<String>,
    /// Use the names that the server itself gives
    #[arg(long, requires = "only")]
    pub(crate) raw_names: bool,
    /// Use only this era of the protocol with the servers, for servers that support one era better
    #[arg(long, value_parser = choice_parser(ERAS), value_name = "ERA")]
    pub(crate) era: Option<Eras>,
    /// File of bearer tokens, one per line, each with its scope: TOKEN [name=NAME] [expires=2026-12-31] [servers=a,b*]
    /// [tools=…] [prompts=…] [resources=…] [hints=reads] [view=NAME]. Changes of the file apply at once; a removed
    /// token's sessions end. Without tokens, all clients count as one: they share limits, and dialogs of the same name
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Environment variable that holds such lines
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) token_env: Option<String>,
    /// Accept the access tokens of this OAuth authorization server: its issuer URL, such as https://id.example. Clients
    /// find it and log in there by themselves
    #[arg(long, value_name = "ISSUER_URL", requires = "http")]
    pub(crate) auth: Option<String>,
    /// Public URL of the gateway, which access tokens must have as their audience, such as https://tools.example/mcp
    /// [default: the address of --http]
    #[arg(long, value_name = "URL", requires = "auth")]
    pub(crate) resource: Option<String>,
    /// File of the scopes of access tokens, one per line, each with what it shows: SCOPE [servers=a,b*] [tools=…]
    /// [prompts=…] [resources=…] [hints=reads]. The first one is what clients request at first. Without the file, every
    /// access token shows everything
    #[arg(long, value_name = "FILE", requires = "auth")]
    pub(crate) scope_map: Option<PathBuf>,
    /// Accept this host name from clients, besides localhost and the address; may be given several times
    #[arg(long, value_name = "HOST", requires = "http", value_parser = parse_host)]
    pub(crate) allow_host: Vec<String>,
    /// Accept requests from web pages of this origin, such as https://app.example, and let them read responses; may be
    /// given several times
    #[arg(long, value_name = "ORIGIN", requires = "http", value_parser = parse_origin)]
    pub(crate) allow_origin: Vec<String>,
    /// Trust this proxy to name the address of a client in X-Forwarded-For or Forwarded: an address, or a network such
    /// as 10.0.0.0/8; may be given several times. The audit log and the log have the address
    #[arg(long, value_name = "NETWORK", requires = "http")]
    pub(crate) trusted_proxy: Vec<String>,
    /// Serve HTTPS with this certificate, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Offer the tools mcp_release, mcp_restart and mcp_disable, and the resources mcp-host://problems and
    /// mcp-host://servers
    #[arg(long)]
    pub(crate) admin: bool,
    /// Close a session after it was idle for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) idle: u64,
    /// Let running calls finish for at most this many seconds after a reload replaced their server [default: 60], and
    /// over HTTP after a signal [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(crate) drain: Option<u64>,
    /// List at most this many tools to a client: the first ones in the order of the configuration. The others cannot be
    /// called; the log and mcp-host://problems name them
    #[arg(long, value_name = "NUMBER", value_parser = parse_limit)]
    pub(crate) max_tools: Option<usize>,
    /// List only tools whose definitions have at most this many tokens together, as `mcp-host tools`
    /// estimates them. One that does not fit is left out, later ones may fit
    #[arg(long, value_name = "NUMBER", value_parser = parse_limit)]
    pub(crate) max_tool_tokens: Option<usize>,
    /// Accept messages of clients of at most this many bytes [default: 4194304]
    #[arg(long, value_name = "BYTES", value_parser = parse_limit)]
    pub(crate) max_message_bytes: Option<usize>,
    /// Read at most this many tools, prompts or resources of a server [default: 20000]
    #[arg(long, value_name = "NUMBER", value_parser = parse_limit)]
    pub(crate) max_list_items: Option<usize>,
    /// Keep at most this many connections of clients open [default: by the free memory and the limit of file
    /// descriptors, at most 16384]
    #[arg(long, value_name = "NUMBER", value_parser = parse_limit, requires = "http")]
    pub(crate) max_connections: Option<usize>,
    /// Keep at most this many sessions, and as many dialogs of clients without sessions [default: by the free memory,
    /// at most 16384]. A token has at most a quarter
    #[arg(long, value_name = "NUMBER", value_parser = parse_limit, requires = "http")]
    pub(crate) max_sessions: Option<usize>,
    /// Keep at most this many event streams open [default: half of --max-connections]. A token has at most half
    #[arg(long, value_name = "NUMBER", value_parser = parse_limit, requires = "http")]
    pub(crate) max_streams: Option<usize>,
    /// Run at most this many requests of clients at once [default: 4096]. A session has at most a sixteenth
    #[arg(long, value_name = "NUMBER", value_parser = parse_limit, requires = "http")]
    pub(crate) max_requests: Option<usize>,
    /// Keep at most this many bytes of large messages and responses in memory [default: by the free memory, at most
    /// 268435456]
    #[arg(long, value_name = "BYTES", value_parser = parse_limit)]
    pub(crate) max_held_bytes: Option<usize>,
    /// Use this many threads for requests [default: half of the processors, which leaves the others to the servers]
    #[arg(long, value_name = "NUMBER", value_parser = parse_workers)]
    pub(crate) workers: Option<usize>,
    /// Limit the calls of each token, such as 10/s or 300/min; as many may be made at once. Without tokens, all clients
    /// share the limit
    #[arg(long, value_name = "RATE")]
    pub(crate) rate_per_token: Option<Rate>,
    /// Limit the calls to each server, such as 10/s or 300/min; all clients share the limit
    #[arg(long, value_name = "RATE")]
    pub(crate) rate_per_server: Option<Rate>,
    /// Write the parts of results above their server's limit to a new folder in this one; the result names the files,
    /// which exist until `serve` ends
    #[arg(long, value_name = "FOLDER")]
    pub(crate) spill: Option<PathBuf>,
    /// Append one JSON line per call to this file, or to standard output for `-` with --http: the client, the tool, the
    /// outcome and sizes, never arguments or results. After SIGHUP the file is opened again, for log rotation, and the
    /// configuration is read again
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// The least important events to log to standard error [default: the filter in RUST_LOG, else info; debug with
    /// --verbose, error with --quiet]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevelName>,
    /// Format of the log: text or one JSON object per line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormatName::Text)]
    pub(crate) log_format: LogFormatName,
    #[command(flatten)]
    pub(crate) rules: CallRuleArgs,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Configuration file or folder [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// Record only this server; with COMMAND, its name in the recording
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Call this tool with ARGS in one word, as `call` accepts them ({} for none); may be given several times
    #[arg(long, num_args = 2, value_names = ["TOOL", "ARGS"])]
    pub(crate) call: Vec<String>,
    /// Make the calls in this file, or on standard input for `-`: one per line, a tool and its arguments
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Start this server as a proxy: forward and record all messages between it and the host that started `record`
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["file", "call", "calls"])]
    pub(crate) command: Vec<String>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// File that `record` has written
    pub(crate) recording: PathBuf,
    /// Server to replay; required if the recording has several
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Serve over HTTP at this loopback address instead of standard input and output, such as 127.0.0.1:8808; port 0
    /// takes any free port. The path is /mcp
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) http: Option<SocketAddr>,
}

/// Arguments of `demo-server`.
#[derive(Debug, Args)]
pub(crate) struct DemoServerArgs {
    /// Serve over HTTP at this loopback address instead of standard input and output, such as 127.0.0.1:8808; port 0
    /// takes any free port. The path is /mcp, /sse for clients of the older SSE transport, and /ws for WebSocket
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) http: Option<SocketAddr>,
}

/// Arguments of `acp-check`.
#[derive(Debug, Args)]
pub(crate) struct AcpCheckArgs {
    /// MCP capabilities that the agent declares: {"http": true} in version 1, {"stdio": {}} in version 2; or the
    /// agent's whole response to `initialize`
    #[arg(long, value_name = "JSON", value_parser = parse_acp_capabilities)]
    pub(crate) capabilities: RawJson,
    /// Version of ACP: 1 or 2; default: that of the response to `initialize`, else 1
    #[arg(long, value_name = "NUMBER", value_parser = parse_acp_version)]
    pub(crate) protocol: Option<AcpVersion>,
}

/// Parses a number of threads.
fn parse_workers(text: &str) -> Result<usize, String> {
    let workers = text.parse().ok().filter(|workers| (1..=MAX_WORKERS).contains(workers));
    workers.ok_or_else(|| format!("the number of threads is from 1 to {MAX_WORKERS}"))
}

/// Parses a host name, which may have a port.
fn parse_host(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['/', '*', ' ']) {
        true => {
            Err("write the name that clients use, such as tools.example, without https:// and path"
                .to_owned())
        }
        false => Ok(text.to_owned()),
    }
}

/// Parses the origin of web pages. A slash at its end, which belongs to no origin, is removed.
fn parse_origin(text: &str) -> Result<String, String> {
    let origin = text.strip_suffix('/').unwrap_or(text);
    match origin.split_once("://") {
        _ if text == "*" => Err("each origin must be named, because its pages may call all tools".to_owned()),
        Some((scheme, host))
            if !scheme.is_empty() && !host.is_empty() && !host.contains(['/', '?', '#', '*', ' ']) =>
        {
            Ok(origin.to_owned())
        }
        _ => Err("an origin has a scheme, a host and no path, such as https://app.example".to_owned()),
    }
}

fn parse_acp_version(text: &str) -> Result<AcpVersion, String> {
    let version = text.parse().ok().and_then(AcpVersion::from_number);
    version.ok_or_else(|| "the versions are 1 and 2".to_owned())
}

/// Parses capabilities. A version that is not known, and an error response, are errors.
fn parse_acp_capabilities(text: &str) -> Result<RawJson, String> {
    let json = parse_json_object(text)?;
    let unknown = |number| format!("this agent speaks version {number} of ACP; the versions are 1 and 2");
    match AcpVersion::negotiated_number(&json) {
        Some(number) if AcpVersion::from_number(number).is_none() => Err(unknown(number)),
        Some(_) | None => Ok(json),
    }
}

/// Parses a JSON object. The error does not repeat the text.
fn parse_json_object(text: &str) -> Result<RawJson, String> {
    let json = RawJson::parse(text.to_owned().into()).map_err(|error| format!("not valid JSON: {error}"))?;
    if json.is_object() { Ok(json) } else { Err("not a JSON object".to_owned()) }
}

/// Parses an address to listen on.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8807".to_owned())
}
