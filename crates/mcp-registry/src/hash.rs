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

/// Hashes fields.
pub(crate) struct HashEncoder(blake3::Hasher);

impl HashEncoder {
    /// An encoder that hashes `purpose` first, so that hashes for different purposes never collide.
    pub(crate) fn new(purpose: &str) -> HashEncoder {
        let mut res = HashEncoder(blake3::Hasher::new());
        res.write_text(purpose);
        res
    }

    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        self.write_number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(crate) fn write_text(&mut self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    pub(crate) fn write_number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub(crate) fn finish(self) -> CatalogHash {
        CatalogHash(self.0.finalize().into())
    }
}
