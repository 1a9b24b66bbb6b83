//! The requests of a session.

pub(crate) mod calls;
pub(crate) mod input_requests;
pub(crate) mod lists;
pub(crate) mod request;
pub(crate) mod request_params;
pub(crate) mod resources;
pub(crate) mod response;
pub(crate) mod session_loss;
pub(crate) mod skills;
pub(crate) mod tasks;
