//! Telemetry: tracing spans and session recording.

pub(crate) mod recording;
pub(crate) mod spans;
