//! The keys of the authorization server: fetched, cached and renewed.
//!
//! One task ([`KeyCache::run`]) fetches them. A token with an unknown key requests another fetch, at most once in
//! [`MIN_INTERVAL`], so that forged tokens cause no flood of requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header};
use mcp_host_model::internal::is_loopback;
use mcp_host_transport::Authorities;
use mcp_host_transport::internal::fetch_json;
use serde::Deserialize;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

/// Minimum time between two fetches.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// How long the keys are used before they are fetched again.
const MAX_AGE: Duration = Duration::from_secs(15 * 60);
/// How long a request waits for keys.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// Time limit of one fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a fetched document in bytes.
const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
/// Maximum number of keys. Further ones are ignored.
const MAX_KEYS: usize = 64;
/// Maximum length of another server's text in a message, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// A cache of the keys of an issuer.
pub(super) struct KeyCache {
    issuer: String,
    authorities: Authorities,
    state: watch::Sender<KeyState>,
    /// Notified to request a fetch.
    fetch_request: Notify,
}

/// The result of the latest fetches.
#[derive(Default)]
struct KeyState {
    /// The keys of the last fetch that succeeded.
    keys: Option<Arc<KeySet>>,
    /// When the last fetch ended.
    fetched_at: Option<Instant>,
}

/// Keys that can verify signatures.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<PublicKey>,
    hash: blake3::Hash,
}

/// A public key that can verify signatures.
#[derive(Debug)]
struct PublicKey {
    id: Option<String>,
    /// The only algorithm that it may be used with, if the set names one.
    algorithm: Option<String>,
    key: DecodingKey,
}

impl KeyCache {
    pub(super) fn new(issuer: String, authorities: Authorities) -> KeyCache {
        KeyCache { issuer, authorities, state: watch::Sender::default(), fetch_request: Notify::new() }
    }

    /// The current keys; `None` before the first fetch that succeeds.
    pub(super) fn current(&self) -> Option<Arc<KeySet>> {
        self.state.borrow().keys.clone()
    }

    /// Requests a fetch and waits for it if the key of a token is unknown, unless the last fetch ended less than
    /// [`MIN_INTERVAL`] ago. Cancel-safe.
    pub(super) async fn fetch_if_unknown(&self, header: &Header) {
        let mut state = self.state.subscribe();
        {
            let state = state.borrow_and_update();
            let is_known = state.keys.as_ref().is_some_and(|keys| keys.find(header).is_some());
            if is_known || state.fetched_at.is_some_and(|at| at.elapsed() < MIN_INTERVAL) {
                return;
            }
        }
        self.fetch_request.notify_one();
        // After a timeout, the caller finds no key.
        let _ = timeout(MAX_WAIT, state.changed()).await;
    }

    /// Fetches the keys at once, when they are old, and when a fetch is requested. Never returns. `on_change` is called
    /// when the keys have changed.
    pub(super) async fn run(&self, on_change: impl Fn()) -> Infallible {
        let mut has_failed = false;
        loop {
            let fetched = self.fetch_keys().await;
            match &fetched {
                Ok(_) if !std::mem::take(&mut has_failed) => {}
                Ok(_) => tracing::info!(
                    issuer = self.issuer,
                    "the keys of the authorization server can be fetched again"
                ),
                Err(error) if !std::mem::replace(&mut has_failed, true) => {
                    tracing::warn!(
                        issuer = self.issuer,
                        "cannot fetch the keys of the authorization server: {error}"
                    );
                }
                Err(_) => {}
            }
            let pause = if has_failed { MIN_INTERVAL } else { MAX_AGE };
            let mut is_changed = false;
            self.state.send_modify(|state| {
                state.fetched_at = Some(Instant::now());
                if let Ok(keys) = fetched {
                    is_changed = state.keys.as_ref().is_none_or(|old| old.hash != keys.hash);
                    state.keys = Some(Arc::new(keys));
                }
            });
            if is_changed {
                on_change();
            }
            sleep(MIN_INTERVAL).await;
            let _ = timeout(pause, self.fetch_request.notified()).await;
        }
    }

    /// Fetches the key set of the issuer.
    async fn fetch_keys(&self) -> Result<KeySet, String> {
        let url = self.discover_key_url().await?;
        let document =
            self.fetch(&url).await.map_err(|error| format!("{}: {error}", clean_text(url.as_str())))?;
        KeySet::read(&document).map_err(|error| format!("{}: {error}", clean_text(url.as_str())))
    }

    /// Reads the URL of the key set from the metadata of the issuer.
    async fn discover_key_url(&self) -> Result<Url, String> {
        #[derive(Deserialize)]
        struct MetadataJson {
            issuer: String,
            jwks_uri: Option<Url>,
        }
        let mut failure = String::new();
        for url in metadata_urls(&self.issuer) {
            let document = match self.fetch(&url).await {
                Ok(document) => document,
                Err(error) => {
                    failure = format!("{}: {error}", clean_text(url.as_str()));
                    continue;
                }
            };
            let invalid = |error: String| format!("{}: {error}", clean_text(url.as_str()));
            let MetadataJson { issuer, jwks_uri } = serde_json::from_slice(&document)
                .map_err(|_| invalid("it is not the metadata of an authorization server".to_owned()))?;
            if issuer != self.issuer {
                return Err(invalid(wrong_issuer_message(&self.issuer, &clean_text(&issuer))));
            }
            let keys = jwks_uri.ok_or_else(|| invalid("it names no `jwks_uri`".to_owned()))?;
            // Plain http is allowed if both are on this machine.
            let is_local = is_loopback(&keys) && Url::parse(&self.issuer).is_ok_and(|url| is_loopback(&url));
            return match keys.scheme() == "https" || (keys.scheme() == "http" && is_local) {
                true => Ok(keys),
                false => Err(invalid("its `jwks_uri` is not https".to_owned())),
            };
        }
        Err(failure)
    }

    async fn fetch(&self, url: &Url) -> Result<Vec<u8>, String> {
        fetch_json(url, &self.authorities, MAX_DOCUMENT_BYTES, FETCH_TIMEOUT).await
    }
}

impl KeySet {
    /// Reads a key set. Keys that cannot verify signatures are left out.
    fn read(document: &[u8]) -> Result<KeySet, &'static str> {
        #[derive(Deserialize)]
        struct KeySetJson {
            keys: Vec<serde_json::Value>,
        }
        let set: KeySetJson = serde_json::from_slice(document).map_err(|_| "it is not a JSON Web Key Set")?;
        let keys: Vec<PublicKey> = set.keys.into_iter().filter_map(PublicKey::read).take(MAX_KEYS).collect();
        match keys.is_empty() {
            true => Err("it contains no public key for signatures"),
            false => Ok(KeySet { keys, hash: blake3::hash(document) }),
        }
    }

    /// Finds the key of a token. For a token without a key id, it must be the only key that the algorithm allows.
    pub(super) fn find(&self, header: &Header) -> Option<&DecodingKey> {
        let fits =
            |key: &&PublicKey| (header.kid.is_none() || key.id == header.kid) && key.allows(header.alg);
        let mut fitting = self.keys.iter().filter(fits);
        let first = fitting.next()?;
        (header.kid.is_some() || fitting.next().is_none()).then_some(&first.key)
    }
}

impl PublicKey {
    /// Reads a key. `None` if it cannot verify signatures.
    fn read(json: serde_json::Value) -> Option<PublicKey> {
        let algorithm = json.get("alg").and_then(|alg| alg.as_str()).map(str::to_owned);
        let jwk: Jwk = serde_json::from_value(json).ok()?;
        let is_for_signatures = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let is_public = key.family() != AlgorithmFamily::Hmac;
        (is_for_signatures && is_public).then(|| PublicKey { id: jwk.common.key_id, algorithm, key })
    }

    /// Whether the key may be used with this algorithm.
    fn allows(&self, algorithm: Algorithm) -> bool {
        let is_family = self.key.family().algorithms().contains(&algorithm);
        // The names of algorithms are those of their variants.
        is_family && self.algorithm.as_ref().is_none_or(|only| *only == format!("{algorithm:?}"))
    }
}

/// The URLs at which the metadata of an issuer can be, in the order of the MCP specification.
fn metadata_urls(issuer: &str) -> Vec<Url> {
    let Ok(url) = Url::parse(issuer) else { return Vec::new() };
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    paths.into_iter().filter_map(|path| url.join(&path).ok()).collect()
}

/// The message for metadata of another issuer than the configured one. The two are compared as texts, as in the tokens.
fn wrong_issuer_message(configured: &str, found: &str) -> String {
    let differs_by_slash =
        configured.strip_suffix('/') == Some(found) || found.strip_suffix('/') == Some(configured);
    let remedy = match differs_by_slash {
        true if found.ends_with('/') => format!(", with a slash at its end: configure `--auth {found}`"),
        true => format!(", without a slash at its end: configure `--auth {found}`"),
        false => String::new(),
    };
    format!("it is the metadata of the issuer {found:?}{remedy}")
}

/// Shortens another server's text for a message, and removes control characters.
fn clean_text(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_searched_in_the_order_of_the_specification() {
        let urls = |issuer| metadata_urls(issuer).iter().map(Url::to_string).collect::<Vec<_>>().join(" ");
        let at = "https://id.example/.well-known";
        assert_eq!(
            urls("https://id.example"),
            format!("{at}/oauth-authorization-server {at}/openid-configuration")
        );
        assert_eq!(
            urls("https://id.example/a/"),
            format!(
                "{at}/oauth-authorization-server/a {at}/openid-configuration/a \
                 https://id.example/a/.well-known/openid-configuration"
            )
        );
    }

    // RPT-155
    #[test]
    fn slash_that_makes_another_issuer_is_named() {
        #[track_caller]
        fn check(configured: &str, found: &str, want: &str) {
            let message = wrong_issuer_message(configured, found);
            assert_eq!(message.strip_prefix("it is the metadata of the issuer ").unwrap(), want);
        }
        let (without, with) = ("https://id.example", "https://id.example/");
        check(
            without,
            with,
            "\"https://id.example/\", with a slash at its end: configure `--auth https://id.example/`",
        );
        check(
            with,
            without,
            "\"https://id.example\", without a slash at its end: configure `--auth https://id.example`",
        );
        check(without, "https://other.example/", "\"https://other.example/\"");
    }

    #[test]
    fn only_public_signature_keys_are_used() {
        let read = |keys: &str| KeySet::read(format!("{{\"keys\":[{keys}]}}").as_bytes());
        let octets = r#"{"kty":"oct","kid":"a","k":"c2VjcmV0"}"#;
        assert_eq!(read(octets).unwrap_err(), "it contains no public key for signatures");
        let ed = |id: &str, more: &str| {
            format!(
                r#"{{"kty":"OKP","crv":"Ed25519","kid":"{id}","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"{more}}}"#
            )
        };
        assert!(read(&ed("a", r#","use":"enc""#)).is_err());
        let set = read(&format!("{octets},{{}},{},{}", ed("b", ""), ed("c", r#","alg":"EdDSA""#))).unwrap();
        let finds = |kid: Option<&str>, alg| {
            let header = Header { kid: kid.map(str::to_owned), ..Header::new(alg) };
            set.find(&header).is_some()
        };
        assert!(finds(Some("b"), Algorithm::EdDSA) && finds(Some("c"), Algorithm::EdDSA));
        assert!(!finds(Some("a"), Algorithm::HS256) && !finds(Some("b"), Algorithm::HS256));
        assert!(!finds(Some("d"), Algorithm::EdDSA) && !finds(None, Algorithm::EdDSA));
    }
}
