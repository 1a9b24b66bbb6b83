//! Errors of servers that failed to start, and their JSON-RPC errors: internal errors of ACP with evidence.
//!
//! The evidence is bounded and contains none of the known secrets.

use std::time::Duration;

use mcp_host_model::{RawJson, RpcError, Secret};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::code;
use crate::version::AcpTransport;

/// The error of a server that failed to start (ACPX-03, ACPX-04).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("MCP server '{}'{}{kind}", server_name.escape_debug(), kind.separator())]
pub struct ServerStartError {
    server_name: String,
    transport: AcpTransport,
    kind: ServerStartErrorKind,
}

/// The cause of a failed start. Serializes as the evidence in `data`. Its text continues a sentence about the server.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ServerStartErrorKind {
    /// The program does not exist.
    #[error("executable not found")]
    ExecutableNotFound {
        /// The program, without its arguments.
        command: String,
    },
    /// The system could not start the program.
    #[error("could not be started{}", reason_suffix(error.lines()))]
    SpawnFailed {
        /// The program, without its arguments.
        command: String,
        /// The system's message.
        error: String,
    },
    /// The program exited before the handshake.
    #[error("{} before the handshake{}", exit_code.map_or_else(
        || "was ended by a signal".to_owned(),
        |code| format!("exited with status {code}"),
    ), reason_suffix(stderr.lines().rev()))]
    Exited {
        /// The program, without its arguments.
        command: String,
        /// The exit status; `None` if a signal killed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The end of its standard error.
        stderr: String,
    },
    /// The connection failed.
    #[error("connection failed{}", reason_suffix(error.lines()))]
    ConnectionFailed {
        /// The message.
        error: String,
    },
    /// The server rejected the credentials.
    #[error("authentication failed{}", reason_suffix(error.lines()))]
    AuthenticationFailed {
        /// The message.
        error: String,
    },
    /// The server requires a login, which failed.
    #[error("login failed{}", reason_suffix(error.lines()))]
    LoginFailed {
        /// The message.
        error: String,
    },
    /// The server did not respond in time.
    #[error("did not respond within {} ms", limit.as_millis())]
    TimedOut {
        /// The end of its standard error; empty if unknown.
        #[serde(skip_serializing_if = "String::is_empty")]
        stderr: String,
        /// The timeout.
        #[serde(rename = "timeoutMs", serialize_with = "as_millis")]
        limit: Duration,
    },
    /// There is no common version of MCP.
    #[error("supports no version of MCP that this agent supports")]
    NoCommonVersion {
        /// Our newest version.
        #[serde(rename = "expectedVersion")]
        expected: String,
        /// The server's version.
        #[serde(rename = "actualVersion")]
        actual: String,
    },
}

/// The maximum length of a line of evidence in a message, in characters.
const MAX_REASON_CHARS: usize = 200;
/// The maximum length of each text of the evidence in bytes; the end is kept.
const MAX_EVIDENCE_BYTES: usize = 4096;
/// Shorter values are not redacted: they are assumed not to be secrets, and replacing them would make messages
/// unreadable.
const MIN_SECRET_BYTES: usize = 6;

impl ServerStartError {
    /// Creates an error. Its texts are made printable and truncated, and `secrets` (the values of variables and
    /// headers) are redacted.
    pub fn new(
        server_name: impl Into<String>,
        transport: AcpTransport,
        mut kind: ServerStartErrorKind,
        secrets: &[&Secret],
    ) -> ServerStartError {
        for text in kind.texts_mut() {
            *text = redact_and_truncate(text, secrets);
        }
        ServerStartError { server_name: server_name.into(), transport, kind }
    }

    /// Returns the server's name.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// The cause.
    pub fn kind(&self) -> &ServerStartErrorKind {
        &self.kind
    }

    /// Returns what the user can do.
    pub fn suggestion(&self) -> &'static str {
        match &self.kind {
            ServerStartErrorKind::ExecutableNotFound { .. } => {
                "install the program, or use its absolute path as the command"
            }
            ServerStartErrorKind::SpawnFailed { .. } => "check that the file is a program and is executable",
            ServerStartErrorKind::Exited { .. } => {
                "run the command in a terminal; `stderr` is its error output"
            }
            ServerStartErrorKind::ConnectionFailed { .. } if self.transport == AcpTransport::Acp => {
                "check that the client still provides the server"
            }
            ServerStartErrorKind::ConnectionFailed { .. } => {
                "check that the server is running, and that its URL is right"
            }
            ServerStartErrorKind::AuthenticationFailed { .. } => "check the server's headers",
            ServerStartErrorKind::LoginFailed { .. } => {
                "load the session again, or start a new session, to log in"
            }
            ServerStartErrorKind::TimedOut { .. } => {
                "check that the server is running, or use a longer timeout"
            }
            ServerStartErrorKind::NoCommonVersion { .. } => "use another version of the server",
        }
    }
}

impl ServerStartErrorKind {
    /// What separates the name of the server from the text: a predicate follows it directly.
    fn separator(&self) -> &'static str {
        match self {
            ServerStartErrorKind::ExecutableNotFound { .. }
            | ServerStartErrorKind::ConnectionFailed { .. }
            | ServerStartErrorKind::AuthenticationFailed { .. }
            | ServerStartErrorKind::LoginFailed { .. } => ": ",
            ServerStartErrorKind::SpawnFailed { .. }
            | ServerStartErrorKind::Exited { .. }
            | ServerStartErrorKind::TimedOut { .. }
            | ServerStartErrorKind::NoCommonVersion { .. } => " ",
        }
    }

    /// The texts, which may contain secrets.
    fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            ServerStartErrorKind::ExecutableNotFound { command } => vec![command],
            ServerStartErrorKind::SpawnFailed { command, error } => vec![command, error],
            ServerStartErrorKind::Exited { command, exit_code: _, stderr } => vec![command, stderr],
            ServerStartErrorKind::ConnectionFailed { error }
            | ServerStartErrorKind::AuthenticationFailed { error }
            | ServerStartErrorKind::LoginFailed { error } => vec![error],
            ServerStartErrorKind::TimedOut { stderr, limit: _ } => vec![stderr],
            ServerStartErrorKind::NoCommonVersion { expected, actual } => vec![expected, actual],
        }
    }
}

impl From<&ServerStartError> for RpcError {
    fn from(error: &ServerStartError) -> RpcError {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct StartErrorData<'a> {
            server_name: &'a str,
            transport_type: &'a AcpTransport,
            #[serde(flatten)]
            evidence: &'a ServerStartErrorKind,
            suggestion: &'static str,
        }
        let data = StartErrorData {
            server_name: &error.server_name,
            transport_type: &error.transport,
            evidence: &error.kind,
            suggestion: error.suggestion(),
        };
        let data = RawJson::from_value(&data).expect("texts and numbers are JSON");
        RpcError { data: Some(data), ..RpcError::new(code::INTERNAL_ERROR, error.to_string()) }
    }
}

/// The end of a message: a colon and the first of these lines that is not blank, for clients that show the message
/// only. Empty if every line is blank.
fn reason_suffix<'a>(mut lines: impl Iterator<Item = &'a str>) -> String {
    let line = lines.find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let shown: String = line.chars().take(MAX_REASON_CHARS).collect();
    let ellipsis = if shown.len() < line.len() { "…" } else { "" };
    match shown.is_empty() {
        true => String::new(),
        false => format!(": {shown}{ellipsis}"),
    }
}

fn as_millis<S: Serializer>(limit: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
}

/// Removes secrets and control characters, and truncates to [`MAX_EVIDENCE_BYTES`].
fn redact_and_truncate(text: &str, secrets: &[&Secret]) -> String {
    // Newlines are kept. Other control characters could split a secret, so they are removed first.
    let mut redacted: String = text.chars().filter(|char| *char == '\n' || !char.is_control()).collect();
    // A server may print a single line of a secret that has several.
    let mut lines: Vec<&str> =
        secrets.iter().flat_map(|secret| secret.expose().lines().map(str::trim)).collect();
    // A secret may contain another one: the longest is replaced first.
    lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
    for secret in lines.into_iter().filter(|line| line.len() >= MIN_SECRET_BYTES) {
        redacted = redacted.replace(secret, "***");
    }
    let start = redacted.len().saturating_sub(MAX_EVIDENCE_BYTES);
    let start = (start..=redacted.len()).find(|at| redacted.is_char_boundary(*at)).unwrap_or_default();
    redacted.split_off(start)
}
