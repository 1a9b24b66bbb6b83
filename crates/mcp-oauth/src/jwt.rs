//! Signed JWTs.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

/// Makes a JWT with this header and these claims. `sign` returns the signature of a text. `None` if it fails.
pub(crate) fn sign_jwt(
    header: &Value,
    claims: &Value,
    sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Option<String> {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let text = format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
    let signature = encode(&sign(text.as_bytes())?);
    Some(format!("{text}.{signature}"))
}

/// A value for the claim `jti`: 128 random bits. `None` if the system provides no randomness.
pub(crate) fn random_id() -> Option<String> {
    let mut unique = [0; 16];
    SystemRandom::new().fill(&mut unique).ok()?;
    Some(URL_SAFE_NO_PAD.encode(unique))
}

/// Seconds since the epoch.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}
