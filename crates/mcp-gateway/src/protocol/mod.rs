//! Reading and writing MCP messages.

pub mod frame;
pub mod json_splice;
pub(crate) mod message_writer;
pub mod meta;
pub(crate) mod oversized;
pub mod params;
pub(crate) mod request_state;
pub(crate) mod result_body;
pub(crate) mod task_ids;
pub(crate) mod upstream_error;
