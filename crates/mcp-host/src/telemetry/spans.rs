//! Tracing spans of connections, list requests, calls and other requests.
//!
//! | span | fields |
//! |---|---|
//! | `connect` | `server`, `transport`, `outcome`, `duration`, `era` |
//! | `list` | `server`, `list`, `method`, `outcome`, `duration`, `code`, `items`, `bytes`, and those of the connection |
//! | `call` | `server`, `tool`, `ruling`, `rule`, `outcome`, `duration`, `request_id`, `code`, `bytes`, and those of the connection |
//! | `request` | `method`, `server`, `prompt`, `uri`, `outcome`, `duration`, `code`, and those of the connection |
//!
//! `outcome` is `success`, an error kind, or `cancelled`; `duration` is in seconds; `bytes` is the size of the result
//! before it was cut. `ruling` is the decision of the rule for calls that matched, if one did. `code` is that of a
//! JSON-RPC error. The fields of the connection are `transport`, `version` (of the protocol), `address` and `port` (of
//! the URL). Only if [`TelemetryOptions::contents`](crate::TelemetryOptions::contents) is set, a `call` also has
//! `arguments` and `result`.

use std::sync::OnceLock;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, ServerId};
use mcp_host_transport::{RequestId, Session};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

use crate::error::HostError;
use crate::error::excerpt::floor_char_boundary;
use crate::telemetry::metrics::{HostMetrics, Operation, SUCCESS};

/// The maximum size of recorded arguments and of a recorded result, in bytes.
const MAX_CONTENT_BYTES: usize = 16 * 1024;

/// The outcome of an operation whose future was dropped.
const CANCELLED: &str = "cancelled";

/// A guard that records the outcome of an operation in its span: that of `end`, or `cancelled` if it is dropped.
pub(crate) struct SpanGuard {
    span: Span,
    started: Instant,
    is_finished: bool,
}

impl SpanGuard {
    /// Begins an operation in the current span.
    pub(crate) fn begin() -> SpanGuard {
        SpanGuard { span: Span::current(), started: Instant::now(), is_finished: false }
    }

    /// Records the outcome and returns the duration.
    pub(crate) fn end(mut self, outcome: &'static str) -> Duration {
        self.is_finished = true;
        self.record_outcome(outcome)
    }

    fn record_outcome(&self, outcome: &'static str) -> Duration {
        let duration = self.started.elapsed();
        self.span.record("outcome", outcome).record("duration", duration.as_secs_f64());
        duration
    }
}

impl Drop for SpanGuard {
    fn drop(&mut self) {
        if !self.is_finished {
            self.record_outcome(CANCELLED);
        }
    }
}

/// A guard that records the outcome of a call in its span and the metrics: that of `end`, or `cancelled` if it is
/// dropped.
pub(crate) struct CallGuard<'a> {
    metrics: &'a HostMetrics,
    span: Span,
    started: Instant,
    server: OnceLock<ServerId>,
    is_finished: bool,
}

impl<'a> CallGuard<'a> {
    /// Begins a call with a new span.
    pub(crate) fn begin(metrics: &'a HostMetrics) -> CallGuard<'a> {
        let span = tracing::info_span!(
            "call",
            server = Empty,
            tool = Empty,
            ruling = Empty,
            rule = Empty,
            transport = Empty,
            version = Empty,
            address = Empty,
            port = Empty,
            request_id = Empty,
            code = Empty,
            outcome = Empty,
            duration = Empty,
            bytes = Empty,
            arguments = Empty,
            result = Empty
        );
        CallGuard { metrics, span, started: Instant::now(), server: OnceLock::new(), is_finished: false }
    }

    /// Returns the span of the call.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Returns the start time.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Sets the called tool.
    pub(crate) fn set_tool(&self, server: &ServerId, tool: &str) {
        // A repeated lookup finds the same server.
        if self.server.set(server.clone()).is_ok() {
            self.span.record("server", server.as_str()).record("tool", tool);
        }
    }

    /// Sets the decision of the rule for calls that matched.
    pub(crate) fn set_ruling(&self, outcome: &'static str, rule: &str) {
        self.span.record("ruling", outcome).record("rule", rule);
    }

    /// Records the connection that receives the call.
    pub(crate) fn record_connection(&self, server: &ResolvedServer, session: &Session) {
        record_connection(&self.span, server, session);
    }

    /// Records the id of the request that was answered, or the code of the JSON-RPC error.
    pub(crate) fn record_response(&self, response: Result<Option<RequestId>, Option<i64>>) {
        match response {
            Ok(id) => drop(self.span.record("request_id", id)),
            Err(code) => record_code(&self.span, code),
        }
    }

    /// Records the arguments.
    pub(crate) fn record_arguments(&self, arguments: &str) {
        self.span.record("arguments", limited(arguments));
    }

    /// Records the result.
    pub(crate) fn record_result(&self, result: &str) {
        self.span.record("result", limited(result));
    }

    /// Records the size of the result.
    pub(crate) fn record_bytes(&self, bytes: usize) {
        self.span.record("bytes", bytes);
    }

    /// Records the outcome: success, or an error of this kind.
    pub(crate) fn end(mut self, failed: Option<ErrorKind>, duration: Duration) {
        self.is_finished = true;
        if let Some(kind) = failed {
            self.metrics.record_failure(Operation::Call, self.server(), kind);
        }
        self.record_outcome(failed.map_or(SUCCESS, ErrorKind::as_str), duration);
    }

    fn server(&self) -> Option<&str> {
        self.server.get().map(ServerId::as_str)
    }

    fn record_outcome(&self, outcome: &'static str, duration: Duration) {
        self.metrics.record_call(self.server(), outcome, duration, self.started + duration);
        self.span.record("outcome", outcome).record("duration", duration.as_secs_f64());
        self.span.in_scope(|| tracing::info!(outcome, ?duration, "called"));
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.record_outcome(CANCELLED, self.elapsed());
        }
    }
}

/// Returns the beginning of a text that is recorded.
fn limited(text: &str) -> &str {
    &text[..floor_char_boundary(text, MAX_CONTENT_BYTES)]
}

/// Records the connection that receives a request in the request's span.
pub(crate) fn record_connection(span: &Span, server: &ResolvedServer, session: &Session) {
    if span.is_disabled() {
        return;
    }
    span.record("transport", server.endpoint.kind().as_str()).record("version", session.version().as_str());
    if let Some(url) = server.endpoint.url() {
        span.record("address", url.host_str()).record("port", url.port_or_known_default());
    }
}

/// Records the code of the JSON-RPC error of a failed request in its span.
pub(crate) fn record_code(span: &Span, code: Option<i64>) {
    span.record("code", code);
}

/// Records the outcome of a connection attempt in its span.
pub(crate) fn record_connect(
    metrics: &HostMetrics,
    server: &str,
    outcome: Result<mcp_host_model::Era, &HostError>,
    guard: SpanGuard,
) {
    match outcome {
        Ok(era) => {
            Span::current().record("era", era.as_str());
            let duration = guard.end("success");
            tracing::info!(outcome = "ready", era = era.as_str(), ?duration, "connected");
        }
        // The reason contains no secret (DM-105).
        Err(failure) => {
            let outcome = failure.kind.as_str();
            let duration = guard.end(outcome);
            metrics.record_failure(Operation::Connect, Some(server), failure.kind);
            tracing::warn!(outcome, ?duration, reason = failure.message, "not connected");
        }
    }
}

/// Records the outcome of a list request in its span: the number and size of its items, or the error.
pub(crate) fn record_list(
    metrics: &HostMetrics,
    server: &str,
    outcome: Result<(usize, usize), &HostError>,
    guard: SpanGuard,
) {
    match outcome {
        Ok((items, bytes)) => {
            Span::current().record("items", items).record("bytes", bytes);
            let duration = guard.end("success");
            tracing::debug!(outcome = "success", ?duration, "listed");
        }
        Err(error) => {
            let outcome = error.kind.as_str();
            let duration = guard.end(outcome);
            metrics.record_failure(Operation::List, Some(server), error.kind);
            tracing::warn!(outcome, ?duration, reason = error.message, "not listed");
        }
    }
}
