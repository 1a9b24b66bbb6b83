//! What must hold of any file that is kept, for the fuzz targets in `fuzz/`.
//!
//! No part of the crate's interface: it is there for the fuzzer (`cfg(fuzzing)`) and for the tests, which feed each
//! function from its seeds.

use crate::state::token_store;

/// A file of a login: what is read is written as what reads back the same, and is not printed.
pub fn login(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Some((saved, grant)) = token_store::parse(text) else { return };
    assert_eq!(token_store::parse(&token_store::text(saved, &grant)), Some((saved, grant.clone())));
    let printed = format!("{grant:?}");
    let token = grant.access_token.expose();
    let elsewhere = grant.issuer.contains(token) || grant.scopes.iter().any(|it| it.contains(token));
    assert!(token.len() < 20 || elsewhere || !printed.contains(token), "{printed}");
}

#[cfg(test)]
#[path = "../../../fuzz/src/feed.rs"]
mod feed;

#[cfg(test)]
mod tests {
    use super::feed::feed;

    #[test]
    fn any_file_can_be_a_login() {
        feed("login", super::login);
    }
}
