//! Properties checked by the fuzz targets in `fuzz/`.
//!
//! Not part of the public API: compiled for the fuzzer (`cfg(fuzzing)`) and for tests, which run them on the seeds.

use crate::state::token_store;

/// A login file: parsing and writing round-trips, and the printed form contains no token.
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
    fn login_properties_hold_for_seeds() {
        feed("login", super::login);
    }
}
