//! OAuth for MCP servers over HTTP: metadata discovery, client registration, login, token refresh and scope step-up.
//!
//! The protocol is rmcp's `auth` module, used in `flow` only. This crate adds what that module leaves to its user: one
//! task at a time changes a token while others wait; a grant is used for its resource and issuer only; a login
//! reaches public addresses over https only, and a private network or this machine only if the server is
//! there; and nothing prints a secret.
//!
//! Grants without a user (`unattended`) are client credentials, assertions, token exchange and enterprise-managed
//! authorization. Tokens are bound to a key (`proof`, DPoP) if the server and its authorization server support that.
//!
//! HTTP requests of a login use reqwest, because rmcp's `auth` module requires its types.
//!
//! This program is the example `login` of this crate:
//!
#![doc = concat!("```no_run\n", include_str!("../examples/login.rs"), "```")]
#![forbid(unsafe_code)]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod client;
mod flow;
mod grant;
mod http_client;
mod jwt;
mod options;
mod private_key;
mod proof;
mod revoke;
mod store;
mod unattended;
mod user_agent;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_host_model::Secret;
use tokio::sync::{Mutex, MutexGuard};

use flow::{Flow, FlowError, LoginRequest};
use http_client::HttpClient;
use jwt::now;
use mcp_host_model::internal::is_loopback;
use mcp_host_transport::{
    Authorization, AuthorizedRequest, Challenge, ChallengeAction, ConnectError, Credentials, Unauthorized,
};
use proof::ProvenRequest;

/// For implementations of [`UserAgent`].
#[doc(no_inline)]
pub use async_trait::async_trait;
/// For [`Grant::to_json`].
#[doc(no_inline)]
pub use serde_json;
/// For [`LoopbackRedirect::with_manual_input`].
#[doc(no_inline)]
pub use tokio;
/// For [`Grant`] and [`OAuth::new`].
#[doc(no_inline)]
pub use url::Url;

pub use client::{ClientAuthentication, OAuthClient};
pub use grant::{Grant, RegisteredClient};
pub use options::OAuthOptions;
pub use private_key::{InvalidPrivateKey, PrivateKey};
pub use proof::ProofKey;
pub use revoke::RevocationOutcome;
pub use store::{MemoryTokenStore, RefreshLock, TokenStore, TokenStoreError};
pub use unattended::{IdentityProvider, TokenSource, UnattendedGrant, UnattendedGrantKind};
pub use user_agent::loopback_redirect::{InvalidRedirect, LoopbackRedirect};
pub use user_agent::private_page::StartPageLinks;
pub use user_agent::{Login, UserAgent};

/// How long another process may need to save a refreshed token.
const SAVE_GRACE: Duration = Duration::from_millis(300);

/// How long to wait for another process that refreshes the same login.
const MAX_REFRESH_WAIT: Duration = Duration::from_secs(45);

/// How often the lock is tried.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The authorization of one server: an [`Authorization`] for [`DialOptions`](mcp_host_transport::DialOptions). All
/// connections to the server share it, so that a token is refreshed once.
pub struct OAuth {
    flow: Flow,
    store: Arc<dyn TokenStore>,
    user_agent: Option<Arc<dyn UserAgent>>,
    login_hint: String,
    /// The grant without a user, with the HTTP client for its identity provider.
    unattended: Option<(UnattendedGrant, Option<HttpClient>)>,
    state: Mutex<AuthState>,
}

/// The current grant, and what is known about it.
#[derive(Default)]
struct AuthState {
    grant: Option<Grant>,
    /// Whether the store was read.
    is_loaded: bool,
    /// Whether the grant comes from a login, not from a refresh or the store.
    is_from_login: bool,
    /// Whether the user was asked for scopes that the stored login lacks.
    has_asked_for_scopes: bool,
    /// A refresh token that the authorization server refused. It is not sent again.
    refused_refresh_token: Option<Secret>,
    /// The token that was exchanged for the grant.
    subject_token: Option<Secret>,
    /// The last nonce that the server requested for proofs.
    nonce: Option<String>,
    /// The last failure, so that tasks that waited for it do not each try again.
    failure: Option<(Instant, Unauthorized)>,
}

impl OAuth {
    /// The authorization of the server at `resource`. Sends nothing yet.
    pub fn new(resource: &Url, options: OAuthOptions) -> Result<OAuth, ConnectError> {
        let OAuthOptions {
            store,
            user_agent,
            client_name,
            client_metadata,
            client,
            issuer,
            scopes,
            unattended,
            authorities,
            login_hint,
        } = options;
        if resource.scheme() != "https" && !is_loopback(resource) {
            let message = "tokens are only sent over https, except on this machine".to_owned();
            return Err(ConnectError::Invalid(message));
        }
        let mut resource = resource.clone();
        resource.set_fragment(None);
        let http_client = Arc::new(HttpClient::new(&resource, &authorities));
        let server = resource.clone();
        // The query selects how the server responds, may be secret, and is not part of the resource.
        resource.set_query(None);
        let unattended = match unattended {
            None => None,
            Some(grant) => {
                // The configuration names the provider, so that the server's network does not limit where it is.
                let provider = match &grant.kind {
                    UnattendedGrantKind::EnterpriseManaged { provider, .. } => {
                        Some(HttpClient::new(&provider.token_endpoint, &authorities))
                    }
                    _ => None,
                };
                Some((grant, provider))
            }
        };
        let issuer = issuer.or_else(|| unattended.as_ref().and_then(|(grant, _)| grant.issuer.clone()));
        let flow =
            Flow { server, resource, http_client, client_name, client_metadata, client, issuer, scopes };
        Ok(OAuth { flow, store, user_agent, login_hint, unattended, state: Mutex::default() })
    }

    /// Locks the state. Fails if another task has failed after `since`.
    async fn lock_state(&self, since: Instant) -> Result<MutexGuard<'_, AuthState>, Unauthorized> {
        let state = self.state.lock().await;
        match &state.failure {
            Some((at, why)) if *at > since => Err(why.clone()),
            Some(_) | None => Ok(state),
        }
    }

    /// Reads the stored grant, once.
    fn load_stored_grant(&self, state: &mut AuthState) -> Result<(), Unauthorized> {
        if !state.is_loaded && self.unattended.is_none() {
            state.grant = self.store.latest(&self.flow.server)?;
            state.is_loaded = true;
        }
        Ok(())
    }

    /// Refreshes the grant. Returns false if only a login can help.
    async fn refresh(&self, state: &mut AuthState) -> Result<bool, Unauthorized> {
        if self.unattended.is_some() {
            return Ok(false);
        }
        // Another process may have refreshed it or logged in; the old refresh token is invalid then.
        if self.adopt_newer_grant(state)? {
            return Ok(true);
        }
        let _lock = self.acquire_refresh_lock().await?;
        // Another process may have done so while this task waited.
        if self.adopt_newer_grant(state)? {
            return Ok(true);
        }
        loop {
            let is_usable =
                |it: &Grant| it.refresh_token.is_some() && it.refresh_token != state.refused_refresh_token;
            let Some(grant) = state.grant.clone().filter(is_usable) else { return Ok(false) };
            match self.flow.refresh(&grant, now()).await {
                Ok(grant) => {
                    self.save_grant(state, grant)?;
                    state.is_from_login = false;
                    return Ok(true);
                }
                Err(FlowError::InvalidGrant) => {
                    state.refused_refresh_token = grant.refresh_token;
                    // Another process may just have used the refresh token and be about to save the result.
                    tokio::time::sleep(SAVE_GRACE).await;
                    if self.adopt_newer_grant(state)? {
                        return Ok(true);
                    }
                }
                Err(error @ FlowError::Failed(_)) => return Err(error.into()),
            }
        }
    }

    /// Waits for the refresh lock. `None` if another process holds it too long; the authorization server then shows
    /// whether the token was used.
    async fn acquire_refresh_lock(&self) -> Result<Option<RefreshLock>, Unauthorized> {
        let until = tokio::time::Instant::now() + MAX_REFRESH_WAIT;
        loop {
            let lock = self.store.lock_refresh(&self.flow.server)?;
            if lock.is_some() || tokio::time::Instant::now() >= until {
                return Ok(lock);
            }
            tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
        }
    }

    /// Revokes the stored grant at the server that issued it; it stays in the store. A missing grant, or a server
    /// without revocation, is not an error. The error contains the reason.
    pub async fn revoke(&self) -> Result<RevocationOutcome, Unauthorized> {
        let mut state = self.state.lock().await;
        self.load_stored_grant(&mut state)?;
        match &state.grant {
            Some(grant) => self.flow.revoke(grant).await.map_err(Unauthorized::new),
            None => Ok(RevocationOutcome::NoGrant),
        }
    }

    /// Takes the stored grant if it is a different one. Returns whether its access token can be used; if not, its
    /// refresh token is newer than ours.
    fn adopt_newer_grant(&self, state: &mut AuthState) -> Result<bool, Unauthorized> {
        let stored = self.store.latest(&self.flow.server)?;
        let current = state.grant.as_ref().map(|it| &it.access_token);
        let Some(stored) = stored.filter(|it| Some(&it.access_token) != current) else { return Ok(false) };
        let is_usable = !stored.is_expiring(now());
        (state.grant, state.is_from_login) = (Some(stored), false);
        Ok(is_usable)
    }

    /// Runs a login with the user.
    async fn log_in(&self, state: &mut AuthState, request: LoginRequest<'_>) -> Result<(), Unauthorized> {
        if let Some((grant, provider)) = &self.unattended {
            let subject_token = self.subject_token()?;
            let obtained = self.flow.obtain_grant(grant, request, provider.as_ref(), now()).await;
            state.grant = Some(obtained.map_err(|error| self.flow.with_broader_resource(error))?);
            (state.is_from_login, state.subject_token) = (true, subject_token);
            return Ok(());
        }
        let Some(user) = &self.user_agent else {
            let why = match &state.grant {
                None => "the server requires a login".to_owned(),
                Some(_) if request.scopes.is_empty() => {
                    "the server requires a new login, because the old one has expired".to_owned()
                }
                Some(grant) => {
                    let lacking = self.lacking_scopes(grant);
                    format!("the server requires a login with more scopes ({})", join_scopes(&lacking))
                }
            };
            return Err(Unauthorized::new(format!("{why}: {}", self.login_hint)));
        };
        let earlier_grant =
            |issuer: &str| self.store.get(&self.flow.server, issuer).map_err(|it| it.to_string());
        let grant = self.flow.log_in(&**user, request, &earlier_grant, now()).await;
        self.save_grant(state, grant.map_err(|error| self.flow.with_broader_resource(error))?)?;
        state.is_from_login = true;
        Ok(())
    }

    /// Scopes that a login lacks: configured ones, and those that the server required.
    fn lacking_scopes(&self, grant: &Grant) -> Vec<String> {
        let needed = self.flow.scopes.iter().chain(&grant.missing_scopes);
        needed.filter(|it| !grant.scopes.contains(it)).cloned().collect()
    }

    /// The token to exchange; `None` if the grant is another one.
    fn subject_token(&self) -> Result<Option<Secret>, Unauthorized> {
        match &self.unattended {
            Some((UnattendedGrant { kind: UnattendedGrantKind::TokenExchange(subject), .. }, _)) => {
                Ok(Some(subject.read()?))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Stores a grant and uses it from now on.
    fn save_grant(&self, state: &mut AuthState, grant: Grant) -> Result<(), Unauthorized> {
        self.store.save(&grant)?;
        state.grant = Some(grant);
        Ok(())
    }

    /// Obtains a token that may satisfy a challenge.
    async fn handle_challenge(
        &self,
        state: &mut AuthState,
        challenge: &Challenge,
    ) -> Result<ChallengeAction, Unauthorized> {
        self.load_stored_grant(state)?;
        let current = state.grant.as_ref().map(|it| &it.access_token);
        let is_expiring = state.grant.as_ref().is_some_and(|it| it.is_expiring(now()));
        if current != challenge.token_used.as_ref() && current.is_some() && !is_expiring {
            // Another task has already changed the token.
            return Ok(ChallengeAction::Retry);
        }
        let find_challenge =
            |scheme| challenge.www_authenticate.iter().find(|it| flow::is_challenge(it, scheme));
        let proof_challenge = find_challenge("DPoP");
        if let (Some(header), Some(nonce)) = (proof_challenge, &challenge.proof_nonce)
            && header.contains("use_dpop_nonce")
            && challenge.token_used.is_some()
        {
            state.nonce = Some(nonce.clone());
            return Ok(ChallengeAction::Retry);
        }
        let accepts_proof = proof_challenge.is_some();
        let challenge_header = find_challenge("Bearer").or(proof_challenge).map(String::as_str);
        if challenge.status == 403 {
            return self.step_up(state, challenge_header, accepts_proof).await;
        }
        if challenge.token_used.is_some() && state.is_from_login && challenge.earlier_challenges > 0 {
            let why = "the server rejects the token that its authorization server has just issued";
            return Err(Unauthorized::new(why.to_owned()));
        }
        if self.refresh(state).await? {
            return Ok(ChallengeAction::Retry);
        }
        let request = LoginRequest { challenge: challenge_header, accepts_proof, ..LoginRequest::default() };
        self.log_in(state, request).await?;
        Ok(ChallengeAction::Retry)
    }

    /// Requests the missing scopes in addition to the present ones.
    async fn step_up(
        &self,
        state: &mut AuthState,
        challenge_header: Option<&str>,
        accepts_proof: bool,
    ) -> Result<ChallengeAction, Unauthorized> {
        let Some(missing) = challenge_header.and_then(|it| flow::missing_scopes(it, &self.flow.resource))
        else {
            return Ok(ChallengeAction::ReturnResponse);
        };
        let granted = state.grant.as_ref().map(|it| it.scopes.clone()).unwrap_or_default();
        let is_granted = |it: &String| granted.contains(it);
        if missing.iter().all(is_granted) {
            return Err(Unauthorized::new(format!(
                "the server requires scopes that were requested but not granted: {}",
                join_scopes(&missing)
            )));
        }
        // The next login requests them, also one of another process.
        if let Some(grant) = state.grant.as_mut().filter(|it| it.missing_scopes != missing)
            && self.user_agent.is_none()
            && self.unattended.is_none()
        {
            grant.missing_scopes.clone_from(&missing);
            self.store.save(grant)?;
        }
        let scopes = [granted, missing].concat();
        let request = LoginRequest { challenge: challenge_header, scopes, accepts_proof };
        self.log_in(state, request).await?;
        Ok(ChallengeAction::Retry)
    }
}

#[async_trait]
impl Authorization for OAuth {
    async fn credentials(&self, request: AuthorizedRequest<'_>) -> Result<Option<Credentials>, Unauthorized> {
        let mut state = self.lock_state(Instant::now()).await?;
        self.load_stored_grant(&mut state)?;
        // The source of the subject token may provide another one by now, with other scopes, or none.
        let has_subject_changed = self.subject_token()? != state.subject_token;
        let is_expiring = state.grant.as_ref().is_some_and(|it| it.is_expiring(now()));
        let accepts_proof = state.grant.as_ref().is_some_and(|it| it.proof_key.is_some());
        if has_subject_changed && state.grant.is_some() {
            self.log_in(&mut state, LoginRequest { accepts_proof, ..LoginRequest::default() }).await?;
        } else if is_expiring && self.unattended.is_some() {
            let scopes = state.grant.as_ref().map(|it| it.scopes.clone()).unwrap_or_default();
            self.log_in(&mut state, LoginRequest { scopes, accepts_proof, ..LoginRequest::default() })
                .await?;
        } else if let (Some(_), Some(grant)) = (&self.user_agent, &state.grant)
            && !state.has_asked_for_scopes
            && let lacking = self.lacking_scopes(grant)
            && !lacking.is_empty()
        {
            let scopes = [grant.scopes.clone(), lacking].concat();
            // A user that declines is not asked again for each request.
            state.has_asked_for_scopes = true;
            self.log_in(&mut state, LoginRequest { scopes, accepts_proof, ..LoginRequest::default() })
                .await?;
        } else if is_expiring && !self.refresh(&mut state).await? {
            // The server's challenge decides how to continue.
            return Ok(None);
        }
        let Some(Grant { access_token: token, proof_key, .. }) = &state.grant else { return Ok(None) };
        let Some(key) = proof_key else { return Ok(Some(Credentials::bearer(token.clone()))) };
        let AuthorizedRequest { method, url, body, .. } = request;
        let request = ProvenRequest { method, url, token: Some(token), body, nonce: state.nonce.as_deref() };
        let no_randomness = || Unauthorized::new("the system provides no randomness");
        let proof = key.prove(&request, now()).ok_or_else(no_randomness)?;
        Ok(Some(Credentials::bound(token.clone(), proof)))
    }

    fn is_in_progress(&self) -> bool {
        self.state.try_lock().is_err()
    }

    async fn on_challenge(&self, challenge: Challenge) -> Result<ChallengeAction, Unauthorized> {
        let mut state = self.lock_state(challenge.sent_at).await?;
        let result = self.handle_challenge(&mut state, &challenge).await;
        state.failure = result.as_ref().err().map(|why| (Instant::now(), why.clone()));
        result
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").finish_non_exhaustive()
    }
}

/// The text of a server's scopes in a message, at most 16 of at most 80 characters.
fn join_scopes(scopes: &[String]) -> String {
    let short = scopes.iter().take(16).map(|it| it.chars().take(80).collect::<String>());
    short.collect::<Vec<_>>().join(" ")
}

impl From<FlowError> for Unauthorized {
    fn from(error: FlowError) -> Unauthorized {
        match error {
            FlowError::Failed(why) => Unauthorized::new(why),
            FlowError::InvalidGrant => Unauthorized::new("the authorization server has revoked the login"),
        }
    }
}

impl From<TokenStoreError> for Unauthorized {
    fn from(error: TokenStoreError) -> Unauthorized {
        Unauthorized::new(error.message)
    }
}

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
