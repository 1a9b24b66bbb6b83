//! Tracing spans, metrics and the export to OpenTelemetry.

pub mod metrics;
#[cfg(feature = "otel")]
pub mod otel;
pub(crate) mod spans;

use std::sync::Arc;

use mcp_host_model::TraceContext;

/// A function that returns the current trace. It runs in the calling task, within the call's span, and must not block.
pub type TraceSource = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;
