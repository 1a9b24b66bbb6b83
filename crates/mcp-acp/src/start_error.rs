//! Errors of servers that failed to start, as internal errors of ACP with evidence.
//!
//! The evidence is bounded and contains none of the known secrets.

use std::fmt;
use std::time::Duration;

use mcp_model::{RawJson, RpcError, Secret};
use serde::Serialize;

use crate::code;
use crate::version::AcpTransport;

/// The error of a server that failed to start (ACPX-03, ACPX-04).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStartError {
    server_name: String,
    transport: AcpTransport,
    kind: ServerStartErrorKind,
}

/// The cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStartErrorKind {
    /// The program does not exist.
    ExecutableNotFound {
        /// The program, without its arguments.
        command: String,
    },
    /// The system could not start the program.
    SpawnFailed {
        /// The program, without its arguments.
        command: String,
        /// The system's message.
        error: String,
    },
    /// The program exited before the handshake.
    Exited {
        /// The program, without its arguments.
        command: String,
        /// The exit status; `None` if a signal killed it.
        exit_code: Option<i32>,
        /// The end of its standard error.
        stderr: String,
    },
    /// The connection failed.
    ConnectionFailed {
        /// The message.
        error: String,
    },
    /// The server rejected the credentials.
    AuthenticationFailed {
        /// The message.
        error: String,
    },
    /// The server did not respond in time.
    TimedOut {
        /// The timeout.
        limit: Duration,
        /// The end of its standard error; empty if unknown.
        stderr: String,
    },
    /// There is no common version of MCP.
    NoCommonVersion {
        /// Our newest version.
        expected: String,
        /// The server's version.
        actual: String,
    },
}

/// The maximum length of each text in bytes; the end is kept.
const MAX_EVIDENCE_BYTES: usize = 4096;
/// Shorter values are not redacted: they are no secrets, and replacing them would make messages unreadable.
const MIN_SECRET_BYTES: usize = 6;

impl ServerStartError {
    /// Creates an error. Its texts are made printable and truncated, and `secrets` (the values of variables and
    /// headers) are redacted.
    pub fn new(
        server_name: impl Into<String>,
        transport: AcpTransport,
        kind: ServerStartErrorKind,
        secrets: &[&Secret],
    ) -> ServerStartError {
        let clean = |text: &str| redact_and_truncate(text, secrets);
        let kind = match kind {
            ServerStartErrorKind::ExecutableNotFound { command } => {
                ServerStartErrorKind::ExecutableNotFound { command: clean(&command) }
            }
            ServerStartErrorKind::SpawnFailed { command, error } => {
                ServerStartErrorKind::SpawnFailed { command: clean(&command), error: clean(&error) }
            }
            ServerStartErrorKind::Exited { command, exit_code, stderr } => {
                ServerStartErrorKind::Exited { command: clean(&command), exit_code, stderr: clean(&stderr) }
            }
            ServerStartErrorKind::ConnectionFailed { error } => {
                ServerStartErrorKind::ConnectionFailed { error: clean(&error) }
            }
            ServerStartErrorKind::AuthenticationFailed { error } => {
                ServerStartErrorKind::AuthenticationFailed { error: clean(&error) }
            }
            ServerStartErrorKind::TimedOut { limit, stderr } => {
                ServerStartErrorKind::TimedOut { limit, stderr: clean(&stderr) }
            }
            ServerStartErrorKind::NoCommonVersion { expected, actual } => {
                ServerStartErrorKind::NoCommonVersion { expected: clean(&expected), actual: clean(&actual) }
            }
        };
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

    fn suggestion(&self) -> &'static str {
        match &self.kind {
            ServerStartErrorKind::ExecutableNotFound { command: _ } => {
                "install the program, or write the path it is at"
            }
            ServerStartErrorKind::SpawnFailed { command: _, error: _ } => {
                "see that the file is a program, and may be executed"
            }
            ServerStartErrorKind::Exited { command: _, exit_code: _, stderr: _ } => {
                "run the command by hand; `stderr` says what it wrote"
            }
            ServerStartErrorKind::ConnectionFailed { error: _ } if self.transport == AcpTransport::Acp => {
                "see that the client still has the server"
            }
            ServerStartErrorKind::ConnectionFailed { error: _ } => {
                "see that the server runs, and the URL leads to it"
            }
            ServerStartErrorKind::AuthenticationFailed { error: _ } => {
                "see the headers that the server was given"
            }
            ServerStartErrorKind::TimedOut { limit: _, stderr: _ } => {
                "see whether the server runs, or wait longer for it"
            }
            ServerStartErrorKind::NoCommonVersion { expected: _, actual: _ } => {
                "use another version of the server"
            }
        }
    }
}

impl fmt::Display for ServerStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server '{}'", self.server_name.escape_debug())?;
        match &self.kind {
            ServerStartErrorKind::ExecutableNotFound { command: _ } => f.write_str(": executable not found"),
            ServerStartErrorKind::SpawnFailed { command: _, error: _ } => {
                f.write_str(" could not be started")
            }
            ServerStartErrorKind::Exited { command: _, exit_code: Some(status), stderr: _ } => {
                write!(f, " ended with status {status} before it spoke")
            }
            ServerStartErrorKind::Exited { command: _, exit_code: None, stderr: _ } => {
                f.write_str(" was ended by a signal before it spoke")
            }
            ServerStartErrorKind::ConnectionFailed { error: _ } => f.write_str(": connection failed"),
            ServerStartErrorKind::AuthenticationFailed { error: _ } => f.write_str(": authentication failed"),
            ServerStartErrorKind::TimedOut { limit, stderr: _ } => {
                write!(f, " did not answer within {} ms", limit.as_millis())
            }
            ServerStartErrorKind::NoCommonVersion { expected: _, actual: _ } => {
                f.write_str(" speaks no version of MCP that we do")
            }
        }
    }
}

impl std::error::Error for ServerStartError {}

impl From<&ServerStartError> for RpcError {
    fn from(failure: &ServerStartError) -> RpcError {
        #[derive(Default, Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Evidence<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            command: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            exit_code: Option<i32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            stderr: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            timeout_ms: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            expected_version: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            actual_version: Option<&'a str>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            server_name: &'a str,
            transport_type: &'a AcpTransport,
            #[serde(flatten)]
            evidence: Evidence<'a>,
            suggestion: &'static str,
        }
        let none = Evidence::default();
        let evidence = match &failure.kind {
            ServerStartErrorKind::ExecutableNotFound { command } => {
                Evidence { command: Some(command), ..none }
            }
            ServerStartErrorKind::SpawnFailed { command, error } => {
                Evidence { command: Some(command), error: Some(error), ..none }
            }
            ServerStartErrorKind::Exited { command, exit_code, stderr } => {
                Evidence { command: Some(command), exit_code: *exit_code, stderr: Some(stderr), ..none }
            }
            ServerStartErrorKind::ConnectionFailed { error }
            | ServerStartErrorKind::AuthenticationFailed { error } => Evidence { error: Some(error), ..none },
            ServerStartErrorKind::TimedOut { limit, stderr } => Evidence {
                timeout_ms: Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
                stderr: Some(stderr.as_str()).filter(|it| !it.is_empty()),
                ..none
            },
            ServerStartErrorKind::NoCommonVersion { expected, actual } => {
                Evidence { expected_version: Some(expected), actual_version: Some(actual), ..none }
            }
        };
        let data = Data {
            server_name: &failure.server_name,
            transport_type: &failure.transport,
            evidence,
            suggestion: failure.suggestion(),
        };
        let data = RawJson::from_value(&data).expect("texts and numbers are JSON");
        RpcError { data: Some(data), ..RpcError::new(code::INTERNAL_ERROR, failure.to_string()) }
    }
}

/// Removes secrets and control characters, and truncates to [`MAX_EVIDENCE_BYTES`].
fn redact_and_truncate(text: &str, secrets: &[&Secret]) -> String {
    // Newlines are kept. Other control characters could split a secret, so they are removed first.
    let mut res: String = text.chars().filter(|it| *it == '\n' || !it.is_control()).collect();
    let mut lines: Vec<&str> = secrets.iter().flat_map(|it| it.expose().lines().map(str::trim)).collect();
    // A secret may contain another one: the longest is replaced first.
    lines.sort_by_key(|it| std::cmp::Reverse(it.len()));
    for secret in lines.into_iter().filter(|it| it.len() >= MIN_SECRET_BYTES) {
        res = res.replace(secret, "***");
    }
    let from = res.len().saturating_sub(MAX_EVIDENCE_BYTES);
    let from = (from..=res.len()).find(|it| res.is_char_boundary(*it)).unwrap_or_default();
    res.split_off(from)
}
