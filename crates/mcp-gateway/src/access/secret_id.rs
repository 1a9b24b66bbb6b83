//! Unguessable identifiers of sessions and pending calls.

/// 192 random bits in 48 hexadecimal digits.
///
/// # Panics
///
/// If the system provides no randomness, because no identifier would be safe.
pub(crate) fn secret_id() -> String {
    let [first, second, third] = [(); 3].map(|()| getrandom::u64().expect("the system provides randomness"));
    format!("{first:016x}{second:016x}{third:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let (first, second) = (secret_id(), secret_id());
        assert!(first != second && first.len() == 48 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
