//! Checks for a child process: arguments and environment.

use crate::diagnostic::{CheckError, Code};

/// Checks the name of an environment variable: it is not empty and contains no `=` and no NUL.
pub(crate) fn check_env_name(name: &str) -> Result<(), CheckError> {
    if !name.is_empty() && !name.contains(['=', '\0']) {
        return Ok(());
    }
    Err(CheckError::new(
        Code::InvalidProcessText,
        "the name of an environment variable must not be empty or contain `=` or NUL",
        "write the name as the key, and the value after the colon",
    ))
}

/// Checks the value of an environment variable: it contains no NUL.
pub(crate) fn check_env_value(value: &str) -> Result<(), CheckError> {
    check_no_nul(value, "the value of an environment variable must not contain NUL")
}

/// Checks an argument: it contains no NUL.
pub(crate) fn check_argument(value: &str) -> Result<(), CheckError> {
    check_no_nul(value, "an argument must not contain NUL")
}

/// Checks that a text contains no NUL.
fn check_no_nul(value: &str, message: &str) -> Result<(), CheckError> {
    if !value.contains('\0') {
        return Ok(());
    }
    Err(CheckError::new(Code::InvalidProcessText, message, "remove the character `\\0`"))
}

/// Returns whether a path is absolute on some system: `/x`, `C:\x`, `\\server\x`.
pub(crate) fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    drive || path.starts_with('/') || path.starts_with("\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acp_022_a_path_is_absolute_by_the_rules_of_any_system() {
        for path in ["/", "/usr/bin/npx", "C:\\x.exe", "d:/x", "\\\\server\\share"] {
            assert!(is_absolute(path), "{path}");
        }
        for path in ["", "npx", "./x", "~/x", "C:x", "\\x", "1:/x", "$HOME/x"] {
            assert!(!is_absolute(path), "{path}");
        }
    }

    #[test]
    fn hd_016_text_that_no_process_can_receive_is_rejected() {
        assert_eq!(check_env_name("A B"), Ok(()));
        for name in ["", "A=B", "A\0"] {
            assert!(check_env_name(name).is_err(), "{name:?}");
        }
        assert!(check_env_value("\0").is_err());
        assert!(check_argument("\0").is_err());
        assert_eq!(check_argument(""), Ok(()));
    }
}
