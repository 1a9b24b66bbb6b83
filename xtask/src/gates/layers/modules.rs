//! The top modules of each crate, lower ones first. A module imports only itself and modules before it.

/// A crate and its top modules in order.
pub(super) type Row = (&'static str, &'static [&'static str]);

/// The most files and folders in `src/`, crate root included, `tests` not.
pub(super) const MAX_ENTRIES: usize = 13;

pub(super) const MODULES: &[Row] = &[
    (
        "mcp-acp",
        &[
            "code",
            "version",
            "capabilities",
            "diagnostic",
            "policy",
            "request_error",
            "request",
            "params",
            "validate",
            "start_error",
            "schema",
        ],
    ),
    (
        "mcp-acp-agent",
        &[
            "error",
            "folder",
            "request",
            "roots",
            "servers",
            "start_error",
            "over_acp",
            "options",
            "status",
            "session",
            "session_registry",
        ],
    ),
    ("mcp-cli", &["runtime", "output", "args", "config", "host", "call_arguments", "render", "commands"]),
    (
        "mcp-config",
        &["diagnostic", "syntax", "profile", "de", "dialect", "resolve", "read", "render", "edit"],
    ),
    ("mcp-demo", &["lifetime", "state", "connection", "content", "tools", "server", "serve", "http"]),
    (
        "mcp-gateway",
        &[
            "access",
            "limits",
            "protocol",
            "lists",
            "session",
            "gateway",
            "notifications",
            "methods",
            "http",
            "stdio",
        ],
    ),
    (
        "mcp-host",
        &["error", "fs", "state", "notifications", "telemetry", "config", "supervisor", "calls", "host"],
    ),
    ("mcp-model", &["code", "error_kind", "json", "protocol", "server", "result", "lists"]),
    (
        "mcp-oauth",
        &["grant", "user_agent", "store", "url_policy", "http_client", "flow", "loopback_redirect", "revoke"],
    ),
    (
        "mcp-recording",
        &[
            "canonical",
            "message",
            "recording",
            "redact",
            "text",
            "connection_log",
            "recorder",
            "replayer",
            "transport",
            "proxy",
            "serve",
        ],
    ),
    (
        "mcp-registry",
        &[
            "hash",
            "lists",
            "name",
            "filter",
            "problem",
            "lock",
            "catalog",
            "provider_retry",
            "reload",
            "validate",
            "projection",
        ],
    ),
    ("mcp-rmcp", &["convert", "server_requests", "ledger"]),
    (
        "mcp-transport",
        &[
            "redact",
            "error",
            "transport",
            "rpc",
            "session",
            "net",
            "http",
            "sse",
            "websocket",
            "stdio",
            "dial",
            "internal",
        ],
    ),
    ("mcp-testkit", &["random", "wait", "process", "seeds", "servers", "properties"]),
    (
        "xtask",
        &[
            "error",
            "tree",
            "cargo",
            "schema_compatibility",
            "generated_files",
            "measurements",
            "suites",
            "gates",
            "ci",
        ],
    ),
];
