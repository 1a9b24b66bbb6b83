//! The protocol of a login and of a renewal: rmcp's, with our requests, our store and our rules around it.
//!
//! A grant is bound to the issuer that gave it. Each login looks anew who the server's issuer is; a client that another
//! issuer knows, and its tokens, are not shown to this one.

use std::sync::Arc;

use mcp_model::Secret;
use oauth2::TokenResponse;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig, OAuthTokenResponse, StoredCredentials, WWWAuthenticateParams,
};
use serde_json::json;
use url::Url;

use crate::grant::{Grant, RegisteredClient};
use crate::http_client::Fetch;
use crate::url_policy::judge;
use crate::user_agent::UserAgent;
use mcp_transport::internal::Redactor;

/// The longest part of a stranger's words that a message repeats.
const SNIPPET: usize = 300;

/// The most scopes that are looked at, in a challenge or in metadata.
const MOST_SCOPES: usize = 64;

/// What stays the same from login to login.
pub(crate) struct Flow {
    /// The URL that grants are kept under.
    pub(crate) server: Url,
    /// The server as it is named to others.
    pub(crate) resource: Url,
    pub(crate) fetch: Arc<Fetch>,
    pub(crate) client_name: String,
    pub(crate) client_metadata: Option<Url>,
    pub(crate) client: Option<RegisteredClient>,
}

/// What a login is for.
pub(crate) struct Wish<'a> {
    /// The challenge that asks for it.
    pub(crate) header: Option<&'a str>,
    /// All the scopes to ask for; where empty, what challenge and metadata name.
    pub(crate) more: Vec<String>,
}

/// Why there is no grant.
pub(crate) enum Trouble {
    /// The old grant is worth nothing any more; a new login may help.
    Gone,
    /// In words.
    Failed(String),
}

/// A server's authorization server, found.
pub(crate) struct Found {
    manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) issuer: String,
}

impl Flow {
    /// Has the user agree. `of` gives what is known from earlier logins with an issuer.
    pub(crate) async fn log_in(
        &self,
        user: &dyn UserAgent,
        wish: Wish<'_>,
        of: &(dyn Fn(&str) -> Result<Option<Grant>, String> + Sync),
        now: u64,
    ) -> Result<Grant, Trouble> {
        let mut found = self.discover(wish.header).await?;
        require_pkce(&found.metadata)?;
        let scopes: Vec<String> = match wish.more.is_empty() {
            true => found.manager.select_initial_scopes(&[]).await,
            false => wish.more,
        };
        let scopes: Vec<String> = scopes.into_iter().take(MOST_SCOPES).collect();
        let visit = user.start_login().await.map_err(Trouble::Failed)?;
        let known = of(&found.issuer).map_err(Trouble::Failed)?;
        let client = self.client(&mut found, known, visit.redirect_uri(), &scopes).await?;
        let secrets = Redactor::new(client.secret.iter());
        let trouble = |error: AuthError| Trouble::Failed(words(&error, &secrets));

        found.manager.configure_client(config(&client, visit.redirect_uri(), &scopes)).map_err(trouble)?;
        let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let page = found.manager.get_authorization_url(&asked).await.map_err(trouble)?;
        let page: Url = page.parse().map_err(|_| unusable("the address of its login page cannot be read"))?;
        judge(&self.resource, &page)
            .map_err(|it| unusable(&format!("its login page may not be opened: {it}")))?;

        let back = visit.authorize(page).await.map_err(Trouble::Failed)?;
        refused(&back, &secrets)?;
        let AuthorizationCallback { code, csrf_token, issuer, .. } =
            AuthorizationCallback::from_redirect_url(back.as_str()).map_err(trouble)?;
        let exchange =
            found.manager.exchange_code_for_token_with_issuer(&code, &csrf_token, issuer.as_deref());
        let tokens = exchange.await.map_err(trouble)?;
        self.grant(found.issuer, client, &tokens, scopes, now)
    }

    /// Exchanges a grant's refresh token. The issuer has to be the same as it was.
    pub(crate) async fn renew(&self, old: &Grant, now: u64) -> Result<Grant, Trouble> {
        let mut found = self.discover(None).await?;
        if found.issuer != old.issuer {
            return Err(Trouble::Gone);
        }
        let kept = [old.client.secret.as_ref(), old.refresh_token.as_ref(), Some(&old.access_token)];
        let secrets = crate::http_client::secret_values(kept);
        let secrets = Redactor::new(secrets.iter());
        let trouble = |error: AuthError| match error {
            AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired => Trouble::Gone,
            error => Trouble::Failed(words(&error, &secrets)),
        };
        let store = InMemoryCredentialStore::new();
        store.save(stored(old)).await.map_err(trouble)?;
        found.manager.set_credential_store(store);
        // A renewal redirects nobody.
        let redirect = old.client.redirect_uri.as_ref().unwrap_or(&self.resource);
        found.manager.configure_client(config(&old.client, redirect, &[])).map_err(trouble)?;
        let tokens = found.manager.refresh_token().await.map_err(trouble)?;
        self.grant(found.issuer, old.client.clone(), &tokens, old.scopes.clone(), now)
    }

    /// Who authorizes requests to the server, by what it says itself.
    pub(crate) async fn discover(&self, header: Option<&str>) -> Result<Found, Trouble> {
        let nothing = Redactor::new(std::iter::empty());
        let trouble = |error: AuthError| Trouble::Failed(words(&error, &nothing));
        let fetch = Arc::clone(&self.fetch) as _;
        let manager = AuthorizationManager::new_with_oauth_http_client(self.resource.clone(), fetch);
        let mut manager = manager.await.map_err(trouble)?;
        let resolution = manager.resolve_metadata_from_challenge(header).await.map_err(trouble)?;
        let metadata = resolution.metadata;
        // A server of 2025-03-26 that publishes nothing is its own issuer.
        let own = || self.resource.origin().ascii_serialization();
        let issuer = metadata.issuer.clone().unwrap_or_else(own);
        manager.set_metadata(metadata.clone());
        Ok(Found { manager, metadata, issuer })
    }

    /// Who we are to an issuer: registered by hand, registered before, described by our document, or registered now.
    async fn client(
        &self,
        found: &mut Found,
        known: Option<Grant>,
        redirect: &Url,
        scopes: &[String],
    ) -> Result<RegisteredClient, Trouble> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let takes = found.metadata.additional_fields.get("client_id_metadata_document_supported");
        if let Some(document) = &self.client_metadata
            && takes.and_then(serde_json::Value::as_bool) == Some(true)
        {
            return Ok(RegisteredClient { id: document.to_string(), secret: None, redirect_uri: None });
        }
        // One that was registered by hand has no redirect of ours.
        let same = |it: &RegisteredClient| it.redirect_uri.as_ref().is_none_or(|it| it == redirect);
        if let Some(client) = known.map(|it| it.client).filter(same) {
            return Ok(client);
        }
        if found.metadata.registration_endpoint.is_none() {
            let why = format!(
                "the authorization server {} lets nobody register by himself: register a client there, and give its id",
                short(&found.issuer)
            );
            return Err(Trouble::Failed(why));
        }
        let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let nothing = Redactor::new(std::iter::empty());
        let registered = found.manager.register_client(&self.client_name, redirect.as_str(), &asked).await;
        let config = registered.map_err(|it| Trouble::Failed(words(&it, &nothing)))?;
        let secret = config.client_secret.map(Secret::new);
        Ok(RegisteredClient { id: config.client_id, secret, redirect_uri: Some(redirect.clone()) })
    }

    fn grant(
        &self,
        issuer: String,
        client: RegisteredClient,
        tokens: &OAuthTokenResponse,
        asked: Vec<String>,
        now: u64,
    ) -> Result<Grant, Trouble> {
        if !tokens.token_type().as_ref().eq_ignore_ascii_case("bearer") {
            return Err(unusable("it gives tokens of a type that only proofs go with"));
        }
        let mut scopes = asked;
        for scope in tokens.scopes().into_iter().flatten().take(MOST_SCOPES) {
            if !scopes.iter().any(|it| it == scope.as_str()) {
                scopes.push(scope.to_string());
            }
        }
        Ok(Grant {
            resource: self.server.clone(),
            issuer,
            client,
            access_token: Secret::new(tokens.access_token().secret()),
            refresh_token: tokens.refresh_token().map(|it| Secret::new(it.secret())),
            expires_at: tokens.expires_in().map(|it| now.saturating_add(it.as_secs())),
            scopes,
        })
    }
}

/// Is this challenge one for bearer tokens?
pub(crate) fn is_bearer(header: &str) -> bool {
    let name = header.split_whitespace().next().unwrap_or_default();
    name.eq_ignore_ascii_case("bearer")
}

/// The scopes that a challenge says are missing; `None` where it says something else.
pub(crate) fn missing_scopes(header: &str, resource: &Url) -> Option<Vec<String>> {
    let said = WWWAuthenticateParams::parse(header, resource);
    let scopes = said.scope.clone().filter(|_| said.is_insufficient_scope())?;
    let scopes: Vec<String> = scopes.split_whitespace().take(MOST_SCOPES).map(str::to_owned).collect();
    Some(scopes).filter(|it| !it.is_empty())
}

/// Without a proof that the answer is for whoever asked, a code could be stolen on its way. Who publishes metadata says
/// that he has it, or has it not.
fn require_pkce(metadata: &AuthorizationMetadata) -> Result<(), Trouble> {
    let methods = metadata.code_challenge_methods_supported.as_deref();
    match (methods, &metadata.issuer) {
        (Some(methods), _) if methods.iter().any(|it| it == "S256") => Ok(()),
        (None, None) => Ok(()),
        (Some(_), _) | (None, Some(_)) => Err(unusable("it does not say that it supports PKCE with S256")),
    }
}

/// The user, or the authorization server, said no.
fn refused(back: &Url, secrets: &Redactor) -> Result<(), Trouble> {
    let value = |key: &str| back.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value);
    let Some(error) = value("error") else { return Ok(()) };
    let more = value("error_description").map(|it| format!(": {it}")).unwrap_or_default();
    let said = secrets.clean(&format!("{error}{more}"), SNIPPET);
    Err(Trouble::Failed(format!("the login was refused: {said}")))
}

fn config(client: &RegisteredClient, redirect: &Url, scopes: &[String]) -> OAuthClientConfig {
    let res = OAuthClientConfig::new(&client.id, redirect.as_str()).with_scopes(scopes.to_vec());
    match &client.secret {
        Some(secret) => res.with_client_secret(secret.expose()),
        None => res,
    }
}

/// A grant as rmcp keeps it.
fn stored(grant: &Grant) -> StoredCredentials {
    let refresh = grant.refresh_token.as_ref().map(Secret::expose);
    let tokens = json!({
        "access_token": grant.access_token.expose(),
        "token_type": "bearer",
        "refresh_token": refresh,
    });
    let tokens = serde_json::from_value(tokens).expect("it has what tokens need");
    StoredCredentials::new(grant.client.id.clone(), Some(tokens), grant.scopes.clone(), None)
        .with_issuer(Some(grant.issuer.clone()))
}

fn unusable(why: &str) -> Trouble {
    Trouble::Failed(format!("the server's authorization server cannot be used: {why}"))
}

/// What went wrong, with its causes: strangers' words, cut, on one line and without what we know to be secret.
fn words(error: &AuthError, secrets: &Redactor) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    for _ in 0..8 {
        let Some(cause) = next else { break };
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    format!("the login to the server failed: {}", secrets.clean(&text, SNIPPET))
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}
