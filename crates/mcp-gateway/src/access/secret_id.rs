//! Unguessable identifiers of sessions and pending calls, and keyed hashes that seal what clients hold.

/// The length of a [`keyed_hash`] in hexadecimal digits.
pub(crate) const HASH_DIGITS: usize = 64;

/// Generates an identifier: 192 random bits in 48 hexadecimal digits.
///
/// # Panics
///
/// If the system provides no randomness, because no identifier would be safe.
pub(crate) fn new_secret_id() -> String {
    let [first, second, third] = [(); 3].map(|()| getrandom::u64().expect("the system provides randomness"));
    format!("{first:016x}{second:016x}{third:016x}")
}

/// A hash of these texts that only a holder of the key can compute. Comparing two hashes takes constant time.
pub(crate) fn keyed_hash(key: &[u8; 32], texts: &[&str]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let (first, second) = (new_secret_id(), new_secret_id());
        assert!(first != second && first.len() == 48 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
