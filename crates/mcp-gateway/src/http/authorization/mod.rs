//! Authorization: which requests are accepted, and what they may use.

pub(crate) mod authorized_client;
pub(crate) mod cors;
pub mod guard;
pub(crate) mod refusals;
