//! Responses: complete ones, event streams, and refusals.

pub(crate) mod errors;
pub(crate) mod pending_response;
pub(crate) mod response;
pub(crate) mod sse;
