//! What is told of connections, lists and calls by tracing: one span for each, with what became of it.
//!
//! | span | fields |
//! |---|---|
//! | `connect` | `server`, `transport`, `outcome`, `duration`, `era` |
//! | `list` | `server`, `list`, `outcome`, `duration`, `items`, `bytes` |
//! | `call` | `server`, `tool`, `outcome`, `duration`, `bytes` |
//! | `ask` | `method`, `server`, `outcome`, `duration` |
//!
//! `outcome` is `success`, a kind of failure, or `cancelled`; `duration` is in seconds; `bytes` is what the answer held
//! before anything of it was left out. No span and no event says what an argument or a result held.

use std::sync::OnceLock;
use std::time::Duration;

use mcp_model::{ErrorKind, ServerId};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

use crate::failure::HostError;
use crate::metrics::{Meter, Operation, SUCCESS};
use crate::supervisor::lists::Fresh;

/// What became of something that was not waited for to its end.
const CANCELLED: &str = "cancelled";

/// Says in the current span how something ended, also when it is not waited for to its end.
pub(crate) struct Record {
    span: Span,
    begun: Instant,
    is_over: bool,
}

impl Record {
    /// It begins, in its span.
    pub(crate) fn begin() -> Record {
        Record { span: Span::current(), begun: Instant::now(), is_over: false }
    }

    /// It has ended like this; gives how long it took.
    pub(crate) fn end(mut self, outcome: &'static str) -> Duration {
        self.is_over = true;
        self.tell(outcome)
    }

    fn tell(&self, outcome: &'static str) -> Duration {
        let duration = self.begun.elapsed();
        self.span.record("outcome", outcome).record("duration", duration.as_secs_f64());
        duration
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.is_over {
            self.tell(CANCELLED);
        }
    }
}

/// Tells how a call ended, also when its caller stops waiting.
pub(crate) struct CallRecord<'a> {
    meter: &'a Meter,
    span: Span,
    begun: Instant,
    server: OnceLock<ServerId>,
    is_over: bool,
}

impl<'a> CallRecord<'a> {
    /// A call begins.
    pub(crate) fn begin(meter: &'a Meter) -> CallRecord<'a> {
        let span = tracing::info_span!(
            "call",
            server = Empty,
            tool = Empty,
            outcome = Empty,
            duration = Empty,
            bytes = Empty
        );
        CallRecord { meter, span, begun: Instant::now(), server: OnceLock::new(), is_over: false }
    }

    /// The span that the call is made in.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// When it began.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// How long it has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// It is this tool that is called.
    pub(crate) fn found(&self, server: &ServerId, tool: &str) {
        // A call that is looked up again means the same server.
        if self.server.set(server.clone()).is_ok() {
            self.span.record("server", server.as_str()).record("tool", tool);
        }
    }

    /// The answer held so many bytes.
    pub(crate) fn weighed(&self, bytes: usize) {
        self.span.record("bytes", bytes);
    }

    /// It has ended, with a failure of this kind if it has failed.
    pub(crate) fn end(mut self, failed: Option<ErrorKind>, duration: Duration) {
        self.is_over = true;
        if let Some(kind) = failed {
            self.meter.failed(Operation::Call, self.server(), kind);
        }
        self.tell(failed.map_or(SUCCESS, ErrorKind::as_str), duration);
    }

    fn server(&self) -> Option<&str> {
        self.server.get().map(ServerId::as_str)
    }

    fn tell(&self, outcome: &'static str, duration: Duration) {
        self.meter.called(self.server(), outcome, duration, self.begun + duration);
        self.span.record("outcome", outcome).record("duration", duration.as_secs_f64());
        self.span.in_scope(|| tracing::info!(outcome, ?duration, "called"));
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.tell(CANCELLED, self.elapsed());
        }
    }
}

/// What a start has brought, in its span.
pub(crate) fn connected(
    meter: &Meter,
    server: &str,
    outcome: Result<mcp_model::Era, &HostError>,
    record: Record,
) {
    match outcome {
        Ok(era) => {
            Span::current().record("era", era.as_str());
            let duration = record.end("success");
            tracing::info!(outcome = "ready", era = era.as_str(), ?duration, "connected");
        }
        // The reason names no secret, and a log is where it is looked for (DM-105).
        Err(failure) => {
            let outcome = failure.kind.as_str();
            let duration = record.end(outcome);
            meter.failed(Operation::Connect, Some(server), failure.kind);
            tracing::warn!(outcome, ?duration, reason = failure.message, "not connected");
        }
    }
}

/// What a list has brought, in its span.
pub(crate) fn listed(meter: &Meter, server: &str, fresh: &Fresh, record: Record) {
    match fresh {
        Fresh::Tools(_) | Fresh::Prompts(_) | Fresh::Resources(..) => {
            let (items, bytes) = fresh.size();
            Span::current().record("items", items).record("bytes", bytes);
            let duration = record.end("success");
            tracing::debug!(outcome = "success", ?duration, "listed");
        }
        Fresh::Failed(_, failure) => {
            let outcome = failure.kind.as_str();
            let duration = record.end(outcome);
            meter.failed(Operation::List, Some(server), failure.kind);
            tracing::warn!(outcome, ?duration, reason = failure.message, "not listed");
        }
    }
}
