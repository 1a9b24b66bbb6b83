//! OAuth for the wires over HTTP: a server's metadata, a client known to its authorization server, a user who agrees, and
//! tokens that are kept, renewed and stepped up.
//!
//! What the protocol says is rmcp's `auth` module, used in `flow` alone. Ours is what it leaves to its user: that one
//! task at a time does something about a token while the others wait for it, that a grant is bound to its resource and
//! its issuer, where requests may go, and that nothing of it is ever printed.
//!
//! Absent on purpose: grants without a user (client credentials, assertions), and proofs of possession.

mod flow;
mod grant;
mod http_client;
mod loopback_redirect;
mod revoke;
mod store;
mod url_policy;
mod user_agent;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use mcp_model::Secret;
use tokio::sync::{Mutex, MutexGuard};
use url::Url;

use flow::{Flow, Trouble, Wish};
use http_client::Fetch;
use mcp_transport::Authorities;
use mcp_transport::ConnectError;
use mcp_transport::internal::is_loopback;
use mcp_transport::{Authorization, Challenge, Remedy, Unauthorized};

pub use grant::{Grant, RegisteredClient};
pub use loopback_redirect::LoopbackRedirect;
pub use revoke::Revocation;
pub use store::{MemoryTokenStore, RefreshLock, TokenStore, TokenStoreError};
pub use user_agent::{Login, UserAgent};

/// How long another process may need to write down a token.
const BESIDE: Duration = Duration::from_millis(300);

/// How long another process is waited for that renews the same login: longer than any that is well takes.
const LONGEST_TURN: Duration = Duration::from_secs(45);

/// How often it is looked whether that one is done.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How a client is to get its tokens.
#[derive(Clone)]
pub struct OAuthOptions {
    /// Where grants are kept.
    pub store: Arc<dyn TokenStore>,
    /// Who asks the user to agree. Without, a server that nobody has logged in to cannot be used.
    pub user_agent: Option<Arc<dyn UserAgent>>,
    /// What we are called where we register.
    pub client_name: String,
    /// Where a document of ours describes us (an https URL with a path); used where the authorization server takes it.
    pub client_metadata: Option<Url>,
    /// A client that was registered by hand. Stands before any other.
    pub client: Option<RegisteredClient>,
    /// Certificate authorities that are trusted besides the system's.
    pub authorities: Authorities,
    /// What to do where a user is wanted and there is none: `` run `mcp-host login weather` ``.
    pub login_hint: String,
}

impl fmt::Debug for OAuthOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthOptions").field("client_name", &self.client_name).finish_non_exhaustive()
    }
}

/// The authorization of one server: an [`Authorization`] for [`DialOptions`](mcp_transport::DialOptions). One for all
/// connections to it, so that a token is renewed once.
pub struct OAuth {
    flow: Flow,
    store: Arc<dyn TokenStore>,
    user: Option<Arc<dyn UserAgent>>,
    hint: String,
    state: Mutex<State>,
}

/// What is known now.
#[derive(Default)]
struct State {
    grant: Option<Grant>,
    /// The store was asked.
    looked: bool,
    /// The grant is new from the user, not renewed and not from the store.
    fresh: bool,
    /// The last time that it failed, so that those who waited for it need not each try again.
    failure: Option<(Instant, Unauthorized)>,
}

impl OAuth {
    /// The authorization of the server at `resource`. Does nothing yet.
    pub fn new(resource: &Url, options: OAuthOptions) -> Result<OAuth, ConnectError> {
        let OAuthOptions {
            store,
            user_agent: user,
            client_name,
            client_metadata,
            client,
            authorities,
            login_hint: hint,
        } = options;
        if resource.scheme() != "https" && !is_loopback(resource) {
            let message = "tokens are sent over https only, but on this machine".to_owned();
            return Err(ConnectError::Invalid(message));
        }
        let mut resource = resource.clone();
        resource.set_fragment(None);
        let fetch = Arc::new(Fetch::new(&resource, &authorities).map_err(ConnectError::Invalid)?);
        let server = resource.clone();
        // What stands behind the `?` is how we are to be served, maybe a secret, and not who is asked.
        resource.set_query(None);
        let flow = Flow { server, resource, fetch, client_name, client_metadata, client };
        Ok(OAuth { flow, store, user, hint, state: Mutex::default() })
    }

    /// Waits for its turn. An error where somebody else has failed `since` then.
    async fn turn(&self, since: Instant) -> Result<MutexGuard<'_, State>, Unauthorized> {
        let state = self.state.lock().await;
        match &state.failure {
            Some((at, why)) if *at > since => Err(why.clone()),
            Some(_) | None => Ok(state),
        }
    }

    /// The grant that is kept, read where that has not been done.
    fn look(&self, state: &mut State) -> Result<(), Unauthorized> {
        if !state.looked {
            state.grant = self.store.latest(&self.flow.server).map_err(|it| Unauthorized(it.to_string()))?;
            state.looked = true;
        }
        Ok(())
    }

    /// Exchanges the grant for a newer one where that can be done; false where only the user can help.
    async fn renew(&self, state: &mut State) -> Result<bool, Unauthorized> {
        // Another process may have done it, or logged in, and the old one's renewal token is of no use then.
        if self.take_newer(state)? {
            return Ok(true);
        }
        let _turn = self.own_turn().await?;
        // Or it has done it while this one waited.
        if self.take_newer(state)? {
            return Ok(true);
        }
        let Some(old) = state.grant.clone().filter(|it| it.refresh_token.is_some()) else { return Ok(false) };
        match self.flow.renew(&old, now()).await {
            Ok(grant) => {
                self.keep(state, grant)?;
                state.fresh = false;
                Ok(true)
            }
            Err(Trouble::Gone) => {
                // Another process may have used it up a moment ago, and is about to write down what it got.
                tokio::time::sleep(BESIDE).await;
                self.take_newer(state)
            }
            Err(Trouble::Failed(why)) => Err(Unauthorized(why)),
        }
    }

    /// Waits until no other process renews this login. `None` where one hangs: what it does then is not waited for, and the
    /// authorization server says whether the token was used up.
    async fn own_turn(&self) -> Result<Option<RefreshLock>, Unauthorized> {
        let until = tokio::time::Instant::now() + LONGEST_TURN;
        loop {
            let turn =
                self.store.lock_refresh(&self.flow.server).map_err(|it| Unauthorized(it.to_string()))?;
            if turn.is_some() || tokio::time::Instant::now() >= until {
                return Ok(turn);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Ends the grant that is kept, at the server that gave it; it stays in the store. What it comes to when there is none,
    /// or the authorization server takes none back, is no error. Says in words why it failed.
    pub async fn revoke(&self) -> Result<Revocation, Unauthorized> {
        let mut state = self.state.lock().await;
        self.look(&mut state)?;
        match &state.grant {
            Some(grant) => self.flow.revoke(grant).await.map_err(Unauthorized),
            None => Ok(Revocation::NoGrant),
        }
    }

    /// Takes the grant that is kept, where that is another one.
    fn take_newer(&self, state: &mut State) -> Result<bool, Unauthorized> {
        let kept = self.store.latest(&self.flow.server).map_err(|it| Unauthorized(it.to_string()))?;
        let used = state.grant.as_ref().map(|it| &it.access_token);
        let Some(kept) = kept.filter(|it| Some(&it.access_token) != used && !it.is_expiring(now())) else {
            return Ok(false);
        };
        (state.grant, state.fresh) = (Some(kept), false);
        Ok(true)
    }

    /// Has the user agree.
    async fn log_in(&self, state: &mut State, wish: Wish<'_>) -> Result<(), Unauthorized> {
        let Some(user) = &self.user else {
            let why = match (&state.grant, wish.more.is_empty()) {
                (None, _) => "the server wants a login, and nobody has logged in to it",
                (Some(_), true) => "the server wants a new login, for the old one is over",
                (Some(_), false) => "the server wants a login for more than the one there is",
            };
            return Err(Unauthorized(format!("{why}: {}", self.hint)));
        };
        let of = |issuer: &str| self.store.get(&self.flow.server, issuer).map_err(|it| it.to_string());
        let done = self.flow.log_in(&**user, wish, &of, now()).await;
        let grant = done.map_err(|trouble| match trouble {
            Trouble::Failed(why) => Unauthorized(why),
            Trouble::Gone => Unauthorized("the authorization server takes the login back".to_owned()),
        })?;
        self.keep(state, grant)?;
        state.fresh = true;
        Ok(())
    }

    fn keep(&self, state: &mut State, grant: Grant) -> Result<(), Unauthorized> {
        self.store.save(&grant).map_err(|it| Unauthorized(it.to_string()))?;
        state.grant = Some(grant);
        Ok(())
    }

    async fn remedy(&self, state: &mut State, challenge: &Challenge) -> Result<Remedy, Unauthorized> {
        self.look(state)?;
        let current = state.grant.as_ref().map(|it| &it.access_token);
        if current != challenge.used.as_ref() && current.is_some() {
            // Somebody else has done something about it.
            return Ok(Remedy::Again);
        }
        let header = challenge.schemes.iter().find(|it| flow::is_bearer(it)).map(String::as_str);
        if challenge.status == 403 {
            return self.step_up(state, header).await;
        }
        if challenge.used.is_some() && state.fresh && challenge.before > 0 {
            let why = "the server does not take the token that its authorization server has just given";
            return Err(Unauthorized(why.to_owned()));
        }
        if self.renew(state).await? {
            return Ok(Remedy::Again);
        }
        self.log_in(state, Wish { header, more: Vec::new() }).await?;
        Ok(Remedy::Again)
    }

    /// Asks for the scopes that are missing, besides those there are.
    async fn step_up(&self, state: &mut State, header: Option<&str>) -> Result<Remedy, Unauthorized> {
        let Some(wanted) = header.and_then(|it| flow::missing_scopes(it, &self.flow.resource)) else {
            return Ok(Remedy::None);
        };
        let had = state.grant.as_ref().map(|it| it.scopes.clone()).unwrap_or_default();
        let asked = |it: &String| had.contains(it);
        if wanted.iter().all(asked) {
            let scopes: Vec<String> =
                wanted.iter().take(16).map(|it| it.chars().take(80).collect()).collect();
            return Err(Unauthorized(format!(
                "the server wants authorization for more than the user was given, though it was asked for: {}",
                scopes.join(" ")
            )));
        }
        let mut more = had;
        more.extend(wanted);
        self.log_in(state, Wish { header, more }).await?;
        Ok(Remedy::Again)
    }
}

#[async_trait]
impl Authorization for OAuth {
    async fn token(&self) -> Result<Option<Secret>, Unauthorized> {
        let mut state = self.turn(Instant::now()).await?;
        self.look(&mut state)?;
        if state.grant.as_ref().is_some_and(|it| it.is_expiring(now())) && !self.renew(&mut state).await? {
            // The server says what it wants instead.
            return Ok(None);
        }
        Ok(state.grant.as_ref().map(|it| it.access_token.clone()))
    }

    fn is_under_way(&self) -> bool {
        self.state.try_lock().is_err()
    }

    async fn challenged(&self, challenge: Challenge) -> Result<Remedy, Unauthorized> {
        let mut state = self.turn(challenge.sent).await?;
        let done = self.remedy(&mut state, &challenge).await;
        state.failure = done.as_ref().err().map(|why| (Instant::now(), why.clone()));
        done
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").finish_non_exhaustive()
    }
}

/// Seconds since the epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}
