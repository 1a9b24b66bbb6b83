//! The headers and the body of a request.

pub(crate) mod client_address;
pub(crate) mod header_names;
pub mod headers;
pub(crate) mod request_body;
