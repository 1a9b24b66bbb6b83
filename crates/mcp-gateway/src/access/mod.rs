//! Access: tokens, principals and scopes.

pub(crate) mod admission;
pub(crate) mod oauth;
pub(crate) mod principal;
pub mod scope;
pub(crate) mod secret_id;
pub(crate) mod tokens;

/// Whether a list of tokens admits a request with this value of the `Authorization` header.
pub fn is_admitted(tokens: &tokens::Tokens, authorization: Option<&str>) -> bool {
    tokens.admit(authorization.map(str::as_bytes), std::time::SystemTime::now()).is_ok()
}
