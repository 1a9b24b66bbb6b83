//! The audit log, and a writer of lines that blocks no request.

pub(crate) mod line_writer;
pub(crate) mod record;
