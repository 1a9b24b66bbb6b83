//! A check of Base64 without decoding it.

/// The characters that are checked at once. The compiler makes vector instructions of them.
const CHUNK: usize = 64;

/// Returns whether a text is Base64 of the standard alphabet, with or without padding.
pub fn is_base64_text(text: &[u8]) -> bool {
    let unpadded = text.strip_suffix(b"=").map_or(text, |rest| rest.strip_suffix(b"=").unwrap_or(rest));
    let is_whole = text.len() == unpadded.len() || text.len().is_multiple_of(4);
    let is_valid = |byte: &u8| byte.is_ascii_alphanumeric() | (*byte == b'+') | (*byte == b'/');
    let is_valid_chunk = |chunk: &[u8]| chunk.iter().fold(true, |valid, byte| valid & is_valid(byte));
    is_whole && unpadded.len() % 4 != 1 && unpadded.chunks(CHUNK).all(is_valid_chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_base64_is_accepted() {
        for text in ["", "aGk=", "aGk", "aA==", "AAECAw+/", &"A".repeat(200)] {
            assert!(is_base64_text(text.as_bytes()), "{text}");
        }
        for text in ["a", "aG=k", "aGk==", "=", "a_k-", "%%%not base64", "aGk\n", &("A".repeat(199) + "é")] {
            assert!(!is_base64_text(text.as_bytes()), "{text}");
        }
    }
}
