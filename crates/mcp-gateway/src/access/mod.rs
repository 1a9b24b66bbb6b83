//! Access: tokens, principals and scopes.

pub(crate) mod principal;
pub(crate) mod scope;
pub(crate) mod secret_id;
pub(crate) mod tokens;
