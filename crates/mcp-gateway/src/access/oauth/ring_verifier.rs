//! The cryptography provider of jsonwebtoken: verifies signatures with ring.
//!
//! Only asymmetric signatures: a key of the authorization server never verifies an HMAC.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{self as ring_signature, RsaParameters, RsaPublicKeyComponents, VerificationAlgorithm};

/// The accepted algorithms, each with its check.
const ALGORITHMS: [(Algorithm, SignatureCheck); 9] = [
    (Algorithm::RS256, SignatureCheck::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256)),
    (Algorithm::RS384, SignatureCheck::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384)),
    (Algorithm::RS512, SignatureCheck::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512)),
    (Algorithm::PS256, SignatureCheck::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256)),
    (Algorithm::PS384, SignatureCheck::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384)),
    (Algorithm::PS512, SignatureCheck::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512)),
    (Algorithm::ES256, SignatureCheck::Curve(AlgorithmFamily::Ec, &ring_signature::ECDSA_P256_SHA256_FIXED)),
    (Algorithm::ES384, SignatureCheck::Curve(AlgorithmFamily::Ec, &ring_signature::ECDSA_P384_SHA384_FIXED)),
    (Algorithm::EdDSA, SignatureCheck::Curve(AlgorithmFamily::Ed, &ring_signature::ED25519)),
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: create_verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// How ring verifies the signatures of an algorithm.
#[derive(Clone, Copy)]
enum SignatureCheck {
    Rsa(&'static RsaParameters),
    Curve(AlgorithmFamily, &'static dyn VerificationAlgorithm),
}

/// Verifies signatures of one algorithm with one key.
struct RingVerifier {
    algorithm: Algorithm,
    check: SignatureCheck,
    key: DecodingKey,
}

/// Installs this as the cryptography provider of jsonwebtoken, unless the program has installed another one.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// The accepted algorithms.
pub(super) fn accepted_algorithms() -> Vec<Algorithm> {
    ALGORITHMS.iter().map(|(algorithm, _)| *algorithm).collect()
}

fn create_verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let known = ALGORITHMS.iter().find(|(known, _)| known == algorithm);
    let (algorithm, check) = *known.ok_or(ErrorKind::UnsupportedAlgorithm)?;
    let family = match check {
        SignatureCheck::Rsa(_) => AlgorithmFamily::Rsa,
        SignatureCheck::Curve(family, _) => family,
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier { algorithm, check, key: key.clone() }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let result = match (self.check, self.key.kind()) {
            (SignatureCheck::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (SignatureCheck::Curve(_, curve), DecodingKeyKind::SecretOrDer(point)) => {
                ring_signature::UnparsedPublicKey::new(curve, point).verify(message, signature)
            }
            (SignatureCheck::Rsa(_) | SignatureCheck::Curve(..), _) => Err(ring::error::Unspecified),
        };
        result.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
