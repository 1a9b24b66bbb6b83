//! Authorization of requests: adds a token to each, and handles challenges of the server.
//!
//! The client adds a token to requests to the server's own origin only, redirects included. An implementation of
//! [`Authorization`] provides the tokens.

use std::fmt;
use std::time::Instant;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_host_model::Secret;
use url::Url;

use super::Response;

/// Maximum number of times that one request is sent. If every response is a challenge, it fails.
pub(super) const MAX_ATTEMPTS: usize = 4;

/// Maximum number of `WWW-Authenticate` headers that are read of one response.
const MAX_AUTHENTICATE_HEADERS: usize = 8;

/// Maximum length of a `WWW-Authenticate` or `DPoP-Nonce` header that is read.
const MAX_AUTHENTICATE_HEADER_BYTES: usize = 8 << 10;

/// The header with the DPoP proof of a request (RFC 9449).
const PROOF: HeaderName = HeaderName::from_static("dpop");

/// The header with the nonce that a server requests for proofs.
const PROOF_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Provides the authorization of requests to one server. Its `Debug` output contains no secret.
///
/// [`DialOptions::authorization`](crate::DialOptions::authorization) takes it. `OAuth` of
/// mcp-host-oauth logs in; a token that the program has needs only this:
///
/// ```
/// use mcp_host_model::Secret;
/// use mcp_host_transport::{
///     Authorization, AuthorizedRequest, Challenge, ChallengeAction, Credentials, Unauthorized, async_trait,
/// };
///
/// #[derive(Debug)]
/// struct FixedToken(Secret);
///
/// #[async_trait]
/// impl Authorization for FixedToken {
///     async fn credentials(&self, _: AuthorizedRequest<'_>) -> Result<Option<Credentials>, Unauthorized> {
///         Ok(Some(Credentials::bearer(self.0.clone())))
///     }
///
///     fn is_in_progress(&self) -> bool {
///         false
///     }
///
///     async fn on_challenge(&self, _: Challenge) -> Result<ChallengeAction, Unauthorized> {
///         // The response is the error of the request.
///         Ok(ChallengeAction::ReturnResponse)
///     }
/// }
/// ```
#[async_trait]
pub trait Authorization: fmt::Debug + Send + Sync {
    /// Returns the token for a request, with a proof if the token is bound to a key. Without a token the
    /// request is sent unauthorized. May refresh the token first.
    async fn credentials(&self, request: AuthorizedRequest<'_>) -> Result<Option<Credentials>, Unauthorized>;

    /// Whether a token is being obtained or a login is running. Requests wait for it.
    fn is_in_progress(&self) -> bool;

    /// Handles a 401 or 403 response. Returns whether to send the request again, with the result of
    /// [`credentials`](Authorization::credentials). Several requests may be refused at once.
    async fn on_challenge(&self, challenge: Challenge) -> Result<ChallengeAction, Unauthorized>;
}

/// A request that needs a token.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AuthorizedRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The URL.
    pub url: &'a Url,
    /// The body, if any.
    pub body: Option<&'a [u8]>,
}

impl<'a> AuthorizedRequest<'a> {
    /// A request without a body.
    pub fn new(method: &'a str, url: &'a Url) -> AuthorizedRequest<'a> {
        AuthorizedRequest { method, url, body: None }
    }
}

/// The authorization of one request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Credentials {
    /// The access token.
    pub token: Secret,
    /// The proof that the client has the key of the token (DPoP, RFC 9449); `None` for a bearer token.
    pub proof: Option<String>,
}

impl Credentials {
    /// A bearer token.
    pub fn bearer(token: Secret) -> Credentials {
        Credentials { token, proof: None }
    }

    /// A token that is bound to a key, with a proof for one request.
    pub fn bound(token: Secret, proof: String) -> Credentials {
        Credentials { token, proof: Some(proof) }
    }
}

/// A 401 or 403 response.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// The values of its `WWW-Authenticate` headers, at most 8 of at most 8 KiB each.
    pub www_authenticate: Vec<String>,
    /// The token of the request.
    pub token_used: Option<Secret>,
    /// When the request was sent.
    pub sent_at: Instant,
    /// Number of earlier challenges of the same request.
    pub earlier_challenges: usize,
    /// The nonce that the server requests for proofs (`DPoP-Nonce`).
    pub proof_nonce: Option<String>,
}

impl Challenge {
    /// A challenge to a request without a token that is sent now.
    pub fn new(status: u16) -> Challenge {
        Challenge {
            status,
            www_authenticate: Vec::new(),
            token_used: None,
            sent_at: Instant::now(),
            earlier_challenges: 0,
            proof_nonce: None,
        }
    }
}

/// What to do after a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChallengeAction {
    /// Send the request again.
    Retry,
    /// Return the response.
    ReturnResponse,
}

/// Why there is no authorization, and what to do about it: a message without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Unauthorized {
    /// The reason, and what to do.
    pub message: String,
}

impl Unauthorized {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Unauthorized {
        Unauthorized { message: message.into() }
    }
}

impl Challenge {
    /// The challenge of a response; `None` for other statuses than 401 and 403.
    pub(super) fn from_response(
        response: &Response,
        token_used: Option<Secret>,
        sent_at: Instant,
        earlier_challenges: usize,
    ) -> Option<Challenge> {
        let status = response.status.as_u16();
        if !matches!(status, 401 | 403) {
            return None;
        }
        let values = response.headers.get_all(WWW_AUTHENTICATE).iter().take(MAX_AUTHENTICATE_HEADERS);
        let values = values.filter_map(|value| value.to_str().ok());
        let values = values.filter(|value| value.len() <= MAX_AUTHENTICATE_HEADER_BYTES);
        let www_authenticate = values.map(str::to_owned).collect();
        let nonce = response.headers.get(PROOF_NONCE).and_then(|value| value.to_str().ok());
        let proof_nonce =
            nonce.filter(|nonce| nonce.len() <= MAX_AUTHENTICATE_HEADER_BYTES).map(str::to_owned);
        Some(Challenge { status, www_authenticate, token_used, sent_at, earlier_challenges, proof_nonce })
    }
}

/// Adds a token and its proof to headers. Fails if no header can contain them.
pub(super) fn with_credentials(
    headers: &HeaderMap,
    credentials: &Credentials,
) -> Result<HeaderMap, Unauthorized> {
    let Credentials { token, proof } = credentials;
    let header_value = |text: &str| {
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| Unauthorized::new("the token contains characters that no header allows"))?;
        value.set_sensitive(true);
        Ok(value)
    };
    let scheme = if proof.is_some() { "DPoP" } else { "Bearer" };
    let mut res = headers.clone();
    res.insert(AUTHORIZATION, header_value(&format!("{scheme} {}", token.expose()))?);
    if let Some(proof) = proof {
        res.insert(PROOF, header_value(proof)?);
    }
    Ok(res)
}
