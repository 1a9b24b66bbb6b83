//! Options of an authorization.

use std::fmt;
use std::sync::Arc;

use mcp_host_transport::Authorities;
use url::Url;

use crate::grant::RegisteredClient;
use crate::store::TokenStore;
use crate::unattended::UnattendedGrant;
use crate::user_agent::UserAgent;

/// Options of [`OAuth`](crate::OAuth).
#[derive(Clone)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// Stores grants.
    pub store: Arc<dyn TokenStore>,
    /// Asks the user to log in. Without it a server without a stored login cannot be used.
    pub user_agent: Option<Arc<dyn UserAgent>>,
    /// The client name for registration.
    pub client_name: String,
    /// The URL of our client metadata document (https, with a path); used if the authorization server supports it.
    pub client_metadata: Option<Url>,
    /// A client that was registered by hand; takes precedence.
    pub client: Option<RegisteredClient>,
    /// The only issuer that may be used, also if its metadata names another one. Without it a server chooses which
    /// authorization server receives the secret of `client`.
    pub issuer: Option<String>,
    /// Scopes to request in addition to those that the server names. A login that lacks one is replaced.
    pub scopes: Vec<String>,
    /// A grant that needs no user. It is not stored, and `user_agent` is not asked.
    pub unattended: Option<UnattendedGrant>,
    /// Certificate authorities that are trusted in addition to the system's.
    pub authorities: Authorities,
    /// What to do when a login is required and there is no user agent, for example `` run `mcp-host login
    /// weather` ``. Unless set: log in to the server.
    pub login_hint: String,
}

impl OAuthOptions {
    /// Options without a user agent: a server without a stored login cannot be used.
    pub fn new(store: Arc<dyn TokenStore>, client_name: impl Into<String>) -> OAuthOptions {
        OAuthOptions {
            store,
            user_agent: None,
            client_name: client_name.into(),
            client_metadata: None,
            client: None,
            issuer: None,
            scopes: Vec::new(),
            unattended: None,
            authorities: Authorities::default(),
            login_hint: "log in to the server".to_owned(),
        }
    }
}

impl fmt::Debug for OAuthOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthOptions").field("client_name", &self.client_name).finish_non_exhaustive()
    }
}
