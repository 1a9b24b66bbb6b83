//! The gateway as an OAuth 2.1 resource server: it accepts access tokens of one authorization server.
//!
//! A token is a JWT (RFC 9068) for this resource. Its subject is the client, its scopes select a part of the catalog.
//! The protected-resource metadata (RFC 9728) and the challenges tell a client where to get a token. Not here: opaque
//! tokens, which would need a request to the authorization server for each call.

mod claims;
mod keys;
mod ring_verifier;
mod scope_map;

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Header, Validation, decode_header};
use lru::LruCache;
use mcp_host_model::ServerId;
use mcp_host_model::internal::is_loopback;
use mcp_host_transport::Authorities;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use url::Url;

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::access::tokens::bearer_token;
use claims::Claims;
use keys::KeyCache;

pub use scope_map::{InvalidScopes, ScopeMap};

/// Maximum size of a token in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The maximum difference between the clocks of the two servers.
const LEEWAY_SECONDS: u64 = 30;
/// Maximum number of verified tokens that are cached.
const MAX_VERIFIED_TOKENS: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");
/// The start of the path of protected-resource metadata; the path of the resource follows it.
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// The characters that are percent-encoded in a path segment of a URL.
const SEGMENT_ENCODING: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The types of JWT that can be access tokens.
const TOKEN_TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// The configuration of an authorization server whose access tokens the gateway accepts.
#[derive(Debug, Clone)]
pub struct ResourceServer {
    issuer: String,
    resource: Option<Url>,
    /// The scopes of tokens, each with the part of the catalog that it shows.
    pub scopes: ScopeMap,
    /// Certificate authorities that are trusted for the authorization server in addition to the system's.
    pub authorities: Authorities,
}

/// A URL that cannot be used for authorization.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {name} {url:?} {reason}")]
pub struct InvalidAuthUrl {
    name: &'static str,
    url: String,
    reason: &'static str,
}

impl ResourceServer {
    /// Accepts the tokens of `issuer`, an authorization server with metadata and a key set. `resource` is the
    /// public URL of the gateway, which tokens must have as their audience; by default the address at which
    /// it listens. Both are https, or http on this machine.
    pub fn new(issuer: &str, resource: Option<&str>) -> Result<ResourceServer, InvalidAuthUrl> {
        parse_auth_url("issuer", issuer)?;
        let resource = resource.map(|url| parse_auth_url("resource", url)).transpose()?;
        let (scopes, authorities) = (ScopeMap::default(), Authorities::default());
        Ok(ResourceServer { issuer: issuer.to_owned(), resource, scopes, authorities })
    }
}

/// Parses a URL that is used for authorization. `name` is its name in the error.
fn parse_auth_url(name: &'static str, text: &str) -> Result<Url, InvalidAuthUrl> {
    let invalid = |reason| InvalidAuthUrl { name, url: text.chars().take(200).collect(), reason };
    let url: Url = text.parse().map_err(|_| invalid("is not a URL"))?;
    if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
        return Err(invalid("is not https; http is allowed on this machine only"));
    }
    if url.host_str().is_some_and(|host| matches!(host, "0.0.0.0" | "[::]")) {
        return Err(invalid("is no address that a client can use"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("has a query or a fragment"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("contains credentials"));
    }
    Ok(url)
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// There is no bearer token.
    Missing,
    /// The token is not accepted, for this reason.
    Invalid(&'static str),
    /// The token has none of the scopes that show anything.
    InsufficientScope,
    /// The keys of the authorization server cannot be fetched.
    Unavailable,
}

impl TokenRefusal {
    /// The message for the client and the log. It contains nothing of the token.
    pub(crate) fn message(self) -> &'static str {
        match self {
            TokenRefusal::Missing => {
                "an access token is needed: send the header `Authorization: Bearer TOKEN`"
            }
            TokenRefusal::Invalid(reason) => reason,
            TokenRefusal::InsufficientScope => "the access token has no scope that shows anything here",
            TokenRefusal::Unavailable => {
                "the access token cannot be checked now: the keys of the authorization server are not available"
            }
        }
    }
}

/// What a verified token grants.
#[derive(Debug)]
pub(crate) struct AccessGrant {
    pub(crate) principal: Principal,
    /// The gateway's scope, restricted to what the token shows.
    pub(crate) scope: Arc<Scope>,
    /// The scopes of the token.
    pub(crate) scopes: Vec<String>,
    /// The audiences of the token that belong to this resource.
    audiences: Vec<String>,
    /// When the token was issued, in seconds since the epoch; 0 if unknown.
    issued_at: f64,
    /// The end of its validity in seconds since the epoch.
    expires_at: u64,
}

impl AccessGrant {
    /// How many seconds the token is still accepted.
    pub(crate) fn remaining_seconds(&self) -> u64 {
        self.expires_at.saturating_add(LEEWAY_SECONDS).saturating_sub(now())
    }

    /// Whether the token replaces another one of the same client. Requests may arrive in another order than
    /// their tokens were issued in.
    pub(crate) fn replaces(&self, other: &AccessGrant) -> bool {
        self.issued_at >= other.issued_at || other.remaining_seconds() == 0
    }
}

/// Verifies access tokens, and caches their grants.
pub(crate) struct TokenVerifier {
    issuer: String,
    /// The resource identifier.
    resource: String,
    /// The resource's origin with [`METADATA_PATH`].
    metadata_root: String,
    /// The resource's path.
    resource_path: String,
    scopes: ScopeMap,
    /// The scope of a client that is not restricted.
    gateway_scope: Arc<Scope>,
    keys: KeyCache,
    /// The grants of verified tokens, by the hash of the token.
    verified: Mutex<LruCache<blake3::Hash, Arc<AccessGrant>>>,
}

impl TokenVerifier {
    /// Creates a verifier without keys; [`TokenVerifier::refresh_keys`] fetches them. Without a configured public URL,
    /// the resource is the URL of the `listener`.
    pub(crate) fn new(
        options: ResourceServer,
        listener: &str,
        gateway_scope: Arc<Scope>,
    ) -> Result<TokenVerifier, InvalidAuthUrl> {
        ring_verifier::install();
        let ResourceServer { issuer, resource, scopes, authorities } = options;
        let resource = match resource {
            Some(resource) => resource,
            None => parse_auth_url("resource", listener)?,
        };
        let path = resource.path().trim_end_matches('/').to_owned();
        let origin = resource.origin().ascii_serialization();
        Ok(TokenVerifier {
            keys: KeyCache::new(issuer.clone(), authorities),
            issuer,
            // Without the slash that the URL parser adds to an origin.
            resource: format!("{origin}{path}"),
            metadata_root: format!("{origin}{METADATA_PATH}"),
            resource_path: path,
            scopes,
            gateway_scope,
            verified: Mutex::new(LruCache::new(MAX_VERIFIED_TOKENS)),
        })
    }

    /// The host of the public URL.
    pub(crate) fn public_host(&self) -> Option<String> {
        Url::parse(&self.resource).ok()?.host_str().map(str::to_owned)
    }

    /// Fetches the keys of the authorization server, and renews them while the gateway runs. Never returns.
    pub(crate) async fn refresh_keys(&self) -> Infallible {
        // A token whose key was removed must not stay in the cache.
        self.keys.run(|| self.verified.lock().clear()).await
    }

    /// Fetches the key of a token, if it is unknown.
    pub(crate) async fn fetch_missing_key(&self, authorization: Option<&[u8]>) {
        let Some(token) = bearer_token(authorization).filter(|token| token.len() <= MAX_TOKEN_BYTES) else {
            return;
        };
        if self.verified.lock().contains(&blake3::hash(token)) {
            return;
        }
        if let Ok(header) = decode_header(token) {
            self.keys.fetch_if_unknown(&header).await;
        }
    }

    /// Checks the value of an `Authorization` header for a request to a server, or to the whole catalog.
    pub(crate) fn admit(
        &self,
        authorization: Option<&[u8]>,
        server: Option<&str>,
    ) -> Result<Arc<AccessGrant>, TokenRefusal> {
        let token = bearer_token(authorization).ok_or(TokenRefusal::Missing)?;
        let hash = blake3::hash(token);
        let known = self.verified.lock().get(&hash).filter(|grant| grant.remaining_seconds() > 0).cloned();
        let grant = match known {
            Some(grant) => grant,
            None => {
                let grant = Arc::new(self.verify(token)?);
                self.verified.lock().put(hash, Arc::clone(&grant));
                grant
            }
        };
        let is_for = |resource: &str| grant.audiences.iter().any(|audience| audience == resource);
        if is_for(&self.resource) || server.is_some_and(|server| is_for(&self.resource_of(Some(server)))) {
            Ok(grant)
        } else {
            Err(TokenRefusal::Invalid("the access token is for another resource"))
        }
    }

    /// Verifies a token that is not in the cache.
    fn verify(&self, token: &[u8]) -> Result<AccessGrant, TokenRefusal> {
        let invalid = TokenRefusal::Invalid;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid("the access token is too long"));
        }
        let header = decode_header(token)
            .map_err(|_| invalid("the access token is not a JWT, or its algorithm is unknown"))?;
        check_header(&header).map_err(invalid)?;
        let keys = self.keys.current().ok_or(TokenRefusal::Unavailable)?;
        let key = keys.find(&header).ok_or(invalid("the access token is signed with an unknown key"))?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        // Checked for each request, because each server of the gateway is a resource of its own.
        validation.validate_aud = false;
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&self.issuer]);
        let claims = jsonwebtoken::decode::<Claims>(token, key, &validation)
            .map_err(|error| invalid(claims::rejection_reason(error.kind())))?
            .claims;
        if claims.is_key_bound() {
            return Err(invalid(
                "the access token is bound to a key, and the gateway takes no proofs of possession",
            ));
        }
        let subject = claims.subject().ok_or(invalid("the access token names no subject"))?;
        let principal = Principal::named(&format!("{} {subject}", self.issuer));
        let scopes = claims.scopes();
        let views = self.scopes.views_of(&scopes).ok_or(TokenRefusal::InsufficientScope)?;
        let scope = match views.is_empty() {
            true => Arc::clone(&self.gateway_scope),
            false => Arc::new(Scope { granted: views, ..(*self.gateway_scope).clone() }),
        };
        let audiences = claims.audiences(&self.resource);
        let issued_at = claims.issued_at();
        Ok(AccessGrant { principal, scope, scopes, audiences, issued_at, expires_at: claims.expires_at() })
    }

    /// Returns the first scope that a token lacks and whose views satisfy `shows`. `None` if there is none.
    pub(crate) fn missing_scope(
        &self,
        grant: &AccessGrant,
        shows: impl Fn(Vec<mcp_host_registry::ViewFilter>) -> bool,
    ) -> Option<&str> {
        self.scopes.first_missing_scope(&grant.scopes, shows)
    }

    /// The value of `WWW-Authenticate` for a refused request. `scope` replaces the scope that clients request first.
    pub(crate) fn challenge(
        &self,
        refusal: TokenRefusal,
        server: Option<&str>,
        scope: Option<&str>,
    ) -> String {
        let mut challenge = "Bearer ".to_owned();
        let error = match refusal {
            TokenRefusal::Missing | TokenRefusal::Unavailable => None,
            TokenRefusal::Invalid(_) => Some("invalid_token"),
            TokenRefusal::InsufficientScope => Some("insufficient_scope"),
        };
        if let Some(error) = error {
            // The messages have no quotation marks.
            challenge.push_str(&format!("error=\"{error}\", error_description=\"{}\", ", refusal.message()));
        }
        if let Some(scope) = scope.or(self.scopes.default_scope()) {
            challenge.push_str(&format!("scope=\"{scope}\", "));
        }
        let TokenVerifier { metadata_root: root, resource_path: path, .. } = self;
        challenge.push_str(&format!("resource_metadata=\"{root}{path}{}\"", path_segment(server)));
        challenge
    }

    /// The protected-resource metadata at a path of the gateway; `None` if the path is another one.
    pub(crate) fn metadata(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(METADATA_PATH)?;
        // A proxy may map the public path to `/mcp`. At the root there is the metadata of the whole catalog.
        let public = self.resource_path.as_str();
        let below = |prefix: &&str| {
            rest.strip_prefix(*prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let prefixes = [public, "/mcp"];
        let rest = match prefixes.iter().filter(|prefix| !prefix.is_empty()).find_map(below) {
            Some(rest) => rest,
            None if rest.is_empty() || public.is_empty() => rest,
            None => return None,
        };
        let server = match rest.strip_prefix('/') {
            None => None,
            Some(name) if !name.is_empty() && !name.contains('/') && name.len() <= 3 * ServerId::MAX_LEN => {
                Some(percent_encoding::percent_decode_str(name).decode_utf8().ok()?)
            }
            Some(_) => return None,
        };
        let mut metadata = json!({
            "resource": self.resource_of(server.as_deref()),
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "mcp-host",
        });
        if let Some(scope) = self.scopes.default_scope() {
            metadata["scopes_supported"] = json!([scope]);
        }
        Some(metadata.to_string())
    }

    /// The resource identifier of a server, or of the whole catalog.
    fn resource_of(&self, server: Option<&str>) -> String {
        format!("{}{}", self.resource, path_segment(server))
    }
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenVerifier").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The path segment of a server with its slash; empty for the whole catalog.
fn path_segment(server: Option<&str>) -> String {
    server.map(|server| format!("/{}", utf8_percent_encode(server, SEGMENT_ENCODING))).unwrap_or_default()
}

/// Checks that a JWT may be an access token, and that its algorithm is accepted.
fn check_header(header: &Header) -> Result<(), &'static str> {
    let is_token = |name: &String| TOKEN_TYPES.iter().any(|known| name.eq_ignore_ascii_case(known));
    if !header.typ.as_ref().is_none_or(is_token) {
        return Err("the JWT is not an access token");
    }
    if header.crit.is_some() {
        return Err("the access token has critical extensions that are not supported");
    }
    match ring_verifier::accepted_algorithms().contains(&header.alg) {
        true => Ok(()),
        false => Err("the access token is not signed with an accepted algorithm"),
    }
}

/// Seconds since the epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_token_replaces_only_an_expired_one() {
        let grant = |issued_at: f64, expires_at: u64| AccessGrant {
            principal: Principal::named("ann"),
            scope: Arc::default(),
            scopes: Vec::new(),
            audiences: Vec::new(),
            issued_at,
            expires_at,
        };
        let valid = now() + 600;
        let check = |new: (f64, u64), old: (f64, u64), want: bool| {
            assert_eq!(grant(new.0, new.1).replaces(&grant(old.0, old.1)), want, "{new:?} {old:?}");
        };
        check((2.0, valid), (1.0, valid), true);
        check((1.0, valid), (2.0, valid), false);
        check((1.0, valid), (2.0, 1), true);
        // Without times, the last one counts.
        check((0.0, valid), (0.0, valid), true);
    }
}
