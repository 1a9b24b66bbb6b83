//! Checks http and https URLs without a URL library, for a build without the feature `files`.
//!
//! A parser of URLs with internationalized hosts needs thirty crates. This check accepts what the parser accepts, and
//! a few hosts that it does not (`1.2.3.256`, invalid Punycode): connecting to them fails.

use std::net::Ipv6Addr;

use crate::diagnostic::CheckError;
use crate::dialect::checks::url_rule::{UrlRule, invalid_url, scheme_error};

/// Characters that a host cannot contain.
const FORBIDDEN_IN_HOSTS: &[char] = &['#', '/', ':', '<', '>', '?', '@', '[', '\\', ']', '^', '|'];

/// Checks an http or https URL.
pub(crate) fn check_http_url(text: &str) -> Result<(), CheckError> {
    let error = |reason| Err(invalid_url(UrlRule::Http, reason));
    if text.contains(|char: char| char.is_whitespace() || char.is_control()) {
        return error("it contains whitespace or a control character");
    }
    let (name, rest) = text.split_once(':').unwrap_or_default();
    if !["http", "https"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Err(scheme_error(UrlRule::Http));
    }
    let Some(rest) = rest.strip_prefix("//").filter(|rest| !rest.starts_with('/')) else {
        return error(if rest.trim_matches('/').is_empty() { "empty host" } else { "it has no host" });
    };
    // The parser reads a backslash as a slash, and skips those before the host.
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let (host, port) = match address.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((host, port))
                if host.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.starts_with(':')) =>
            {
                (host, port)
            }
            Some(_) | None => return error("invalid IPv6 address"),
        },
        None => {
            let (host, port) = address.split_at(address.find(':').unwrap_or(address.len()));
            if host.contains(FORBIDDEN_IN_HOSTS) {
                return error("invalid international domain name");
            }
            (host, port)
        }
    };
    if host.is_empty() {
        return error("empty host");
    }
    let is_port = match port.strip_prefix(':') {
        Some(digits) => {
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits.is_empty() || digits.parse::<u16>().is_ok())
        }
        None => port.is_empty(),
    };
    if is_port { Ok(()) } else { error("invalid port number") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dialect::checks::url;

    #[test]
    fn acp_023_both_builds_report_the_same() {
        for text in [
            "http://a.example",
            "HTTPS://a.example:8080/mcp?x=1#y",
            "https://user:pw@a.example/",
            "https://a@b@c.example/",
            "http://[::1]:8080/",
            "http://\u{e4}.example/\u{fc}",
            "http://a.example:",
            "http://a.example:00080/",
            "http://127.0.0.1\\x",
            "http://",
            "http:///",
            "http:",
            "https:a.example",
            "https:///x",
            "https://:80",
            "https://user@",
            "https://a.example:99999",
            "https://a.example:x",
            "https://a.example:+1",
            "http://[::1",
            "http://[::1]x",
            "http://[1]",
            "http://a<b/",
            "http://a b",
            "http://a\t",
            "ws://a",
            "a.example",
            "",
            ":",
            "//a",
        ] {
            assert_eq!(check_http_url(text), url::check_http_url(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn acp_023_a_url_that_the_parser_accepts_is_accepted(
            text in "[Hh]ttps?:/{0,3}[a-z0-9.:@\\[\\]%_~/?#\u{e4}\\\\-]{0,24}"
        ) {
            if url::check_http_url(&text).is_ok() {
                prop_assert_eq!(check_http_url(&text), Ok(()));
            }
        }
    }
}
