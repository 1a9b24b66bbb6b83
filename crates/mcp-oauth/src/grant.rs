//! Grants: tokens with their resource, issuer and client. No I/O.

use std::fmt;

use mcp_host_model::Secret;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::proof::ProofKey;

/// A token that expires within this time is refreshed before use.
const EXPIRY_MARGIN_SECONDS: u64 = 30;

/// The margin of a short-lived token is its lifetime divided by this.
const LIFETIME_DIVISOR: u64 = 10;

/// A client as registered at an authorization server.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisteredClient {
    /// The client id.
    pub id: String,
    /// The client secret, if any.
    pub secret: Option<Secret>,
    /// The redirect URI that we registered. `None` for a client that we did not register; its logins may use any.
    pub redirect_uri: Option<Url>,
}

impl RegisteredClient {
    /// A public client, without a secret, that we did not register.
    pub fn new(id: impl Into<String>) -> RegisteredClient {
        RegisteredClient { id: id.into(), secret: None, redirect_uri: None }
    }
}

/// The tokens of a login. They belong to one resource and one issuer, and are sent to no other.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The server's URL from the configuration.
    pub resource: Url,
    /// The issuer identifier of the authorization server.
    pub issuer: String,
    /// The client that the grant was issued to.
    pub client: RegisteredClient,
    /// The access token.
    pub access_token: Secret,
    /// The refresh token.
    pub refresh_token: Option<Secret>,
    /// The expiry of the access token in seconds since the epoch; `None` if unknown.
    pub expires_at: Option<u64>,
    /// When the access token was issued, in seconds since the epoch; `None` if unknown.
    pub issued_at: Option<u64>,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// Scopes that the server required later, for the next login.
    pub missing_scopes: Vec<String>,
    /// The key that the tokens are bound to; `None` for bearer tokens.
    pub proof_key: Option<ProofKey>,
}

impl Grant {
    /// A grant of unknown duration, without a refresh token and scopes.
    pub fn new(
        resource: Url,
        issuer: impl Into<String>,
        client: RegisteredClient,
        access_token: Secret,
    ) -> Grant {
        Grant {
            resource,
            issuer: issuer.into(),
            client,
            access_token,
            refresh_token: None,
            expires_at: None,
            issued_at: None,
            scopes: Vec::new(),
            missing_scopes: Vec::new(),
            proof_key: None,
        }
    }

    /// Whether the access token has expired or is about to expire at `now` (seconds since the epoch).
    pub fn is_expiring(&self, now: u64) -> bool {
        let Some(expires_at) = self.expires_at else { return false };
        let lifetime = self.issued_at.map(|issued_at| expires_at.saturating_sub(issued_at));
        let margin =
            lifetime.map_or(EXPIRY_MARGIN_SECONDS, |it| EXPIRY_MARGIN_SECONDS.min(it / LIFETIME_DIVISOR));
        expires_at <= now.saturating_add(margin)
    }

    /// The grant as JSON, secrets included, for a token store.
    pub fn to_json(&self) -> serde_json::Value {
        let text = |secret: &Secret| secret.expose().to_owned();
        let json = GrantJson {
            resource: self.resource.clone(),
            issuer: self.issuer.clone(),
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.as_ref().map(text),
            redirect: self.client.redirect_uri.clone(),
            access_token: text(&self.access_token),
            refresh_token: self.refresh_token.as_ref().map(text),
            expires_at: self.expires_at,
            issued_at: self.issued_at,
            scopes: self.scopes.clone(),
            missing_scopes: self.missing_scopes.clone(),
            proof_key: self.proof_key.as_ref().map(|key| text(key.stored_form())),
        };
        serde_json::to_value(json).expect("its keys are strings")
    }

    /// Parses the output of [`Grant::to_json`].
    pub fn from_json(value: &serde_json::Value) -> Option<Grant> {
        let GrantJson {
            resource,
            issuer,
            client_id,
            client_secret,
            redirect,
            access_token,
            refresh_token,
            expires_at,
            issued_at,
            scopes,
            missing_scopes,
            proof_key,
        } = GrantJson::deserialize(value).ok()?;
        Some(Grant {
            resource,
            issuer,
            client: RegisteredClient {
                id: client_id,
                secret: client_secret.map(Secret::new),
                redirect_uri: redirect,
            },
            access_token: Secret::new(access_token),
            refresh_token: refresh_token.map(Secret::new),
            expires_at,
            issued_at,
            scopes,
            missing_scopes,
            // Without its key, a bound token is useless.
            proof_key: match proof_key {
                Some(stored) => Some(ProofKey::from_stored(&stored)?),
                None => None,
            },
        })
    }
}

/// The stored form of a grant.
#[derive(Serialize, Deserialize)]
struct GrantJson {
    resource: Url,
    issuer: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect: Option<Url>,
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issued_at: Option<u64>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing_scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof_key: Option<String>,
}

impl fmt::Debug for RegisteredClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredClient").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Grant {
        Grant {
            resource: "https://example.com/mcp".parse().unwrap(),
            issuer: "https://login.example.com".to_owned(),
            client: RegisteredClient {
                id: "c".to_owned(),
                secret: Some(Secret::from("client-secret")),
                redirect_uri: None,
            },
            access_token: Secret::from("access-secret"),
            refresh_token: Some(Secret::from("refresh-secret")),
            expires_at: Some(1000),
            issued_at: Some(100),
            scopes: vec!["read".to_owned()],
            missing_scopes: vec!["write".to_owned()],
            proof_key: ProofKey::generate(),
        }
    }

    #[test]
    fn token_expires_with_a_margin() {
        assert!(!grant().is_expiring(969));
        assert!(grant().is_expiring(970));
        assert!(Grant { issued_at: None, ..grant() }.is_expiring(970));
        assert!(!Grant { expires_at: None, ..grant() }.is_expiring(u64::MAX));
    }

    // RPT-122
    #[test]
    fn short_lived_token_is_used_until_its_end() {
        let short = Grant { issued_at: Some(996), ..grant() };
        assert!(!short.is_expiring(999));
        assert!(short.is_expiring(1000));
        assert!(Grant { issued_at: Some(940), ..grant() }.is_expiring(994));
    }

    #[test]
    fn stored_grant_round_trips_and_is_not_printed() {
        let grant = grant();
        assert_eq!(Grant::from_json(&grant.to_json()).as_ref(), Some(&grant));
        assert_eq!(Grant::from_json(&serde_json::json!({"resource": "https://example.com"})), None);
        let printed = format!("{grant:?} {:?} {:?}", grant.client, grant.proof_key);
        assert!(!printed.contains("secret"), "{printed}");
    }
}
