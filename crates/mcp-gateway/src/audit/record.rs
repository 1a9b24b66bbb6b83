//! The audit log: one JSON line per call of a client.
//!
//! A line has names, sizes and times, and no content: neither arguments nor results nor URIs.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use mcp_host_transport::open_for_appending;
use serde::Serialize;
use serde_json::json;

use crate::audit::line_writer::{LineTarget, LineWriter};

/// The audit log of a gateway. A thread of its own writes it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditLog(LineWriter);

/// The record of one call.
#[derive(Debug, Serialize)]
pub(crate) struct AuditRecord<'a> {
    /// The name that the client gave itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<&'a str>,
    /// The address of the client, over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<IpAddr>,
    /// The name of its token.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) token: &'a str,
    /// The line of its token in the list, because several tokens may have one name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_line: Option<usize>,
    /// The id of its dialog, which is another one than the secret id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<&'a str>,
    pub(crate) method: &'a str,
    /// The server, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<&'a str>,
    /// `success`, `tool_error`, `error`, `limited` or `cancelled`.
    pub(crate) outcome: &'a str,
    /// What the rule for calls decided, if one matched: `allowed`, `approved`, `refused`, `declined` or `unanswered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ruling: Option<&'a str>,
    /// The rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'a str>,
    /// The number of the JSON-RPC error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    pub(crate) duration_ms: f64,
    /// The size of the parameters.
    pub(crate) request_bytes: usize,
    /// The size of the result.
    pub(crate) result_bytes: usize,
}

/// A line of the log: a record with its time.
#[derive(Serialize)]
struct AuditLine<'a> {
    time: String,
    #[serde(flatten)]
    record: &'a AuditRecord<'a>,
}

impl AuditLog {
    /// Appends to this file, which only its owner can read if it is new. Fails if it cannot be opened.
    pub fn to_file(path: &Path) -> io::Result<AuditLog> {
        LineWriter::start(AuditTarget(Some(path.to_owned()))).map(AuditLog)
    }

    /// Writes to standard output.
    pub fn to_stdout() -> io::Result<AuditLog> {
        LineWriter::start(AuditTarget(None)).map(AuditLog)
    }

    /// Opens the file again, after it was renamed or removed. If that fails, the old file stays in use.
    pub fn reopen(&self) {
        self.0.reopen();
    }

    /// Waits until all lines are written, for a limited time. Blocks the thread.
    pub fn flush(&self, limit: Duration) {
        self.0.flush(limit);
    }

    /// The number of lines that were dropped, because they could not be written in time.
    pub fn dropped_lines(&self) -> u64 {
        self.0.dropped_lines()
    }

    /// Queues a record. Never blocks.
    pub(crate) fn write(&self, record: &AuditRecord<'_>) {
        let line = AuditLine { time: timestamp(), record };
        let mut text = serde_json::to_vec(&line).expect("its keys are strings");
        text.push(b'\n');
        self.0.write(text);
    }
}

/// The current time in the format of RFC 3339.
fn timestamp() -> String {
    format!("{:.3}", Timestamp::now())
}

/// A file, or standard output.
struct AuditTarget(Option<PathBuf>);

impl LineTarget for AuditTarget {
    fn open(&mut self) -> io::Result<Box<dyn Write + Send>> {
        let Some(path) = &self.0 else { return Ok(Box::new(io::stdout())) };
        Ok(Box::new(open_for_appending(path)?))
    }

    fn drop_notice(&self, lines: u64) -> String {
        tracing::warn!("{lines} lines of the audit log were dropped: they could not be written in time");
        format!("{}\n", json!({"time": timestamp(), "dropped": lines}))
    }

    fn on_error(&self, error: &io::Error) {
        let name = self.0.as_deref().unwrap_or(Path::new("standard output")).display();
        tracing::error!("cannot write the audit log {name}: {error}");
    }
}
