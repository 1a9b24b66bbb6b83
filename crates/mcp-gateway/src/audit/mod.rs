//! The audit log, and lines that are written without blocking a request.

pub(crate) mod line_writer;
pub(crate) mod record;
