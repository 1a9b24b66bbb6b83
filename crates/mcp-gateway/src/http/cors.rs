//! Pages of the origins that were allowed by name: their browsers ask first, and read answers only where these say so.
//!
//! Invariant: what is said here lets in nobody whom the guard keeps out. Pages of loopback get in as before, and are told
//! nothing of this: only who is named is.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::body::Response;
use super::headers;
use super::line::Line;
use super::routes::{self, HttpRequest, status, words};
use super::server::Door;

/// What pages may send besides what all may.
const TAKEN: [&str; 6] =
    ["authorization", "content-type", "accept", "last-event-id", "traceparent", "tracestate"];
/// What the names of our own headers, and of the protocol's, begin with.
const OURS: &str = "mcp-";
/// What pages may read besides what all may.
const SHOWN: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
/// How long a browser need not ask again, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// Answers what a browser asks beforehand, and says of every answer which page may read it.
pub(super) async fn answer(line: &Line, request: HttpRequest) -> Response {
    let door = &line.door;
    let origin = named(door, request.headers());
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut res = match (&origin, asks) {
        (Some(_), true) => match door.guard.check(host(&request), None) {
            Ok(()) => allowed(request.headers()),
            Err(intruder) => words(StatusCode::FORBIDDEN, intruder.words()),
        },
        (Some(_), false) | (None, _) => routes::route(line, request).await,
    };
    // Whether a page may read it depends on the page, also where none may.
    res.headers_mut().append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        res.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        res.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
    }
    res
}

/// The origin, where there is one and it is allowed by name.
fn named(door: &Door, headers: &HeaderMap) -> Option<HeaderValue> {
    let mut all = headers.get_all(header::ORIGIN).iter();
    let (origin, None) = (all.next()?, all.next()) else { return None };
    let text = origin.to_str().ok()?;
    door.guard.origins.iter().any(|it| it.eq_ignore_ascii_case(text)).then(|| origin.clone())
}

fn host(request: &HttpRequest) -> Option<&str> {
    let target = request.uri().authority().map(|it| it.as_str());
    target.or_else(|| headers::text(request.headers(), &header::HOST))
}

/// The answer to a browser that asks.
fn allowed(asked: &HeaderMap) -> Response {
    let wanted = headers::text(asked, &header::ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let wanted = wanted.split(',').filter_map(|it| it.trim().parse::<HeaderName>().ok());
    let taken = wanted.filter(|it| TAKEN.contains(&it.as_str()) || it.as_str().starts_with(OURS));
    let taken: Vec<String> = taken.map(|it| it.to_string()).collect();
    let mut res = status(StatusCode::NO_CONTENT);
    let headers = res.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Ok(taken) = HeaderValue::from_str(&taken.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, taken);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    headers.append(header::VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
    res
}
