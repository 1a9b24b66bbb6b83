//! Private keys of clients, which sign JWTs.

use std::fmt;
use std::sync::Arc;

use mcp_host_model::Secret;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::jwt;

/// A private key that signs with the algorithm of its kind: ES256, ES384, EdDSA, or RS256.
#[derive(Clone)]
pub struct PrivateKey {
    pair: Arc<KeyPair>,
    /// The key id at the authorization server.
    id: Option<String>,
}

enum KeyPair {
    /// With the name of its algorithm.
    Ecdsa(EcdsaKeyPair, &'static str),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// A text that is not a usable private key. The message does not quote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not an unencrypted private key in PEM form: EC P-256, EC P-384, Ed25519 or RSA")]
#[non_exhaustive]
pub struct InvalidPrivateKey;

impl PrivateKey {
    /// Reads a PEM file's text. `id` is the key id at the authorization server, if it needs one.
    pub fn from_pem(text: &Secret, id: Option<&str>) -> Result<PrivateKey, InvalidPrivateKey> {
        let der = PrivateKeyDer::from_pem_slice(text.expose().as_bytes()).map_err(|_| InvalidPrivateKey)?;
        let (random, bytes) = (SystemRandom::new(), der.secret_der());
        let ecdsa = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, bytes, &random).ok();
        let key = match &der {
            PrivateKeyDer::Pkcs1(_) => RsaKeyPair::from_der(bytes).ok().map(KeyPair::Rsa),
            PrivateKeyDer::Pkcs8(_) => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING)
                .map(|key| KeyPair::Ecdsa(key, "ES256"))
                .or_else(|| ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING).map(|key| KeyPair::Ecdsa(key, "ES384")))
                .or_else(|| Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes).ok().map(KeyPair::Ed25519))
                .or_else(|| RsaKeyPair::from_pkcs8(bytes).ok().map(KeyPair::Rsa)),
            _ => None,
        };
        Ok(PrivateKey { pair: Arc::new(key.ok_or(InvalidPrivateKey)?), id: id.map(str::to_owned) })
    }

    /// Signs a JWT with these claims. `None` if the system provides no randomness.
    pub(crate) fn sign_claims(&self, claims: &Value) -> Option<String> {
        let algorithm = match &*self.pair {
            KeyPair::Ecdsa(_, algorithm) => algorithm,
            KeyPair::Ed25519(_) => "EdDSA",
            KeyPair::Rsa(_) => "RS256",
        };
        let mut header = json!({"alg": algorithm, "typ": "JWT"});
        if let Some(id) = &self.id {
            header["kid"] = json!(id);
        }
        let random = SystemRandom::new();
        jwt::sign_jwt(&header, claims, |text| match &*self.pair {
            KeyPair::Ecdsa(key, _) => Some(key.sign(&random, text).ok()?.as_ref().to_vec()),
            KeyPair::Ed25519(key) => Some(key.sign(text).as_ref().to_vec()),
            KeyPair::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).ok()?;
                Some(signature)
            }
        })
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}
