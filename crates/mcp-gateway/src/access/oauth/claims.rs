//! The claims of an access token. Pure.

use jsonwebtoken::errors::ErrorKind;
use serde::Deserialize;

/// Maximum length of a subject in bytes, by OpenID Connect.
const MAX_SUBJECT_BYTES: usize = 255;
/// Maximum number of scopes that are read.
const MAX_SCOPES: usize = 256;

/// The claims that the gateway reads. The library checks issuer and times.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    /// The expiry in seconds since the epoch, which may have a fraction (RFC 7519, section 2).
    exp: f64,
    /// Declared as a text, because the library would accept a list, too.
    #[serde(rename = "iss")]
    _issuer: Option<String>,
    /// The audiences: the resources that the token is for.
    aud: OneOrMany,
    /// The subject: the user, or the client if it acts for itself.
    sub: Option<String>,
    client_id: Option<String>,
    /// When the token was issued: a number; another value is ignored.
    iat: Option<serde_json::Value>,
    scope: Option<OneOrMany>,
    /// The name of `scope` at some authorization servers.
    scp: Option<OneOrMany>,
    /// The key of which the sender must prove possession.
    cnf: Option<serde_json::Value>,
}

/// A claim that is one text or a list of texts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let values = match self {
            OneOrMany::One(value) => std::slice::from_ref(value),
            OneOrMany::Many(values) => values,
        };
        values.iter().map(String::as_str)
    }
}

impl Claims {
    /// The name of the user, or of the client that acts for itself. `None` if it is missing or not usable.
    pub(super) fn subject(&self) -> Option<&str> {
        let is_usable = |name: &&str| {
            (1..=MAX_SUBJECT_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
        };
        self.sub.as_deref().or(self.client_id.as_deref()).filter(is_usable)
    }

    /// When the token expires, in seconds since the epoch.
    pub(super) fn expires_at(&self) -> u64 {
        self.exp as u64
    }

    /// Whether the token is bound to a key. The gateway supports no proof of possession, so such a token is not
    /// accepted.
    pub(super) fn is_key_bound(&self) -> bool {
        self.cnf.is_some()
    }

    /// When the token was issued, in seconds since the epoch; 0 if unknown.
    pub(super) fn issued_at(&self) -> f64 {
        self.iat.as_ref().and_then(serde_json::Value::as_f64).unwrap_or_default()
    }

    /// The scopes: a text with spaces, or an array.
    pub(super) fn scopes(&self) -> Vec<String> {
        let claims = self.scope.iter().chain(&self.scp);
        let scopes = claims.flat_map(OneOrMany::iter).flat_map(str::split_whitespace);
        scopes.take(MAX_SCOPES).map(str::to_owned).collect()
    }

    /// The audiences that are this resource, or the resource of one of its servers.
    pub(super) fn audiences(&self, resource: &str) -> Vec<String> {
        // The URL of an origin is the same with and without a slash at its end.
        let audiences = self.aud.iter().map(|audience| audience.strip_suffix('/').unwrap_or(audience));
        let belongs = |audience: &&str| {
            audience.strip_prefix(resource).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        audiences.filter(belongs).map(str::to_owned).collect()
    }
}

/// The reason why a token is not accepted.
pub(super) fn rejection_reason(error: &ErrorKind) -> &'static str {
    match error {
        ErrorKind::ExpiredSignature => "the access token has expired",
        ErrorKind::ImmatureSignature => "the access token is not yet valid",
        ErrorKind::InvalidIssuer => "the access token is of another issuer",
        ErrorKind::InvalidSignature => "the signature of the access token is wrong",
        ErrorKind::MissingRequiredClaim(_) => "the access token has no expiry, issuer or audience",
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => {
            "the algorithm of the access token does not fit its key"
        }
        _ => "the access token is not a valid JWT",
    }
}
