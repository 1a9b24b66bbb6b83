//! Checks for HTTP headers (RFC 9110). A value must not be able to add a header or to end the request.

use crate::diagnostic::{CheckError, Code};

/// Checks the name of a header: it is a token of RFC 9110.
pub(crate) fn check_header_name(name: &str) -> Result<(), CheckError> {
    let is_token_byte = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    if !name.is_empty() && name.bytes().all(is_token_byte) {
        return Ok(());
    }
    Err(CheckError::new(
        Code::InvalidHeader,
        "a header's name must be one word of ASCII letters, digits and hyphens",
        "write the name without spaces and punctuation, such as X-Api-Key",
    ))
}

/// The part of mcp-host that sets a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderOwner {
    /// The configuration.
    User,
    /// The MCP transport. A configured value is ignored.
    Transport,
    /// The HTTP connection. A configured value would break the request.
    Connection,
}

/// Returns the owner of the header with this name.
pub(crate) fn header_owner(name: &str) -> HeaderOwner {
    const OF_TRANSPORT: [&str; 7] = [
        "accept",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
    ];
    const OF_CONNECTION: [&str; 3] = ["content-length", "host", "transfer-encoding"];
    let among = |names: &[&str]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
    if among(&OF_CONNECTION) {
        HeaderOwner::Connection
    } else if among(&OF_TRANSPORT) {
        HeaderOwner::Transport
    } else {
        HeaderOwner::User
    }
}

/// Checks the value of a header: it contains no control characters except tabs.
pub(crate) fn check_header_value(value: &str) -> Result<(), CheckError> {
    if !value.chars().any(|it| it.is_control() && it != '\t') {
        return Ok(());
    }
    Err(CheckError::new(
        Code::InvalidHeader,
        "a header's value must be one line without control characters",
        "remove the line break; a block scalar ends with one unless it begins with `|-`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_022_names_are_tokens_and_values_are_lines() {
        for name in ["Authorization", "X-Api-Key", "a1_.~"] {
            assert_eq!(check_header_name(name), Ok(()), "{name}");
        }
        for name in ["", "Bad Header", "a:b", "\u{e9}", "a\r\nb"] {
            assert!(check_header_name(name).is_err(), "{name}");
        }
        for value in ["", "Bearer x", "a\tb", "\u{e9}"] {
            assert_eq!(check_header_value(value), Ok(()), "{value}");
        }
        for value in ["a\r\nX-Evil: 1", "a\n", "a\0"] {
            assert!(check_header_value(value).is_err(), "{value:?}");
        }
    }
}
