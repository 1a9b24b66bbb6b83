//! Checks the encoding of the pipes of a child process.

use encoding_rs::{Encoding, REPLACEMENT, UTF_16BE, UTF_16LE};

use crate::diagnostic::{CheckError, Code};

/// Checks an encoding: it is a WHATWG label of an encoding whose line feed is one byte.
pub(crate) fn check_encoding(label: &str) -> Result<(), CheckError> {
    let (message, help) = match Encoding::for_label(label.as_bytes()) {
        None => (
            "'encoding' names no known encoding",
            "write a label of the WHATWG encoding standard, such as utf-8, latin1, shift_jis, gbk",
        ),
        Some(found) if [UTF_16BE, UTF_16LE, REPLACEMENT].contains(&found) => (
            "'encoding' names an encoding that cannot be used on a pipe",
            "remove it; nearly every server uses utf-8",
        ),
        Some(_) => return Ok(()),
    };
    Err(CheckError::new(Code::UnknownEncoding, message, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_020_encoding_must_be_supported() {
        for label in ["utf-8", "UTF8", "latin1", "shift_jis", "gbk", " utf-8 "] {
            assert_eq!(check_encoding(label), Ok(()), "{label}");
        }
        for label in ["nope", "", "latin-1", "utf-16", "utf-16le", "iso-2022-kr"] {
            assert!(check_encoding(label).is_err(), "{label}");
        }
    }
}
