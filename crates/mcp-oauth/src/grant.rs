//! What a user has agreed to: the tokens, and for whom and from whom they are. Pure.

use std::fmt;

use mcp_model::Secret;
use serde::{Deserialize, Serialize};
use url::Url;

/// A token that ends sooner is renewed before it is used: requests take their time.
const MARGIN: u64 = 30;

/// A client as an authorization server knows it.
#[derive(Clone, PartialEq, Eq)]
pub struct RegisteredClient {
    /// Its id.
    pub id: String,
    /// Its secret, where it has one.
    pub secret: Option<Secret>,
    /// The redirect that it was registered with, where it was registered by us.
    pub redirect_uri: Option<Url>,
}

/// A grant. Belongs to one resource and one issuer, and is sent to no other.
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    /// The server's URL, as the configuration has it.
    pub resource: Url,
    /// The authorization server, as it names itself.
    pub issuer: String,
    /// Who we are to it.
    pub client: RegisteredClient,
    /// The token for requests.
    pub access_token: Secret,
    /// The token for the next token.
    pub refresh_token: Option<Secret>,
    /// When the token for requests ends, in seconds since the epoch; `None` where nobody said.
    pub expires_at: Option<u64>,
    /// What was asked for and given.
    pub scopes: Vec<String>,
}

impl Grant {
    /// Is its token over, or soon to be, at `now` (seconds since the epoch)?
    pub fn is_expiring(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|it| it <= now.saturating_add(MARGIN))
    }

    /// As JSON, secrets and all: for whoever keeps it in a place of the user's own.
    pub fn to_json(&self) -> serde_json::Value {
        let text = |it: &Secret| it.expose().to_owned();
        let wire = Wire {
            resource: self.resource.clone(),
            issuer: self.issuer.clone(),
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.as_ref().map(text),
            redirect: self.client.redirect_uri.clone(),
            access_token: text(&self.access_token),
            refresh_token: self.refresh_token.as_ref().map(text),
            expires_at: self.expires_at,
            scopes: self.scopes.clone(),
        };
        serde_json::to_value(wire).expect("its keys are strings")
    }

    /// The reverse. `None` where it is not one.
    pub fn from_json(value: &serde_json::Value) -> Option<Grant> {
        let Wire {
            resource,
            issuer,
            client_id,
            client_secret,
            redirect,
            access_token,
            refresh_token,
            expires_at,
            scopes,
        } = Wire::deserialize(value).ok()?;
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
            scopes,
        })
    }
}

/// A grant as it is written down.
#[derive(Serialize, Deserialize)]
struct Wire {
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
    #[serde(default)]
    scopes: Vec<String>,
}

impl fmt::Debug for RegisteredClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownClient").field("id", &self.id).finish_non_exhaustive()
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
            scopes: vec!["read".to_owned()],
        }
    }

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        assert!(!grant().is_expiring(969));
        assert!(grant().is_expiring(970));
        assert!(!Grant { expires_at: None, ..grant() }.is_expiring(u64::MAX));
    }

    #[test]
    fn what_is_kept_comes_back_and_is_not_printed() {
        assert_eq!(Grant::from_json(&grant().to_json()), Some(grant()));
        assert_eq!(Grant::from_json(&serde_json::json!({"resource": "https://example.com"})), None);
        let printed = format!("{:?} {:?}", grant(), grant().client);
        assert!(!printed.contains("secret"), "{printed}");
    }
}
