//! Reading and writing MCP messages.

pub(crate) mod frame;
pub(crate) mod json_splice;
pub(crate) mod meta;
pub(crate) mod params;
pub(crate) mod request_state;
pub(crate) mod response;
pub(crate) mod upstream_error;
