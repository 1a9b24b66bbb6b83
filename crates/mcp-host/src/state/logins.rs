//! How a host logs in to servers that want it: one authorization for each server, shared by all its connections.
//!
//! Who has the user agree is the embedding program's: a host without somebody to ask uses the logins there are, and says
//! what to do where there is none.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mcp_model::{Endpoint, ServerId};
use mcp_oauth::{OAuth, OAuthOptions, RegisteredClient, Revocation, TokenStore, UserAgent};
use mcp_transport::{Authorities, Authorization, Unauthorized};
use url::Url;

/// What a host needs to log in.
#[derive(Clone)]
pub struct LoginOptions {
    /// Where grants are kept.
    pub store: Arc<dyn TokenStore>,
    /// Who asks the user to agree; `None` where nobody can be asked.
    pub user: Option<Arc<dyn UserAgent>>,
    /// What we are called where we register.
    pub client_name: String,
    /// Where a document of ours describes us: an https URL with a path.
    pub client_metadata: Option<Url>,
    /// A client that was registered by hand, for every server.
    pub client: Option<RegisteredClient>,
    /// What to do about a server that nobody has logged in to: `` run `mcp-host login weather` ``.
    pub hint: LoginHint,
}

/// Says what to do about a server that nobody has logged in to.
pub type LoginHint = Arc<dyn Fn(&ServerId) -> String + Send + Sync>;

/// The logins of a host. Clones are the same.
#[derive(Clone)]
pub struct Logins(Arc<Inner>);

struct Inner {
    options: LoginOptions,
    /// Those that some connection holds.
    made: Mutex<HashMap<(ServerId, Url), Weak<OAuth>>>,
}

impl Logins {
    /// Does nothing yet.
    pub fn new(options: LoginOptions) -> Logins {
        Logins(Arc::new(Inner { options, made: Mutex::default() }))
    }

    /// The authorization for a server, the same for all its connections. `None` where it is not reached over HTTP, or in
    /// a way in which no token is sent: over plain HTTP tokens go to this machine only. `None` as well where its entry has
    /// an `Authorization` header: that is its user's word on it.
    pub fn authorization(
        &self,
        server: &ServerId,
        endpoint: &Endpoint,
        authorities: &Authorities,
    ) -> Option<Arc<dyn Authorization>> {
        self.of(server, endpoint, authorities).map(|it| it as Arc<dyn Authorization>)
    }

    /// Ends the login to a server where it was given, which keeps its copy: [`TokenStore::remove`] forgets that. Says in
    /// words why it could not be done.
    pub async fn revoke(
        &self,
        server: &ServerId,
        endpoint: &Endpoint,
        authorities: &Authorities,
    ) -> Result<Revocation, Unauthorized> {
        match self.of(server, endpoint, authorities) {
            Some(login) => login.revoke().await,
            None => Ok(Revocation::NoGrant),
        }
    }

    fn of(&self, server: &ServerId, endpoint: &Endpoint, authorities: &Authorities) -> Option<Arc<OAuth>> {
        let url = match endpoint {
            Endpoint::Http(it) | Endpoint::Sse(it) => {
                if it.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
                    return None;
                }
                &it.url
            }
            Endpoint::Stdio(_) | Endpoint::WebSocket(_) => return None,
        };
        let key = (server.clone(), url.clone());
        // Every change under the lock is complete before anything can panic.
        let mut made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(&key).and_then(Weak::upgrade) {
            return Some(known);
        }
        let LoginOptions { store, user, client_name, client_metadata, client, hint } = self.0.options.clone();
        let options = OAuthOptions {
            store,
            user_agent: user,
            client_name,
            client_metadata,
            client,
            authorities: authorities.clone(),
            login_hint: hint(server),
        };
        match OAuth::new(url, options) {
            Ok(new) => {
                let new = Arc::new(new);
                made.retain(|_, it| it.strong_count() > 0);
                made.insert(key, Arc::downgrade(&new));
                Some(new)
            }
            Err(error) => {
                tracing::debug!(server = %server, "no logins: {error}");
                None
            }
        }
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use mcp_model::UrlEndpoint;
    use mcp_oauth::MemoryTokenStore;

    use super::*;

    fn logins() -> Logins {
        Logins::new(LoginOptions {
            store: Arc::new(MemoryTokenStore::default()),
            user: None,
            client_name: "test".to_owned(),
            client_metadata: None,
            client: None,
            hint: Arc::new(|it| format!("log in to {it}")),
        })
    }

    #[test]
    fn all_connections_to_a_server_share_one() {
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
