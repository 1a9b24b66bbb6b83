//! Lines for operators, which are written without blocking a request.

pub(crate) mod line_writer;
