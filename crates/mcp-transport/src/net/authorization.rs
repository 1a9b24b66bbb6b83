//! Who we are to a server that wants to know: a token for each request, and what to do when it is not enough.
//!
//! The wire adds what it is given to requests to the server's own origin, and to no other, redirects included. Where a
//! token comes from is somebody else's to know.

use std::fmt;
use std::time::Instant;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue};
use mcp_model::Secret;

use super::Response;

/// How often one request is sent again after it was turned away.
pub(super) const MAX_CHALLENGES: usize = 4;

/// What the message of a request begins with that has no authorization and gets none: the rest says what to do.
pub(crate) const NOT_AUTHORIZED: &str = "not authorized";

/// How many challenges of one response are looked at, and how many bytes of each.
const MAX_SCHEMES: usize = 8;
const MAX_SCHEME_BYTES: usize = 8 << 10;

/// Gives the requests to one server their authorization. Its `Debug` shows no secret.
#[async_trait]
pub trait Authorization: fmt::Debug + Send + Sync {
    /// The bearer token to send now; `None` where there is none yet, and the request goes without. May take its time:
    /// an old token may be exchanged for a new one first.
    async fn token(&self) -> Result<Option<Secret>, Unauthorized>;

    /// Is a token or a login being seen to at this moment? Requests wait for it then.
    fn is_in_progress(&self) -> bool;

    /// The server turned a request away with 401 or 403. Says whether to send it again, with what
    /// [`token`](Authorization::token) gives then. Many requests may be turned away at once.
    async fn challenged(&self, challenge: Challenge) -> Result<Remedy, Unauthorized>;
}

/// A response that wants authorization, or more of it.
#[derive(Debug, Clone)]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// The values of its `WWW-Authenticate` headers, at most 8 of at most 8 KiB each.
    pub schemes: Vec<String>,
    /// The token that the request was sent with.
    pub token_used: Option<Secret>,
    /// When the request was sent.
    pub sent_at: Instant,
    /// How often this very request was turned away before.
    pub earlier_challenges: usize,
}

/// What to do about a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Send the request again.
    Retry,
    /// Nothing: the response is the server's last word.
    None,
}

/// Why there is no authorization, and what to do about that; in words, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unauthorized(pub String);

impl Challenge {
    /// What a response says, where it is one.
    pub(super) fn from_response(
        response: &Response,
        used: Option<Secret>,
        (sent, before): (Instant, usize),
    ) -> Option<Challenge> {
        let status = response.status().as_u16();
        if !matches!(status, 401 | 403) {
            return None;
        }
        let values = response.headers().get_all(WWW_AUTHENTICATE).iter().take(MAX_SCHEMES);
        let short = values.filter_map(|it| it.to_str().ok()).filter(|it| it.len() <= MAX_SCHEME_BYTES);
        Some(Challenge {
            status,
            schemes: short.map(str::to_owned).collect(),
            token_used: used,
            sent_at: sent,
            earlier_challenges: before,
        })
    }
}

/// The headers with a token in them. A token that no header can hold is no token.
pub(super) fn with_token(headers: &HeaderMap, token: &Secret) -> Result<HeaderMap, Unauthorized> {
    let Ok(mut value) = HeaderValue::try_from(format!("Bearer {}", token.expose())) else {
        return Err(Unauthorized("the token holds characters that no header can".to_owned()));
    };
    value.set_sensitive(true);
    let mut res = headers.clone();
    res.insert(AUTHORIZATION, value);
    Ok(res)
}
