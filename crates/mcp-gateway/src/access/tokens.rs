//! Bearer tokens, each with a name and the part of the catalog that it shows.
//!
//! Only the hashes of tokens are stored. All hashes are compared each time, in constant time, so that neither timing
//! nor a memory dump reveals a token.

use std::fmt;

use mcp_model::Secret;
use mcp_registry::ViewFilter;

use crate::access::principal::Principal;
use crate::access::scope;

/// Minimum length of a token in bytes. Shorter tokens could be guessed.
const MIN_TOKEN_BYTES: usize = 16;
const MAX_TOKEN_BYTES: usize = 4096;
const MAX_TOKENS: usize = 1024;

/// The accepted tokens.
#[derive(Clone, Default)]
pub struct Tokens(Vec<Token>);

#[derive(Clone)]
struct Token {
    /// Its line in the list, from 1.
    line: usize,
    hash: blake3::Hash,
    principal: Principal,
    view: Option<ViewFilter>,
}

/// An error in a list of tokens. It never contains a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the tokens: {reason}")]
pub struct InvalidTokens {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

/// An authenticated client.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    pub(crate) principal: Principal,
    /// The part of the catalog that its token shows; `None` for everything.
    pub(crate) view: Option<ViewFilter>,
}

impl Tokens {
    /// Reads a list with one token per line: the token, then optionally `name=NAME` and selections (`servers=a,b*`,
    /// `tools=…`, `prompts=…`, `resources=…`). Empty lines and lines that begin with `#` are ignored. Tokens of the
    /// same name belong to one client.
    pub fn read(text: &Secret) -> Result<Tokens, InvalidTokens> {
        let mut tokens: Vec<Token> = Vec::new();
        let lines = text.expose().lines().map(str::trim).enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let invalid = |reason: String| InvalidTokens { line: at + 1, reason };
            let mut fields = line.split_whitespace();
            let token = fields.next().expect("the line is not empty");
            if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&token.len()) {
                return Err(invalid(format!("a token has {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} bytes")));
            }
            let mut name = None;
            let mut selections = Vec::new();
            for field in fields {
                match field.split_once('=') {
                    Some(("name", value)) => name = Some(value),
                    Some((key, value)) if scope::SELECTIONS.contains(&key) => selections.push((key, value)),
                    Some(_) => {
                        let reason = "a key must be one of name, servers, tools, prompts, resources";
                        return Err(invalid(reason.to_owned()));
                    }
                    None => return Err(invalid("only KEY=VALUE may follow the token".to_owned())),
                }
            }
            let view = scope::view(selections.into_iter()).map_err(|error| invalid(error.to_string()))?;
            let default_name = format!("token {}", tokens.len() + 1);
            let principal = Principal::named(name.unwrap_or(&default_name));
            let hash = blake3::hash(token.as_bytes());
            // A repeated token is an error, because it would be ambiguous which of the two entries applies.
            if let Some(same) = tokens.iter().find(|token| token.hash == hash) {
                return Err(invalid(format!("the same token is on line {}", same.line)));
            }
            tokens.push(Token { line: at + 1, hash, principal, view });
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

    /// Authenticates the value of an `Authorization` header; `None` if it is refused.
    pub fn admit(&self, authorization: Option<&[u8]>) -> Option<Admission> {
        if self.0.is_empty() {
            return Some(Admission { principal: Principal::anybody(), view: None });
        }
        let value = authorization?;
        let (scheme, token) = value.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return None;
        }
        let hash = blake3::hash(token.trim_ascii());
        let mut found = None;
        for token in &self.0 {
            if token.hash == hash {
                found = Some(token);
            }
        }
        found.map(|token| Admission { principal: token.principal.clone(), view: token.view.clone() })
    }
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
            Ok(tokens) => match tokens.admit(header.map(str::as_bytes)) {
                None => "refused".to_owned(),
                Some(Admission { principal, view }) => {
                    format!("'{principal}'{}", if view.is_some() { " with a view" } else { "" })
                }
            },
        };
        assert_eq!(got, want);
    }

    #[test]
    fn only_a_listed_token_is_admitted() {
        let two = "# ours\n\nfirst-0123456789 name=ann servers=a,b*\n  second-0123456789\n";
        check(two, Some("Bearer first-0123456789"), "'ann' with a view");
        check(two, Some("bearer  second-0123456789 "), "'token 2'");
        check(two, Some("Bearer first-012345678"), "refused");
        check(two, Some("Basic first-0123456789"), "refused");
        check(two, Some("Bearer"), "refused");
        check(two, None, "refused");
        check("", None, "''");
    }

    #[test]
    fn token_list_error_names_the_line_and_no_token() {
        check("\nshort", None, "line 2 of the tokens: a token has 16 to 4096 bytes");
        check("first-0123456789 x", None, "line 1 of the tokens: only KEY=VALUE may follow the token");
        check(
            "first-0123456789 role=x",
            None,
            "line 1 of the tokens: a key must be one of name, servers, tools, prompts, resources",
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
