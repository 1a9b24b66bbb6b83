//! Unguessable identifiers of sessions and pending calls.

use std::fmt::Write as _;

/// 192 random bits in 48 hexadecimal digits.
///
/// # Panics
///
/// If the system provides no randomness, because no identifier would be safe.
pub(crate) fn secret_id() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system gives randomness");
    bytes.iter().fold(String::with_capacity(48), |mut res, it| {
        write!(res, "{it:02x}").expect("a String takes everything");
        res
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let (one, other) = (secret_id(), secret_id());
        assert!(one != other && one.len() == 48 && one.bytes().all(|it| it.is_ascii_hexdigit()));
    }
}
