//! Access: tokens, principals and scopes.

pub(crate) mod oauth;
pub(crate) mod principal;
pub mod scope;
pub(crate) mod secret_id;
pub(crate) mod tokens;
