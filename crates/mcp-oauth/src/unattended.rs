//! Grants without a user: client credentials, assertions, token exchange, and enterprise-managed authorization.
//!
//! The client is registered by hand. Its secret, its assertions and the subject's token are sent to the token
//! endpoint of the authorization server only, and, if an issuer is configured, only if that is the server's.
//!
//! rmcp has some of these grants, but signs with aws-lc, and has no token exchange for an access token.

use std::fmt;
use std::sync::Arc;

use mcp_host_model::Secret;
use mcp_host_transport::internal::Redactor;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::client::{FormEndpoint, OAuthClient};
use crate::flow::{
    Flow, FlowError, LoginRequest, MAX_FOREIGN_TEXT_BYTES, MAX_SCOPES, add_scopes, key_for_token_type,
};
use crate::grant::{Grant, RegisteredClient};
use crate::http_client::HttpClient;

/// Grant types and token types of RFC 7523, RFC 8693 and the ID-JAG draft.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A grant that needs no user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnattendedGrant {
    /// The client, as registered at the server's authorization server.
    pub client: OAuthClient,
    /// The kind of the grant.
    pub kind: UnattendedGrantKind,
    /// The scopes to request; if empty, those that the server names.
    pub scopes: Vec<String>,
    /// The only issuer to which anything is sent. Without it, a server can choose which authorization server
    /// receives the client's secret.
    pub issuer: Option<String>,
}

impl UnattendedGrant {
    /// A grant with the scopes that the server names, from any issuer that it names.
    pub fn new(client: OAuthClient, kind: UnattendedGrantKind) -> UnattendedGrant {
        UnattendedGrant { client, kind, scopes: Vec::new(), issuer: None }
    }
}

/// The kind of a grant without a user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum UnattendedGrantKind {
    /// The client acts for itself (OAuth 2.1, section 4.2).
    ClientCredentials,
    /// The client presents a JWT of a party that the authorization server trusts (RFC 7523), such as the identity of a
    /// workload.
    JwtBearer(TokenSource),
    /// The client exchanges the access token of its own caller (RFC 8693), so that it acts for this caller.
    /// Another token of the source replaces the grant before the next request.
    TokenExchange(TokenSource),
    /// The client exchanges an ID token at the company's identity provider for an assertion (ID-JAG), and presents that
    /// to the authorization server.
    EnterpriseManaged {
        /// The identity provider.
        provider: IdentityProvider,
        /// The user's ID token.
        id_token: TokenSource,
    },
}

/// The identity provider of a company.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdentityProvider {
    /// Its issuer identifier.
    pub issuer: String,
    /// Its token endpoint.
    pub token_endpoint: Url,
    /// The client, as registered there.
    pub client: OAuthClient,
}

impl IdentityProvider {
    /// A provider with our client there.
    pub fn new(issuer: impl Into<String>, token_endpoint: Url, client: OAuthClient) -> IdentityProvider {
        IdentityProvider { issuer: issuer.into(), token_endpoint, client }
    }
}

/// Provides a token when it is needed. The error contains the reason if there is none.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn() -> Result<Secret, String> + Send + Sync>);

impl TokenSource {
    /// Calls `read` for each grant.
    pub fn new(read: impl Fn() -> Result<Secret, String> + Send + Sync + 'static) -> TokenSource {
        TokenSource(Arc::new(read))
    }

    /// Provides the token.
    pub(crate) fn read(&self) -> Result<Secret, FlowError> {
        (self.0)().map_err(FlowError::Failed)
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}

/// The response of a token endpoint.
#[derive(Deserialize)]
struct TokenJson {
    access_token: String,
    #[serde(default)]
    token_type: String,
    issued_token_type: Option<String>,
    expires_in: Option<u64>,
    scope: Option<String>,
}

impl Flow {
    /// Obtains a grant without a user. `provider` is the HTTP client for the identity provider.
    pub(crate) async fn obtain_grant(
        &self,
        unattended: &UnattendedGrant,
        request: LoginRequest<'_>,
        provider: Option<&HttpClient>,
        now: u64,
    ) -> Result<Grant, FlowError> {
        let UnattendedGrant { client, kind, scopes: configured, issuer: _ } = unattended;
        let server = self.discover(request.challenge, self.issuer.as_deref()).await?;
        let metadata = &server.metadata;
        let key = self.prove_with_new_key(request.accepts_proof, metadata)?;
        let mut scopes = if request.scopes.is_empty() { configured.clone() } else { request.scopes };
        if scopes.is_empty() {
            scopes = server.select_scopes().await;
        }
        scopes.truncate(MAX_SCOPES);
        let scope = scopes.join(" ");
        let target_params = vec![("resource", self.resource.to_string()), ("scope", scope)];
        let form = match kind {
            UnattendedGrantKind::ClientCredentials => {
                vec![("grant_type", "client_credentials".to_owned())]
            }
            UnattendedGrantKind::JwtBearer(assertion) => jwt_bearer_form(assertion.read()?.expose()),
            UnattendedGrantKind::TokenExchange(subject) => {
                token_exchange_form(subject.read()?.expose(), ACCESS_TOKEN)
            }
            UnattendedGrantKind::EnterpriseManaged { provider: identity, id_token } => {
                let mut form = token_exchange_form(id_token.read()?.expose(), ID_TOKEN);
                form.push(("requested_token_type", ID_JAG.to_owned()));
                form.push(("audience", server.issuer.clone()));
                form.extend(target_params.clone());
                let endpoint = FormEndpoint {
                    url: identity.token_endpoint.as_str(),
                    issuer: &identity.issuer,
                    methods: None,
                };
                let http_client = provider.unwrap_or(&self.http_client);
                let tokens = request_token(http_client, &endpoint, &identity.client, form, now).await?;
                if tokens.issued_token_type.as_deref() != Some(ID_JAG) {
                    return Err(token_error("the identity provider issued another kind of token"));
                }
                jwt_bearer_form(&tokens.access_token)
            }
        };
        let endpoint = FormEndpoint {
            url: &metadata.token_endpoint,
            issuer: &server.issuer,
            methods: metadata.additional_fields.get("token_endpoint_auth_methods_supported"),
        };
        let form = [form, target_params].concat();
        let tokens = request_token(&self.http_client, &endpoint, client, form, now).await;
        let tokens = tokens.map_err(|error| kind.add_advice(error, &client.id))?;
        let unusable = |why| token_error(&format!("the authorization server cannot be used: {why}"));
        let proof_key = key_for_token_type(&tokens.token_type, key).map_err(unusable)?;
        add_scopes(&mut scopes, tokens.scope.iter().flat_map(|scope| scope.split_whitespace()));
        Ok(Grant {
            resource: self.server.clone(),
            issuer: server.issuer.clone(),
            client: RegisteredClient { id: client.id.clone(), secret: None, redirect_uri: None },
            access_token: Secret::new(tokens.access_token),
            refresh_token: None,
            expires_at: tokens.expires_in.map(|seconds| now.saturating_add(seconds)),
            issued_at: Some(now),
            scopes,
            missing_scopes: Vec::new(),
            proof_key,
        })
    }
}

impl UnattendedGrantKind {
    /// Adds to the error of a token request how to solve it.
    fn add_advice(&self, error: FlowError, client: &str) -> FlowError {
        match (self, error) {
            (UnattendedGrantKind::TokenExchange(_), FlowError::Failed(why)) => FlowError::Failed(format!(
                "{why}; log in again, or let the authorization server allow the client '{client}' to exchange this \
                 user's tokens for this server"
            )),
            (_, error) => error,
        }
    }
}

/// Requests a token. No error contains a secret.
async fn request_token(
    http_client: &HttpClient,
    endpoint: &FormEndpoint<'_>,
    client: &OAuthClient,
    form: Vec<(&str, String)>,
    now: u64,
) -> Result<TokenJson, FlowError> {
    let secrets: Vec<Secret> = form
        .iter()
        .filter(|(name, _)| matches!(*name, "assertion" | "subject_token"))
        .map(|(_, value)| Secret::new(value.clone()))
        .chain(client.secret().cloned())
        .collect();
    let redactor = Redactor::new(secrets.iter());
    let request = endpoint.build_request(client, &form, now).map_err(token_error)?;
    let response = http_client.fetch(request).await;
    let response = response.map_err(|error| token_error(&format!("the token endpoint: {error}")))?;
    if !response.status().is_success() {
        let error: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        let member = |key: &str| error[key].as_str().map(|text| format!(": {text}")).unwrap_or_default();
        let reason = format!("{}{}", member("error"), member("error_description"));
        let reason = redactor.clean(&reason, MAX_FOREIGN_TEXT_BYTES);
        return Err(token_error(&format!(
            "the token endpoint refused it with HTTP {}{reason}",
            response.status().as_u16()
        )));
    }
    serde_json::from_slice(response.body())
        .map_err(|_| token_error("the token endpoint's answer is not a token"))
}

/// The form that presents an assertion.
fn jwt_bearer_form(assertion: &str) -> Vec<(&'static str, String)> {
    vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion.to_owned())]
}

/// The form that exchanges a token of this type.
fn token_exchange_form(subject: &str, kind: &str) -> Vec<(&'static str, String)> {
    vec![
        ("grant_type", TOKEN_EXCHANGE.to_owned()),
        ("subject_token", subject.to_owned()),
        ("subject_token_type", kind.to_owned()),
    ]
}

/// The error of a token request.
fn token_error(why: &str) -> FlowError {
    FlowError::Failed(format!("no token from the authorization server: {why}"))
}
