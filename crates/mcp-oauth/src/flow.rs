//! Login and token refresh: rmcp's `auth` module with our HTTP client, store and rules.
//!
//! A grant belongs to the issuer that issued it. Each login discovers the server's issuer again; clients and tokens of
//! another issuer are never sent to it.

use std::sync::Arc;

use mcp_host_model::Secret;
use oauth2::TokenResponse;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataResolution, CredentialStore, InMemoryCredentialStore, OAuthClientConfig,
    OAuthTokenResponse, StoredCredentials, WWWAuthenticateParams,
};
use serde_json::json;
use url::Url;

use crate::grant::{Grant, RegisteredClient};
use crate::http_client::url_policy::check_url;
use crate::http_client::{HttpClient, TokenProof};
use crate::proof::{ALGORITHM, ProofKey};
use crate::user_agent::UserAgent;
use mcp_host_transport::internal::Redactor;

/// Maximum length of foreign text in a message.
pub(crate) const MAX_FOREIGN_TEXT_BYTES: usize = 300;

/// Where an issuer is configured, for messages.
const ISSUER_SETTINGS: &str = "`mcp-host login --issuer`, or `issuer` in the `auth` of its entry";

/// Maximum number of scopes read from a challenge or metadata.
pub(crate) const MAX_SCOPES: usize = 64;

/// The configuration and the HTTP client of all logins to one server.
pub(crate) struct Flow {
    /// The URL under which grants are stored.
    pub(crate) server: Url,
    /// The resource identifier that is sent to authorization servers.
    pub(crate) resource: Url,
    pub(crate) http_client: Arc<HttpClient>,
    pub(crate) client_name: String,
    pub(crate) client_metadata: Option<Url>,
    pub(crate) client: Option<RegisteredClient>,
    /// The only issuer that is used; unless set, the one that the server names.
    pub(crate) issuer: Option<String>,
    /// Scopes that every login of a user requests.
    pub(crate) scopes: Vec<String>,
}

/// The parameters of a login.
#[derive(Default)]
pub(crate) struct LoginRequest<'a> {
    /// The challenge that caused it.
    pub(crate) challenge: Option<&'a str>,
    /// All scopes to request; if empty, those of the challenge and metadata.
    pub(crate) scopes: Vec<String>,
    /// Whether the server accepts tokens that are bound to a key.
    pub(crate) accepts_proof: bool,
}

/// The scopes and the key with which a token was requested.
struct TokenRequest {
    scopes: Vec<String>,
    key: Option<ProofKey>,
}

/// Why a login or refresh failed.
pub(crate) enum FlowError {
    /// The grant is invalid; a new login may help.
    InvalidGrant,
    /// A failure with its message.
    Failed(String),
}

/// The authorization server of an MCP server.
pub(crate) struct DiscoveredServer {
    manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    /// The issuer at whose address the metadata was read. The metadata of a trusted issuer may name another one.
    pub(crate) issuer: String,
}

impl DiscoveredServer {
    /// The scopes that the challenge or the metadata name.
    pub(crate) async fn select_scopes(&self) -> Vec<String> {
        self.manager.select_initial_scopes(&[]).await
    }
}

impl Flow {
    /// Runs a login with the user. `earlier_grant` returns a grant of an earlier login with an issuer.
    pub(crate) async fn log_in(
        &self,
        user: &dyn UserAgent,
        request: LoginRequest<'_>,
        earlier_grant: &(dyn Fn(&str) -> Result<Option<Grant>, String> + Sync),
        now: u64,
    ) -> Result<Grant, FlowError> {
        let mut server = self.discover(request.challenge, self.issuer.as_deref()).await?;
        require_pkce(&server.metadata)?;
        let mut scopes =
            if request.scopes.is_empty() { server.select_scopes().await } else { request.scopes };
        scopes.truncate(MAX_SCOPES);
        add_scopes(&mut scopes, self.scopes.iter().map(String::as_str));
        let login = user.start_login().await.map_err(FlowError::Failed)?;
        let earlier = earlier_grant(&server.issuer).map_err(FlowError::Failed)?;
        let key = self.prove_with_new_key(request.accepts_proof, &server.metadata)?;
        let client = self.choose_client(&mut server, earlier, login.redirect_uri(), &scopes).await?;
        let secrets = Redactor::new(client.secret.iter());
        let failed = |error: AuthError| FlowError::Failed(describe_error(&error, &secrets));

        server
            .manager
            .configure_client(client_config(&client, login.redirect_uri(), &scopes))
            .map_err(failed)?;
        let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let page = server.manager.get_authorization_url(&scope_names).await.map_err(failed)?;
        let page: Url =
            page.parse().map_err(|_| unusable_server_error("the URL of its login page is invalid"))?;
        check_url(&self.resource, &page)
            .map_err(|it| unusable_server_error(&format!("its login page is not allowed: {it}")))?;

        let redirected = login.authorize(page).await.map_err(FlowError::Failed)?;
        check_redirect_error(&redirected, &secrets)?;
        let AuthorizationCallback { code, csrf_token, issuer, .. } =
            AuthorizationCallback::from_redirect_url(redirected.as_str()).map_err(failed)?;
        let exchange =
            server.manager.exchange_code_for_token_with_issuer(&code, &csrf_token, issuer.as_deref());
        let tokens = exchange.await.map_err(failed)?;
        self.new_grant(server.issuer, client, &tokens, TokenRequest { scopes, key }, now)
    }

    /// Proves the token requests of this login with a new key, if the server and its authorization server support that.
    pub(crate) fn prove_with_new_key(
        &self,
        accepts_proof: bool,
        metadata: &AuthorizationMetadata,
    ) -> Result<Option<ProofKey>, FlowError> {
        let algorithms = metadata.additional_fields.get("dpop_signing_alg_values_supported");
        let mut algorithms = algorithms.and_then(|it| it.as_array()).into_iter().flatten();
        let key = if accepts_proof && algorithms.any(|it| it.as_str() == Some(ALGORITHM)) {
            let no_randomness = || FlowError::Failed("the system provides no randomness".to_owned());
            Some(ProofKey::generate().ok_or_else(no_randomness)?)
        } else {
            None
        };
        self.prove_with(key.as_ref(), metadata);
        Ok(key)
    }

    /// Proves the following token requests with `key`; without a key, they have no proof.
    fn prove_with(&self, key: Option<&ProofKey>, metadata: &AuthorizationMetadata) {
        // The HTTP client compares normalized URLs.
        let endpoint: Option<Url> = metadata.token_endpoint.parse().ok();
        let proof =
            key.cloned().zip(endpoint).map(|(key, url)| TokenProof { key, token_endpoint: url.into() });
        self.http_client.prove_token_requests(proof);
    }

    /// Refreshes a grant. The issuer must be unchanged.
    pub(crate) async fn refresh(&self, old: &Grant, now: u64) -> Result<Grant, FlowError> {
        let mut server = self.discover(None, Some(&old.issuer)).await?;
        if server.issuer != old.issuer {
            return Err(FlowError::InvalidGrant);
        }
        let secrets = [old.client.secret.as_ref(), old.refresh_token.as_ref(), Some(&old.access_token)];
        let secrets = Redactor::new(secrets.into_iter().flatten());
        let failed = |error: AuthError| match error {
            AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired => FlowError::InvalidGrant,
            error => FlowError::Failed(describe_error(&error, &secrets)),
        };
        let store = InMemoryCredentialStore::new();
        store.save(rmcp_credentials(old, &server.metadata)).await.map_err(failed)?;
        server.manager.set_credential_store(store);
        // A refresh does not redirect the user.
        let redirect = old.client.redirect_uri.as_ref().unwrap_or(&self.resource);
        server.manager.configure_client(client_config(&old.client, redirect, &[])).map_err(failed)?;
        self.prove_with(old.proof_key.as_ref(), &server.metadata);
        let tokens = server.manager.refresh_token().await.map_err(failed)?;
        let request = TokenRequest { scopes: old.scopes.clone(), key: old.proof_key.clone() };
        let mut grant = self.new_grant(server.issuer, old.client.clone(), &tokens, request, now)?;
        grant.missing_scopes.clone_from(&old.missing_scopes);
        Ok(grant)
    }

    /// Discovers the authorization server, from the challenge `header` or the metadata of the server.
    ///
    /// `trusted` is the issuer that is configured, or that of a stored grant. Its metadata is used also if it names
    /// another issuer. A server that has no usable metadata gets the configured issuer.
    pub(crate) async fn discover(
        &self,
        header: Option<&str>,
        trusted: Option<&str>,
    ) -> Result<DiscoveredServer, FlowError> {
        let no_secrets = Redactor::new(std::iter::empty());
        let failed = |error: AuthError| FlowError::Failed(describe_error(&error, &no_secrets));
        let http_client = Arc::clone(&self.http_client) as _;
        self.http_client.begin_discovery();
        let manager = AuthorizationManager::new_with_oauth_http_client(self.resource.clone(), http_client);
        let mut manager = manager.await.map_err(failed)?;
        let configured = self.issuer.as_deref();
        let (metadata, issuer) = match manager.resolve_metadata_from_challenge(header).await {
            Ok(AuthorizationMetadataResolution { metadata, source, .. }) => {
                match (&metadata.issuer, configured) {
                    (_, Some(configured)) if !source.is_discovered() => {
                        self.trusted_metadata(configured).await?
                    }
                    (Some(issuer), _) => {
                        let issuer = issuer.clone();
                        (metadata, issuer)
                    }
                    // A server of 2025-03-26 without metadata is its own issuer.
                    (None, _) => (metadata, self.resource.origin().ascii_serialization()),
                }
            }
            // The document at the expected address names another issuer.
            Err(AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer }) => {
                match trusted.filter(|trusted| is_same_issuer(trusted, &expected_issuer)) {
                    Some(trusted) => self.trusted_metadata(trusted).await?,
                    // Its own metadata is read instead.
                    None => match self.fetch_metadata(&received_issuer).await {
                        Ok(metadata) if metadata.issuer.as_deref() == Some(&*received_issuer) => {
                            (metadata, received_issuer)
                        }
                        Ok(_) | Err(_) => {
                            return Err(self.unpublished_metadata_error(&expected_issuer, &received_issuer));
                        }
                    },
                }
            }
            Err(error) => match configured {
                Some(configured) => self.trusted_metadata(configured).await?,
                None => return Err(self.with_unreachable_origins(failed(error))),
            },
        };
        let (metadata, issuer) = match configured.filter(|configured| !is_same_issuer(configured, &issuer)) {
            None => (metadata, issuer),
            Some(configured) if self.http_client.is_listed(configured) => {
                self.trusted_metadata(configured).await?
            }
            Some(configured) => {
                let why = format!(
                    "the server's authorization server {} is not the one that is configured, {}; if you trust it, \
                     configure it: {ISSUER_SETTINGS}",
                    shorten(&issuer),
                    shorten(configured)
                );
                return Err(FlowError::Failed(why));
            }
        };
        manager.set_metadata(metadata.clone());
        Ok(DiscoveredServer { manager, metadata, issuer })
    }

    /// The metadata of a trusted issuer, which may name another issuer, with its address.
    async fn trusted_metadata(&self, issuer: &str) -> Result<(AuthorizationMetadata, String), FlowError> {
        Ok((self.fetch_metadata(issuer).await?, issuer.to_owned()))
    }

    /// Fetches the metadata that an issuer publishes at its own address.
    async fn fetch_metadata(&self, issuer: &str) -> Result<AuthorizationMetadata, FlowError> {
        self.http_client.fetch_metadata(issuer).await.map_err(|why| unusable_server_error(&why))
    }

    /// The error for metadata at the address of an issuer that names another one, which does not publish it itself.
    fn unpublished_metadata_error(&self, address: &str, issuer: &str) -> FlowError {
        let why = format!(
            "the metadata at {} is of the issuer {}, which does not publish it itself; if you trust {0}, configure it \
             as the issuer: {ISSUER_SETTINGS}; if the server accepts a token of your own, put it in its \
             `Authorization` header",
            shorten(address),
            shorten(issuer)
        );
        self.with_unreachable_origins(unusable_server_error(&why))
    }

    /// Adds the origins that the discovery could not reach to its error.
    fn with_unreachable_origins(&self, error: FlowError) -> FlowError {
        match (error, self.http_client.unreachable_origins()) {
            (FlowError::Failed(why), Some(origins)) => FlowError::Failed(format!("{why} ({origins})")),
            (error, _) => error,
        }
    }

    /// Adds to the error of a login that the server's metadata states a broader resource. Its authorization server may
    /// not know the configured URL.
    pub(crate) fn with_broader_resource(&self, error: FlowError) -> FlowError {
        match (error, self.http_client.broader_resource()) {
            (FlowError::Failed(why), Some(broader)) => FlowError::Failed(format!(
                "{why} (a token was requested for {}, and not for {}, which the server's metadata names)",
                self.resource,
                shorten(broader.as_str())
            )),
            (error, _) => error,
        }
    }

    /// Chooses the client for an issuer: registered by hand, registered earlier, described by our metadata document, or
    /// registered now.
    async fn choose_client(
        &self,
        server: &mut DiscoveredServer,
        earlier: Option<Grant>,
        redirect: &Url,
        scopes: &[String],
    ) -> Result<RegisteredClient, FlowError> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let supports_document =
            server.metadata.additional_fields.get("client_id_metadata_document_supported");
        if let Some(document) = &self.client_metadata
            && supports_document.and_then(serde_json::Value::as_bool) == Some(true)
        {
            return Ok(RegisteredClient { id: document.to_string(), secret: None, redirect_uri: None });
        }
        // A client that was registered by hand has no redirect URI of ours.
        let is_same_redirect =
            |it: &RegisteredClient| it.redirect_uri.as_ref().is_none_or(|it| it == redirect);
        if let Some(client) = earlier.map(|it| it.client).filter(is_same_redirect) {
            return Ok(client);
        }
        if server.metadata.registration_endpoint.is_none() {
            let why = format!(
                "the authorization server {} does not allow automatic registration: register a client there, and \
                configure its id (`mcp-host login --client-id`)",
                shorten(&server.issuer)
            );
            return Err(FlowError::Failed(why));
        }
        let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let no_secrets = Redactor::new(std::iter::empty());
        let registered =
            server.manager.register_client(&self.client_name, redirect.as_str(), &scope_names).await;
        let refused = |error: AuthError| {
            let why = describe_error(&error, &no_secrets);
            FlowError::Failed(format!(
                "{why}; the redirect URI of the registration was {redirect}: `mcp-host login --redirect-uri` sets \
                 another one"
            ))
        };
        let config = registered.map_err(refused)?;
        let secret = config.client_secret.map(Secret::new);
        Ok(RegisteredClient { id: config.client_id, secret, redirect_uri: Some(redirect.clone()) })
    }

    /// Makes a grant of the tokens that an authorization server has issued.
    fn new_grant(
        &self,
        issuer: String,
        client: RegisteredClient,
        tokens: &OAuthTokenResponse,
        request: TokenRequest,
        now: u64,
    ) -> Result<Grant, FlowError> {
        let TokenRequest { mut scopes, key } = request;
        let proof_key =
            key_for_token_type(tokens.token_type().as_ref(), key).map_err(unusable_server_error)?;
        add_scopes(&mut scopes, tokens.scopes().into_iter().flatten().map(|it| it.as_str()));
        Ok(Grant {
            resource: self.server.clone(),
            issuer,
            client,
            access_token: Secret::new(tokens.access_token().secret()),
            refresh_token: tokens.refresh_token().map(|it| Secret::new(it.secret())),
            expires_at: tokens.expires_in().map(|it| now.saturating_add(it.as_secs())),
            issued_at: Some(now),
            scopes,
            missing_scopes: Vec::new(),
            proof_key,
        })
    }
}

/// Returns the key that a token is bound to: `key`, with which its request was proven, or `None` if the authorization
/// server ignored the proof. The error is the reason why a token of this type cannot be used.
pub(crate) fn key_for_token_type(
    kind: &str,
    key: Option<ProofKey>,
) -> Result<Option<ProofKey>, &'static str> {
    match key {
        Some(key) if kind.eq_ignore_ascii_case("dpop") => Ok(Some(key)),
        _ if kind.eq_ignore_ascii_case("bearer") => Ok(None),
        Some(_) => Err("it issues tokens of an unknown type"),
        None => Err("it issues tokens that require a proof of possession, which the server does not ask for"),
    }
}

/// Adds scopes, each once.
pub(crate) fn add_scopes<'a>(scopes: &mut Vec<String>, added: impl Iterator<Item = &'a str>) {
    for scope in added.take(MAX_SCOPES) {
        if !scopes.iter().any(|it| it == scope) {
            scopes.push(scope.to_owned());
        }
    }
}

/// Whether a `WWW-Authenticate` header is a challenge of this scheme: `Bearer` or `DPoP`.
pub(crate) fn is_challenge(header: &str, scheme: &str) -> bool {
    header.split_whitespace().next().is_some_and(|name| name.eq_ignore_ascii_case(scheme))
}

/// The scopes that a challenge reports as missing; `None` for other challenges.
pub(crate) fn missing_scopes(header: &str, resource: &Url) -> Option<Vec<String>> {
    let params = WWWAuthenticateParams::parse(header, resource);
    let scopes = params.scope.clone().filter(|_| params.is_insufficient_scope())?;
    let scopes: Vec<String> = scopes.split_whitespace().take(MAX_SCOPES).map(str::to_owned).collect();
    Some(scopes).filter(|it| !it.is_empty())
}

/// Fails if the authorization server does not support PKCE: without it an authorization code could be stolen in
/// transit. Metadata states whether it is supported.
fn require_pkce(metadata: &AuthorizationMetadata) -> Result<(), FlowError> {
    let methods = metadata.code_challenge_methods_supported.as_deref();
    match (methods, &metadata.issuer) {
        (Some(methods), _) if methods.iter().any(|it| it == "S256") => Ok(()),
        (None, None) => Ok(()),
        (Some(_), _) | (None, Some(_)) => {
            Err(unusable_server_error("its metadata does not declare support for PKCE with S256"))
        }
    }
}

/// Fails if the redirect reports that the user or the authorization server refused the login.
fn check_redirect_error(redirected: &Url, secrets: &Redactor) -> Result<(), FlowError> {
    let value = |key: &str| redirected.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value);
    let Some(error) = value("error") else { return Ok(()) };
    let description = value("error_description").map(|it| format!(": {it}")).unwrap_or_default();
    let reason = secrets.clean(&format!("{error}{description}"), MAX_FOREIGN_TEXT_BYTES);
    Err(FlowError::Failed(format!("the login was refused: {reason}")))
}

fn client_config(client: &RegisteredClient, redirect: &Url, scopes: &[String]) -> OAuthClientConfig {
    let config = OAuthClientConfig::new(&client.id, redirect.as_str()).with_scopes(scopes.to_vec());
    match &client.secret {
        Some(secret) => config.with_client_secret(secret.expose()),
        None => config,
    }
}

/// A grant in rmcp's form.
fn rmcp_credentials(grant: &Grant, metadata: &AuthorizationMetadata) -> StoredCredentials {
    let refresh = grant.refresh_token.as_ref().map(Secret::expose);
    let tokens = json!({
        "access_token": grant.access_token.expose(),
        "token_type": "bearer",
        "refresh_token": refresh,
    });
    let tokens = serde_json::from_value(tokens).expect("it has what tokens need");
    StoredCredentials::new(grant.client.id.clone(), Some(tokens), grant.scopes.clone(), None)
        .with_issuer(metadata.issuer.clone().or_else(|| Some(grant.issuer.clone())))
}

/// The error for an authorization server that cannot be used.
fn unusable_server_error(why: &str) -> FlowError {
    FlowError::Failed(format!("the server's authorization server cannot be used: {why}"))
}

/// Describes an error with its causes: foreign text, truncated, on one line and redacted.
fn describe_error(error: &AuthError, secrets: &Redactor) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    for _ in 0..8 {
        let Some(cause) = next else { break };
        let description = cause.to_string();
        if !text.contains(&description) {
            text.push_str(": ");
            text.push_str(&description);
        }
        next = cause.source();
    }
    format!("the login to the server failed: {}", secrets.clean(&text, MAX_FOREIGN_TEXT_BYTES))
}

/// Whether two texts name the same issuer. A slash at the end makes no difference.
fn is_same_issuer(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Truncates foreign text for a message.
fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}
