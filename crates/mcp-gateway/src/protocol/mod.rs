//! Reading and writing MCP messages.

pub mod frame;
pub mod json_splice;
pub mod meta;
pub mod params;
pub(crate) mod request_state;
pub(crate) mod response;
pub(crate) mod upstream_error;
