//! CORS: lets pages of the configured origins read responses.
//!
//! CORS never admits a request that the guard refuses. The guard admits pages of loopback origins too, but only
//! pages of configured origins get CORS headers.

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};

use crate::http::app_state::AppState;
use crate::http::authorization::guard::ForbiddenHeader;
use crate::http::authorization::refusals::RefusalReason;
use crate::http::reply::errors::{invalid_request, refusal};
use crate::http::reply::response::{self, Response, with_header};
use crate::http::request::header_names::{first_value, only_value};

/// Request headers that a page may send, besides those with [`ALLOWED_PREFIX`].
const ALLOWED_HEADERS: [&str; 6] =
    ["authorization", "content-type", "accept", "last-event-id", "traceparent", "tracestate"];
/// The prefix of the request headers of MCP and of the gateway.
const ALLOWED_PREFIX: &str = "mcp-";
/// Response headers that a page may read.
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
/// How long a browser may cache the result of a preflight request, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The CORS headers of a response.
pub(crate) struct Cors {
    /// Whether any origin is configured. Otherwise responses get no CORS headers.
    is_configured: bool,
    /// The origin of the page, if it is configured.
    origin: Option<HeaderValue>,
}

impl Cors {
    /// Reads the origin of a request.
    pub(crate) fn new(app: &AppState, head: &Parts) -> Cors {
        let configured = &app.guard.origins;
        if configured.is_empty() {
            return Cors { is_configured: false, origin: None };
        }
        let origin = only_value(&head.headers, &header::ORIGIN).ok().flatten();
        let origin =
            origin.filter(|origin| configured.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)));
        let origin = origin.and_then(|origin| HeaderValue::from_str(origin).ok());
        Cors { is_configured: true, origin }
    }

    /// Returns the response to a preflight request; `None` for other requests.
    pub(crate) fn answer_preflight(&self, app: &AppState, head: &Parts) -> Option<Response> {
        if self.origin.is_none() {
            return refuse_preflight(head);
        }
        if !is_preflight(head) {
            return None;
        }
        let authority = head.uri.authority().map(|authority| authority.as_str());
        let host = authority.or_else(|| first_value(&head.headers, &header::HOST));
        Some(match app.guard.check(host, None) {
            Ok(()) => preflight_response(head),
            Err(forbidden) => response::text(StatusCode::FORBIDDEN, forbidden.message(host)),
        })
    }

    /// Adds the headers that tell the browser whether the page may read the response.
    pub(crate) fn add_headers(self, response: Response) -> Response {
        if !self.is_configured {
            return response;
        }
        // The response depends on the origin, even if there is none.
        let response = with_header(response, header::VARY, HeaderValue::from_static("Origin"));
        match self.origin {
            Some(origin) => {
                let response = with_header(response, header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                with_header(response, header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS)
            }
            None => response,
        }
    }
}

/// Refuses a preflight request of a page whose origin is not configured. `None` for other requests.
///
/// A browser shows its user no reason, so the operator finds it in the log.
fn refuse_preflight(head: &Parts) -> Option<Response> {
    if !is_preflight(head) {
        return None;
    }
    let origin = first_value(&head.headers, &header::ORIGIN)?;
    let message = ForbiddenHeader::Origin.message(Some(origin));
    let mut response = refusal(StatusCode::FORBIDDEN, None, &invalid_request(&message));
    response.extensions_mut().insert(RefusalReason(message.into()));
    Some(response)
}

fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response that allows a preflight request.
fn preflight_response(head: &Parts) -> Response {
    let requested = first_value(&head.headers, &header::ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let requested = requested.split(',').filter_map(|name| name.trim().parse::<HeaderName>().ok());
    let allowed: Vec<String> = requested
        .filter(|name| ALLOWED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(ALLOWED_PREFIX))
        .map(|name| name.to_string())
        .collect();
    let mut response = response::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    headers.insert(header::VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
    response
}
