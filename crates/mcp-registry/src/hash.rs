//! Content hashes over length-prefixed fields. The prefixes make the encoding unambiguous, and the hash does not
//! depend on a library's map order.

use derive_more::{Debug, Display};
use serde::{Serialize, Serializer};

/// The blake3 hash of a catalog's content, printed in hexadecimal.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[display("{}", blake3::Hash::from_bytes(*_0).to_hex())]
#[debug("{self}")]
pub struct CatalogHash([u8; 32]);

impl CatalogHash {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Serialize for CatalogHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Encodes fields into a hash. The purpose is hashed first, so that hashes of different kinds never collide.
pub(crate) struct Encoder(blake3::Hasher);

impl Encoder {
    pub(crate) fn new(purpose: &str) -> Encoder {
        let mut res = Encoder(blake3::Hasher::new());
        res.text(purpose);
        res
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    pub(crate) fn hash(self) -> CatalogHash {
        CatalogHash(self.finish())
    }
}
