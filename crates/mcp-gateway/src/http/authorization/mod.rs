//! Decides who may send a request, and what it may reach.

pub(crate) mod authorized_client;
pub(crate) mod cors;
pub mod guard;
pub(crate) mod refusals;
