//! Bearer tokens, each with a name and the part of the catalog that it shows.
//!
//! Only the hashes of tokens are stored. All hashes are compared each time, in constant time, so that neither timing
//! nor a memory dump reveals a token.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use mcp_host_model::Secret;
use mcp_host_registry::ViewFilter;

use crate::access::principal::Principal;
use crate::access::scope::{self, Scope};

/// Minimum length of a token in bytes. Shorter tokens could be guessed.
const MIN_TOKEN_BYTES: usize = 16;
/// Maximum length of a token in bytes.
const MAX_TOKEN_BYTES: usize = 4096;
/// Maximum number of tokens, because each request is compared with all of them.
const MAX_TOKENS: usize = 1024;
/// Maximum length of a name in bytes. It is printed in logs and metrics.
const MAX_NAME_BYTES: usize = 64;

/// A list of accepted tokens.
#[derive(Clone, Default, PartialEq)]
pub struct Tokens(Vec<Arc<Token>>);

/// A token of the list. Only its hash is stored.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// Its line in the list, from 1.
    line: usize,
    id: TokenId,
    pub(crate) principal: Principal,
    view: Option<ViewFilter>,
    /// The part of the catalog that it shows: that of the gateway, narrowed by the view.
    pub(crate) scope: Arc<Scope>,
    /// When the token stops to be accepted.
    expires: Option<SystemTime>,
    /// The number of requests with this token, also from before the list was replaced.
    requests: Arc<AtomicU64>,
}

/// The use of a token, for the operator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenUse<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    pub(crate) requests: u64,
    pub(crate) expires: Option<SystemTime>,
}

/// An error in a list of tokens. It never contains a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the tokens: {reason}")]
#[non_exhaustive]
pub struct InvalidTokens {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

/// Identifies a token without revealing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TokenId(blake3::Hash);

/// The reason why a request is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// There is no bearer token.
    Missing,
    /// The token is not accepted.
    Unknown,
    /// The token has expired.
    Expired,
}

impl Tokens {
    /// Reads a list with one token per line: the token, then optionally `name=NAME`, `expires=2026-12-31` or
    /// `expires=2026-12-31T12:00:00Z`, and selections (`servers=a,b*`, `tools=…`, `prompts=…`, `resources=…`,
    /// `hints=reads`). A token that expires on a date is accepted until that day begins in UTC. Empty lines and lines
    /// that begin with `#` are ignored. Tokens of the same name belong to one client. A token without a name gets one
    /// from its hash. A token has 16 to 4096 bytes.
    ///
    /// ```
    /// use mcp_host_gateway::Tokens;
    /// use mcp_host_model::Secret;
    ///
    /// let tokens = Tokens::read(&Secret::new(
    ///     "
    ///     token-of-ann-58fd4ba97c name=ann
    ///     token-of-bob-0e1c66f20a name=bob servers=files tools=files__read*
    ///     ",
    /// ))?;
    /// assert_eq!(tokens.len(), 2);
    /// # Ok::<(), mcp_host_gateway::InvalidTokens>(())
    /// ```
    pub fn read(text: &Secret) -> Result<Tokens, InvalidTokens> {
        let mut tokens: Vec<Arc<Token>> = Vec::new();
        let lines = text.expose().lines().map(str::trim).enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let invalid = |reason: String| InvalidTokens { line: at + 1, reason };
            let mut fields = line.split_whitespace();
            let token = fields.next().expect("the line is not empty");
            if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&token.len()) {
                return Err(invalid(format!("a token has {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} bytes")));
            }
            let mut name = None;
            let mut expires = None;
            let mut selections = Vec::new();
            for field in fields {
                match field.split_once('=') {
                    Some(("name", value)) if is_printable_name(value) => name = Some(value),
                    Some(("name", _)) => {
                        let reason = format!("a name has 1 to {MAX_NAME_BYTES} printable bytes");
                        return Err(invalid(reason));
                    }
                    Some(("expires", value)) => {
                        let reason = "a token expires on a date, or at a time such as 2026-12-31T12:00:00Z";
                        expires = Some(read_time(value).ok_or_else(|| invalid(reason.to_owned()))?);
                    }
                    Some((key, value)) if scope::SELECTIONS.contains(&key) => selections.push((key, value)),
                    Some(_) => {
                        let reason =
                            "a key must be one of name, expires, servers, tools, prompts, resources, hints";
                        return Err(invalid(reason.to_owned()));
                    }
                    None => return Err(invalid("only KEY=VALUE may follow the token".to_owned())),
                }
            }
            let view = scope::read_view(selections).map_err(|error| invalid(error.to_string()))?;
            let id = TokenId(blake3::hash(token.as_bytes()));
            // A name by position would change its owner when a line is removed.
            let default_name = format!("token-{}", &id.0.to_hex()[..8]);
            let principal = Principal::named(name.unwrap_or(&default_name));
            // A repeated token is an error, because it would be ambiguous which of the two entries applies.
            if let Some(same) = tokens.iter().find(|token| token.id == id) {
                return Err(invalid(format!("the same token is on line {}", same.line)));
            }
            let (scope, requests) = (Arc::default(), Arc::default());
            tokens.push(Arc::new(Token { line: at + 1, id, principal, view, scope, expires, requests }));
            if tokens.len() > MAX_TOKENS {
                return Err(invalid(format!("there are more than {MAX_TOKENS} tokens")));
            }
        }
        Ok(Tokens(tokens))
    }

    /// Whether there are no tokens, so that every request is accepted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Finds the token in the value of an `Authorization` header. `None` if there are no tokens, so that every client
    /// is admitted.
    pub(crate) fn admit(
        &self,
        authorization: Option<&[u8]>,
        now: SystemTime,
    ) -> Result<Option<Arc<Token>>, TokenError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let token = bearer_token(authorization).ok_or(TokenError::Missing)?;
        let id = TokenId(blake3::hash(token));
        let mut found = None;
        for token in &self.0 {
            if token.id == id {
                found = Some(token);
            }
        }
        let found = found.ok_or(TokenError::Unknown)?;
        if found.expires.is_some_and(|expires| expires <= now) {
            return Err(TokenError::Expired);
        }
        found.requests.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Arc::clone(found)))
    }

    /// Gives each token its scope in a gateway with the scope `gateway`.
    pub(crate) fn within(mut self, gateway: &Arc<Scope>) -> Tokens {
        for token in &mut self.0 {
            let token = Arc::make_mut(token);
            token.scope = Arc::clone(gateway);
            if let Some(view) = &token.view {
                Arc::make_mut(&mut token.scope).views.push(view.clone());
            }
        }
        self
    }

    /// Whether the list has this token, with the same client and view.
    pub(crate) fn contains(&self, token: &Token) -> bool {
        let is_same =
            |it: &Arc<Token>| it.id == token.id && it.principal == token.principal && it.view == token.view;
        self.0.iter().any(is_same)
    }

    /// The clients that lose access or get another view when `new` replaces this list.
    pub(crate) fn revoked_by(&self, new: &Tokens) -> Vec<Principal> {
        let grants = |token: &Token| {
            new.0.iter().any(|other| other.principal == token.principal && other.view == token.view)
        };
        self.0.iter().filter(|token| !grants(token)).map(|token| token.principal.clone()).collect()
    }

    /// Continues the counts of the tokens that `previous` has too.
    pub(crate) fn continue_counts(mut self, previous: &Tokens) -> Tokens {
        for token in &mut self.0 {
            if let Some(same) = previous.0.iter().find(|other| other.id == token.id) {
                Arc::make_mut(token).requests = Arc::clone(&same.requests);
            }
        }
        self
    }

    /// The use of each token.
    pub(crate) fn uses(&self) -> impl Iterator<Item = TokenUse<'_>> {
        self.0.iter().map(|token| TokenUse {
            name: token.principal.name(),
            line: token.line,
            requests: token.requests.load(Ordering::Relaxed),
            expires: token.expires,
        })
    }

    /// The names of the tokens with their views; a view is `None` if the token shows everything. A program that passes
    /// them to [`Host::set_views`](mcp_host_runtime::Host::set_views) gets a problem for each view that shows nothing
    /// or names a server that does not exist. The gateway does not need that.
    pub fn views(&self) -> impl Iterator<Item = (&str, Option<&ViewFilter>)> {
        self.0.iter().map(|token| (token.principal.name(), token.view.as_ref()))
    }
}

impl PartialEq for Token {
    /// Compares what the list says.
    fn eq(&self, other: &Token) -> bool {
        let Token { line, id, principal, view, scope: _, expires, requests: _ } = self;
        (line, id, principal, view, expires)
            == (&other.line, &other.id, &other.principal, &other.view, &other.expires)
    }
}

impl Token {
    /// Its line in the list, from 1.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// The time until the token expires; `None` if it does not expire.
    pub(crate) fn remaining(&self, now: SystemTime) -> Option<Duration> {
        self.expires.map(|expires| expires.duration_since(now).unwrap_or_default())
    }
}

/// Reads a date, which means its start in UTC, or a time with its offset.
fn read_time(text: &str) -> Option<SystemTime> {
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        // A date with a time but no offset is ambiguous.
        let date = text.parse::<Date>().ok().filter(|_| text.len() == "2026-12-31".len())?;
        Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
    });
    time.map(SystemTime::from)
}

/// The bearer token in the value of an `Authorization` header.
pub(crate) fn bearer_token(authorization: Option<&[u8]>) -> Option<&[u8]> {
    let (scheme, token) = authorization?.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn is_printable_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tokens: &str, header: Option<&str>, want: &str) {
        let got = match Tokens::read(&Secret::new(tokens.to_owned())) {
            Err(error) => error.to_string(),
            Ok(tokens) => match tokens.admit(header.map(str::as_bytes), noon()) {
                Err(TokenError::Expired) => "expired".to_owned(),
                Err(TokenError::Missing) => "needed".to_owned(),
                Err(TokenError::Unknown) => "wrong".to_owned(),
                Ok(None) => "everybody".to_owned(),
                Ok(Some(token)) => {
                    let Token { principal, view, .. } = &*token;
                    format!("'{principal}'{}", if view.is_some() { " with a view" } else { "" })
                }
            },
        };
        assert_eq!(got, want);
    }

    /// The time of the tests: 2026-07-28, 12:00 UTC.
    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_785_240_000)
    }

    // RPT-200
    #[test]
    fn token_is_accepted_until_it_expires() {
        let header = Some("Bearer first-0123456789");
        let check_expiry = |expires: &str, want: &str| {
            check(&format!("first-0123456789 name=ann expires={expires}"), header, want);
        };
        check_expiry("2026-07-28T12:00:01Z", "'ann'");
        check_expiry("2026-07-28T12:00:00Z", "expired");
        check_expiry("2026-07-28T14:30:00+02:00", "'ann'");
        check_expiry("2026-07-29", "'ann'");
        check_expiry("2026-07-28", "expired");
        let reason =
            "line 1 of the tokens: a token expires on a date, or at a time such as 2026-12-31T12:00:00Z";
        for invalid in ["", "tomorrow", "2026-02-30", "2026-07-28T12:00:00"] {
            check_expiry(invalid, reason);
        }
    }

    #[test]
    fn only_a_listed_token_is_admitted() {
        let two = "# ours\n\nfirst-0123456789 name=ann servers=a,b*\n  second-0123456789\n";
        check(two, Some("Bearer first-0123456789"), "'ann' with a view");
        check(two, Some("bearer  second-0123456789 "), "'token-da9d357b'");
        check(two, Some("Bearer first-012345678"), "wrong");
        check(two, Some("Basic first-0123456789"), "needed");
        check(two, Some("Bearer"), "needed");
        check(two, None, "needed");
        check("", None, "everybody");
    }

    #[test]
    fn replaced_list_revokes_lost_and_changed_access_only() {
        let read = |text: &str| Tokens::read(&Secret::new(text.to_owned())).unwrap();
        let revoked = |new: &str| {
            let old = read("first-0123456789 name=ann\nsecond-0123456789 name=bob tools=x\nthird-0123456789");
            let principals: Vec<String> =
                old.revoked_by(&read(new)).iter().map(ToString::to_string).collect();
            principals.join(" ")
        };
        // A new token of the same name and view is a rotation.
        assert_eq!(
            revoked("other-0123456789 name=ann\nsecond-0123456789 name=bob tools=x"),
            "token-51b4db27"
        );
        assert_eq!(revoked("first-0123456789 name=ann\nthird-0123456789"), "bob");
        assert_eq!(
            revoked("third-0123456789\nfirst-0123456789 name=ann tools=y\nsecond-0123456789 name=bob"),
            "ann bob"
        );
    }

    #[test]
    fn token_list_error_names_the_line_and_no_token() {
        check("\nshort", None, "line 2 of the tokens: a token has 16 to 4096 bytes");
        check("first-0123456789 x", None, "line 1 of the tokens: only KEY=VALUE may follow the token");
        check("first-0123456789 name=", None, "line 1 of the tokens: a name has 1 to 64 printable bytes");
        check(
            "first-0123456789 role=x",
            None,
            "line 1 of the tokens: a key must be one of name, expires, servers, tools, prompts, resources, hints",
        );
        check(
            "first-0123456789 servers=a\n\nsecond-0123456789\n first-0123456789 name=ann",
            None,
            "line 4 of the tokens: the same token is on line 1",
        );
        let debug = format!("{:?}", Tokens::read(&Secret::new("first-0123456789".to_owned())).unwrap());
        assert_eq!(debug, "1 tokens");
    }
}
