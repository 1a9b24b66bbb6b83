//! Proofs of possession (DPoP, RFC 9449): a JWT for each request, signed with the key that its token is bound to.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mcp_host_model::Secret;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use url::Url;

use crate::jwt;

/// The algorithm of all proofs.
pub(crate) const ALGORITHM: &str = "ES256";

/// The private key of one login. Tokens that are bound to it are useless without it.
#[derive(Clone)]
pub struct ProofKey(Arc<StoredKeyPair>);

struct StoredKeyPair {
    pair: EcdsaKeyPair,
    /// The key in PKCS#8 and Base64, for a token store.
    stored_form: Secret,
}

/// A request for which a proof is made.
pub(crate) struct ProvenRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a Url,
    /// The access token; `None` for a request to a token endpoint.
    pub(crate) token: Option<&'a Secret>,
    /// The body that the proof is for. The profile for MCP binds it to requests with a token.
    pub(crate) body: Option<&'a [u8]>,
    /// The nonce that the server requested.
    pub(crate) nonce: Option<&'a str>,
}

impl ProofKey {
    /// A new key. `None` if the system provides no randomness.
    pub(crate) fn generate() -> Option<ProofKey> {
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).ok()?;
        ProofKey::from_pkcs8(document.as_ref())
    }

    /// Reads the text of a token store.
    pub(crate) fn from_stored(text: &str) -> Option<ProofKey> {
        ProofKey::from_pkcs8(&STANDARD.decode(text).ok()?)
    }

    fn from_pkcs8(bytes: &[u8]) -> Option<ProofKey> {
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new()).ok()?;
        Some(ProofKey(Arc::new(StoredKeyPair { pair, stored_form: Secret::new(STANDARD.encode(bytes)) })))
    }

    /// The key as text for a token store.
    pub(crate) fn stored_form(&self) -> &Secret {
        &self.0.stored_form
    }

    /// Makes a proof for one request at `now` (seconds since the epoch). `None` if the system provides no randomness.
    pub(crate) fn prove(&self, request: &ProvenRequest<'_>, now: u64) -> Option<String> {
        let header = json!({"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self.public_key()});
        let mut url = request.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let id = jwt::random_id()?;
        let mut claims = json!({"jti": id, "htm": request.method, "htu": url.as_str(), "iat": now});
        let hash = |bytes: &[u8]| digest(&SHA256, bytes);
        if let Some(token) = request.token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(hash(token.expose().as_bytes())).into();
        }
        if let Some(body) = request.body {
            claims["content_digest"] = format!("sha-256=:{}:", STANDARD.encode(hash(body))).into();
        }
        if let Some(nonce) = request.nonce {
            claims["nonce"] = nonce.into();
        }
        let sign = |text: &[u8]| Some(self.0.pair.sign(&SystemRandom::new(), text).ok()?.as_ref().to_vec());
        jwt::sign_jwt(&header, &claims, sign)
    }

    /// The public key as a JWK.
    fn public_key(&self) -> Value {
        // An uncompressed point: a byte 4, x, y.
        let (x, y) = self.0.pair.public_key().as_ref()[1..].split_at(32);
        json!({"kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
    }
}

impl PartialEq for ProofKey {
    fn eq(&self, other: &ProofKey) -> bool {
        self.stored_form() == other.stored_form()
    }
}

impl Eq for ProofKey {}

impl fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProofKey")
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    fn decode(part: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(part).unwrap()
    }

    /// The claims of a proof, after its signature was verify with the key in its header.
    fn verify(proof: &str) -> Value {
        let (text, signature) = proof.rsplit_once('.').unwrap();
        let (header, claims) = text.split_once('.').unwrap();
        let header: Value = serde_json::from_slice(&decode(header)).unwrap();
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        let part = |name: &str| decode(header["jwk"][name].as_str().unwrap());
        let point = [vec![4], part("x"), part("y")].concat();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(text.as_bytes(), &decode(signature)).unwrap();
        serde_json::from_slice(&decode(claims)).unwrap()
    }

    #[test]
    fn proof_is_for_one_request_of_the_stored_key() {
        let key = ProofKey::from_stored(ProofKey::generate().unwrap().stored_form().expose()).unwrap();
        let url = "https://example.com/mcp?key=secret#part".parse().unwrap();
        // The hash of the token is the one of RFC 9449, section 7.1; the digest that of RFC 9530, appendix D.
        let token = Secret::from("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
        let body: &[u8] = b"{\"hello\": \"world\"}\n";
        let (token, body) = (Some(&token), Some(body));
        let request = ProvenRequest { method: "POST", url: &url, token, body, nonce: Some("n") };
        let first = verify(&key.prove(&request, 7).unwrap());
        let digest = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
        let want = json!({
            "jti": first["jti"], "htm": "POST", "htu": "https://example.com/mcp", "iat": 7, "nonce": "n",
            "ath": "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo", "content_digest": digest,
        });
        assert_eq!(first, want);
        assert_ne!(verify(&key.prove(&request, 7).unwrap())["jti"], first["jti"]);

        let plain = ProvenRequest { token: None, body: None, nonce: None, ..request };
        let claims = verify(&key.prove(&plain, 7).unwrap());
        assert_eq!(claims.as_object().unwrap().len(), 4, "{claims}");
        assert_eq!(ProofKey::from_stored("AAAA"), None);
    }
}
