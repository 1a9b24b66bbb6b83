//! Checks for URLs. They use the parsed URL, so that a host such as `localhost.example.com` does not count as this
//! machine.

use mcp_host_model::internal::is_loopback;
use url::Url;

use crate::diagnostic::CheckError;
use crate::dialect::checks::url_rule::{UrlRule, invalid_url, scheme_error};

/// Parses a URL. Fails if it is invalid or the rule rejects it.
pub(crate) fn parse_url(text: &str, rule: UrlRule) -> Result<Url, CheckError> {
    let is_forbidden = |it: char| it.is_whitespace() || it.is_control();
    if text.contains(is_forbidden) {
        return Err(invalid_url(rule, "it contains whitespace or a control character"));
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => return Err(scheme_error(rule)),
        Err(error) => return Err(invalid_url(rule, &error.to_string())),
    };
    let allowed = match (rule, url.scheme()) {
        (UrlRule::HttpsOrLoopback | UrlRule::Http, "https") => true,
        (UrlRule::HttpsOrLoopback, "http") => is_loopback(&url),
        (UrlRule::Http, "http") => true,
        (UrlRule::WebSocket, scheme) => ["ws", "wss"].contains(&scheme),
        (UrlRule::HttpsOrLoopback | UrlRule::Http, _) => false,
    };
    if !allowed {
        return Err(scheme_error(rule));
    }
    // The parser reads `https:///x` as the host `x`, which is never intended.
    let authority = text.split_once(':').map_or("", |it| it.1);
    if !authority.starts_with("//") || authority.starts_with("///") || !url.has_host() {
        return Err(invalid_url(rule, "it has no host"));
    }
    Ok(url)
}

/// Checks an http or https URL.
pub(crate) fn check_http_url(text: &str) -> Result<(), CheckError> {
    parse_url(text, UrlRule::Http).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: UrlRule, text: &str, want: &str) {
        let got = match parse_url(text, rule) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.message,
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn hd_040_hd_041_hd_043_only_https_and_loopback_http_are_accepted() {
        const SCHEME: &str = "'url' must use https:// (or http:// for localhost)";
        let check = |text, want| check(UrlRule::HttpsOrLoopback, text, want);
        for text in [
            "https://a.example/x",
            "HTTPS://a.example",
            "http://localhost",
            "http://LOCALHOST:8080/mcp",
            "HTTP://localhost/",
            "http://127.0.0.1:1",
            "http://127.0.0.2/",
            "http://[::1]:8080/",
            "http://user@localhost/",
            "https://user:pw@a.example/",
        ] {
            check(text, "ok");
        }
        for text in
            ["http://a.example/x", "ftp://a.example", "ws://a.example", "file:///x", "a.example", "", "//a"]
        {
            check(text, SCHEME);
        }
        // HD-044: HoloDeck compares prefixes, so each of these would send tokens over plain http.
        for text in [
            "http://localhost.evil.example/",
            "http://localhostevil/",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example/",
            "http://0.0.0.0:1",
        ] {
            check(text, SCHEME);
        }
    }

    #[test]
    fn hd_042_websocket_urls_are_ws_or_wss() {
        check(UrlRule::WebSocket, "wss://a.example/ws", "ok");
        check(UrlRule::WebSocket, "ws://a.example/ws", "ok");
        check(
            UrlRule::WebSocket,
            "https://a.example",
            "'url' must use wss:// (or ws://) for websocket transport",
        );
    }

    #[test]
    fn dm_012_dominds_takes_any_http_url() {
        check(UrlRule::Http, "http://a.example", "ok");
        check(UrlRule::Http, "http://\u{e4}.example/\u{fc}", "ok");
        check(UrlRule::Http, "ws://a", "'url' must be a valid http(s) URL");
        check(UrlRule::Http, "http://", "'url' must be a valid http(s) URL: empty host");
    }

    #[test]
    fn hd_045_a_url_is_well_formed() {
        let check = |text, why: &str| {
            check(UrlRule::HttpsOrLoopback, text, &format!("'url' is not a valid URL: {why}"));
        };
        check("https://", "empty host");
        check("https:///x", "it has no host");
        check("https:a.example", "it has no host");
        check("https://a b", "it contains whitespace or a control character");
        check(" https://a.example", "it contains whitespace or a control character");
        check("https://a.example:99999", "invalid port number");
        check("http://[::1", "invalid IPv6 address");
    }
}
