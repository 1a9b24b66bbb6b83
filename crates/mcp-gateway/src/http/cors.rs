//! Pages of the origins that were allowed by name: their browsers ask first, and read answers only where these say so.
//!
//! Invariant: what is said here lets in nobody whom the guard keeps out. Pages of loopback get in as before, and are told
//! nothing of this: only who is named is.

use http::{HeaderName, HeaderValue, Method, StatusCode, header};

use super::routes::{status, words};
use super::server::Door;
use super::wire::{Fields, Head, Name, Response};

/// What pages may send besides what all may.
const TAKEN: [&str; 6] =
    ["authorization", "content-type", "accept", "last-event-id", "traceparent", "tracestate"];
/// What the names of our own headers, and of the protocol's, begin with.
const OURS: &str = "mcp-";
/// What pages may read besides what all may.
const SHOWN: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
/// How long a browser need not ask again, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// A request where pages of other sites may ask: what is answered depends on whose it is.
pub(super) struct Page {
    /// The origin, where there is one and it is allowed by name.
    origin: Option<HeaderValue>,
}

impl Page {
    /// The one that asks; `None` where no origin is allowed by name.
    pub(super) fn of(door: &Door, head: &Head) -> Option<Page> {
        (!door.guard.origins.is_empty()).then(|| Page { origin: named(door, &head.fields) })
    }

    /// The answer to a browser that asks beforehand; `None` for everything else.
    pub(super) fn allowed(&self, door: &Door, head: &Head) -> Option<Response> {
        let asks = head.method == Method::OPTIONS && head.fields.get(Name::RequestMethod).is_some();
        (asks && self.origin.is_some()).then(|| match door.guard.check(host(head), None) {
            Ok(()) => allowed(&head.fields),
            Err(intruder) => words(StatusCode::FORBIDDEN, intruder.words()),
        })
    }

    /// The response, with whether the page may read it.
    pub(super) fn marked(self, res: Response) -> Response {
        // It depends on the page, also where none may.
        let res = res.with(header::VARY, HeaderValue::from_static("Origin"));
        match self.origin {
            Some(origin) => res
                .with(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin)
                .with(header::ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN),
            None => res,
        }
    }
}

fn named(door: &Door, fields: &Fields) -> Option<HeaderValue> {
    let text = fields.only(Name::Origin).ok()??;
    let is_named = door.guard.origins.iter().any(|it| it.eq_ignore_ascii_case(text));
    is_named.then(|| HeaderValue::from_str(text).ok())?
}

fn host(head: &Head) -> Option<&str> {
    let authority = head.target.authority().map(|it| it.as_str());
    authority.or_else(|| head.fields.text(Name::Host))
}

fn allowed(asked: &Fields) -> Response {
    let wanted = asked.text(Name::RequestHeaders).unwrap_or_default();
    let wanted = wanted.split(',').filter_map(|it| it.trim().parse::<HeaderName>().ok());
    let taken = wanted.filter(|it| TAKEN.contains(&it.as_str()) || it.as_str().starts_with(OURS));
    let taken: Vec<String> = taken.map(|it| it.to_string()).collect();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    let res = status(StatusCode::NO_CONTENT).with(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let res = match HeaderValue::from_str(&taken.join(", ")) {
        Ok(taken) => res.with(header::ACCESS_CONTROL_ALLOW_HEADERS, taken),
        Err(_) => res,
    };
    res.with(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED)
        .with(header::VARY, HeaderValue::from_static("Access-Control-Request-Headers"))
}
