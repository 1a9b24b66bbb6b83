//! OAuth logins of a host: one authorization per server, shared by its connections; with token exchange, one per user's
//! connection.
//!
//! The embedding program asks the user. A host without a user agent uses existing logins, and reports what to do if
//! there is none.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use mcp_host_model::{ClientCredentials, ClientKey, Endpoint, Secret, ServerId};
use mcp_host_oauth::{
    ClientAuthentication, InvalidPrivateKey, MemoryTokenStore, OAuth, OAuthClient, OAuthOptions, PrivateKey,
    RegisteredClient, RevocationOutcome, TokenSource, TokenStore, UnattendedGrant, UnattendedGrantKind,
    UserAgent,
};
use mcp_host_transport::{Authorities, Authorization, Unauthorized};
use parking_lot::Mutex;
use url::Url;

use crate::state::subject_tokens::SubjectToken;

/// Options for logins.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoginOptions {
    /// Stores the tokens of each server.
    pub store: Arc<dyn TokenStore>,
    /// Asks the user for consent; `None` if there is no user.
    pub user: Option<Arc<dyn UserAgent>>,
    /// The client name for registration.
    pub client_name: String,
    /// The URL of the client ID metadata document: https, with a path.
    pub client_metadata: Option<Url>,
    /// A pre-registered OAuth client, for every server.
    pub client: Option<RegisteredClient>,
    /// The only issuer that may be used; see [`OAuthOptions::issuer`].
    pub issuer: Option<String>,
    /// Scopes to request in addition to those that servers name; see [`OAuthOptions::scopes`].
    pub scopes: Vec<String>,
    /// The help text for a server without a login: `` run `mcp-host login weather` ``.
    pub help: LoginHelp,
}

impl LoginOptions {
    /// Creates options without a user agent: a server without a stored login cannot be used.
    pub fn new(store: Arc<dyn TokenStore>, client_name: impl Into<String>, help: LoginHelp) -> LoginOptions {
        LoginOptions {
            store,
            user: None,
            client_name: client_name.into(),
            client_metadata: None,
            client: None,
            issuer: None,
            scopes: Vec::new(),
            help,
        }
    }
}

/// A function that returns the help text for a server without a login.
pub type LoginHelp = Arc<dyn Fn(&ServerId) -> String + Send + Sync>;

/// The logins of a host. Clones share their state.
#[derive(Clone)]
pub struct Logins(Arc<LoginState>);

/// The state that clones of [`Logins`] share.
struct LoginState {
    options: LoginOptions,
    /// The authorizations that connections use.
    current: Mutex<HashMap<(ServerId, Url), CurrentLogin>>,
}

/// An authorization, with the credentials that it was created from.
struct CurrentLogin {
    credentials: Option<ClientCredentials<Secret>>,
    oauth: Weak<OAuth>,
}

/// The settings that differ between the authorizations of a host.
struct OAuthSettings<'a> {
    store: Arc<dyn TokenStore>,
    unattended: Option<UnattendedGrant>,
    authorities: &'a Authorities,
}

impl Logins {
    /// Creates logins. Loads nothing.
    pub fn new(options: LoginOptions) -> Logins {
        Logins(Arc::new(LoginState { options, current: Mutex::default() }))
    }

    /// Returns the authorization of a server, shared by its connections. `None` in these cases:
    ///
    /// - The server is not reached over HTTP.
    /// - It is reached over plain HTTP on another machine, where no token is sent.
    /// - Its entry has an `Authorization` header, which takes precedence.
    /// - Its `privateKey` cannot be used; a warning is logged.
    /// - No HTTP client can be built, for example without valid certificate authorities.
    pub fn authorization(
        &self,
        server: &ServerId,
        endpoint: &Endpoint,
        authorities: &Authorities,
    ) -> Option<Arc<dyn Authorization>> {
        self.get_or_create(server, endpoint, authorities).map(|it| it as Arc<dyn Authorization>)
    }

    /// Returns the authorization of one user's connection to a server with token exchange: it exchanges the latest
    /// token of `subject`, and shares nothing with other connections. `None` as for [`Logins::authorization`].
    pub(crate) fn exchange(
        &self,
        server: &ServerId,
        endpoint: &Endpoint,
        authorities: &Authorities,
        subject: Weak<SubjectToken>,
    ) -> Option<Arc<dyn Authorization>> {
        let (url, credentials) = url_and_credentials(endpoint)?;
        let subject = TokenSource::new(move || match subject.upgrade() {
            Some(subject) => Ok(subject.lock().clone()),
            None => Err("the session of the user has ended".to_owned()),
        });
        let unattended =
            self.create_grant(server, credentials?, UnattendedGrantKind::TokenExchange(subject))?;
        let store = Arc::new(MemoryTokenStore::default());
        self.create_oauth(server, url, OAuthSettings { store, unattended: Some(unattended), authorities })
            .map(|it| Arc::new(it) as Arc<dyn Authorization>)
    }

    /// Revokes the login at the authorization server. [`TokenStore::remove`] deletes the local copy. The error
    /// message contains the reason.
    pub async fn revoke(
        &self,
        server: &ServerId,
        endpoint: &Endpoint,
        authorities: &Authorities,
    ) -> Result<RevocationOutcome, Unauthorized> {
        match self.get_or_create(server, endpoint, authorities) {
            Some(login) => login.revoke().await,
            None => Ok(RevocationOutcome::NoGrant),
        }
    }

    /// Returns the authorization that connections share, or creates it.
    fn get_or_create(
        &self,
        server: &ServerId,
        endpoint: &Endpoint,
        authorities: &Authorities,
    ) -> Option<Arc<OAuth>> {
        let (url, credentials) = url_and_credentials(endpoint)?;
        let key = (server.clone(), url.clone());
        let mut current = self.0.current.lock();
        let known = current.get(&key).filter(|login| login.credentials.as_ref() == credentials);
        if let Some(oauth) = known.and_then(|login| login.oauth.upgrade()) {
            return Some(oauth);
        }
        let unattended = match credentials {
            Some(credentials) => {
                Some(self.create_grant(server, credentials, UnattendedGrantKind::ClientCredentials)?)
            }
            None => None,
        };
        let store = Arc::clone(&self.0.options.store);
        let new =
            Arc::new(self.create_oauth(server, url, OAuthSettings { store, unattended, authorities })?);
        current.retain(|_, it| it.oauth.strong_count() > 0);
        let oauth = Arc::downgrade(&new);
        current.insert(key, CurrentLogin { credentials: credentials.cloned(), oauth });
        Some(new)
    }

    /// Creates the grant of configured credentials. Returns `None` if they cannot be used, which is logged.
    fn create_grant(
        &self,
        server: &ServerId,
        credentials: &ClientCredentials<Secret>,
        kind: UnattendedGrantKind,
    ) -> Option<UnattendedGrant> {
        match unattended_grant(credentials, kind) {
            Ok(grant) => Some(grant),
            Err(error) => {
                tracing::warn!(server = %server, "the `privateKey` cannot be used: {error}");
                None
            }
        }
    }

    /// Creates an authorization. Returns `None` if that is not possible, which is logged.
    fn create_oauth(&self, server: &ServerId, url: &Url, parts: OAuthSettings<'_>) -> Option<OAuth> {
        let OAuthSettings { store, unattended, authorities } = parts;
        let LoginOptions { store: _, user, client_name, client_metadata, client, issuer, scopes, help } =
            self.0.options.clone();
        let mut options = OAuthOptions::new(store, client_name);
        options.user_agent = user;
        options.client_metadata = client_metadata;
        options.client = client;
        options.issuer = issuer;
        options.scopes = scopes;
        options.unattended = unattended;
        options.authorities = authorities.clone();
        options.login_hint = help(server);
        match OAuth::new(url, options) {
            Ok(new) => Some(new),
            Err(error) => {
                tracing::debug!(server = %server, "no logins: {error}");
                None
            }
        }
    }
}

/// Returns the URL and the credentials of a server that may need authorization.
fn url_and_credentials(endpoint: &Endpoint) -> Option<(&Url, Option<&ClientCredentials<Secret>>)> {
    match endpoint {
        Endpoint::Http(it) | Endpoint::Sse(it) => {
            let has_header = it.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
            (!has_header).then_some((&it.url, it.client_credentials.as_ref()))
        }
        Endpoint::Stdio(_) | Endpoint::WebSocket(_) => None,
    }
}

/// Creates a grant with configured credentials.
fn unattended_grant(
    credentials: &ClientCredentials<Secret>,
    kind: UnattendedGrantKind,
) -> Result<UnattendedGrant, InvalidPrivateKey> {
    let ClientCredentials { grant: _, client_id, key, scopes, issuer, .. } = credentials.clone();
    let authentication = match key {
        ClientKey::Secret(secret) => ClientAuthentication::Secret(secret),
        ClientKey::PrivateKey(text) => ClientAuthentication::PrivateKey(PrivateKey::from_pem(&text, None)?),
    };
    let client = OAuthClient::new(client_id, authentication);
    let mut grant = UnattendedGrant::new(client, kind);
    grant.scopes = scopes;
    grant.issuer = Some(issuer);
    Ok(grant)
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::UrlEndpoint;

    use super::*;

    fn logins() -> Logins {
        let help: LoginHelp = Arc::new(|it| format!("log in to {it}"));
        Logins::new(LoginOptions::new(Arc::new(MemoryTokenStore::default()), "test", help))
    }

    #[test]
    fn connections_of_a_server_share_one_authorization() {
        let (logins, authorities) = (logins(), Authorities::default());
        let endpoint = |url: &str| Endpoint::Http(UrlEndpoint::new(url.parse().unwrap()));
        let of = |id: &str, url: &str| {
            logins.authorization(&ServerId::parse(id).unwrap(), &endpoint(url), &authorities)
        };
        let first = of("a", "https://example.com/mcp").unwrap();
        assert!(Arc::ptr_eq(&first, &of("a", "https://example.com/mcp").unwrap()));
        assert!(!Arc::ptr_eq(&first, &of("a", "https://example.com/other").unwrap()));
        assert!(!Arc::ptr_eq(&first, &of("b", "https://example.com/mcp").unwrap()));
        assert!(of("a", "http://example.com/mcp").is_none(), "no token in the clear");
        assert!(of("a", "http://127.0.0.1:1/mcp").is_some());
    }
}
