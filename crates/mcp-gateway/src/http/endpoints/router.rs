//! Routes a request by its path and method.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use crate::http::app_state::AppState;
use crate::http::authorization::cors::Cors;
use crate::http::connection::client_connection::ClientConnection;
use crate::http::connection::connection_table::ConnectionUse;
use crate::http::endpoints::{delete, get, health, metrics, post};
use crate::http::reply::errors::{invalid_request, refusal, shutting_down};
use crate::http::reply::response::{self, Response, with_header};

/// Routes a request and returns its response, with CORS headers if origins are configured.
pub(crate) async fn route(
    app: &Arc<AppState>,
    connection: &ClientConnection,
    head: &Parts,
    body: Incoming,
) -> Response {
    let cors = Cors::new(app, head);
    let response = match cors.answer_preflight(app, head) {
        Some(response) => response,
        None => dispatch(app, connection, head, body).await,
    };
    cors.add_headers(response)
}

/// Calls the handler of a path and method.
async fn dispatch(
    app: &Arc<AppState>,
    connection: &ClientConnection,
    head: &Parts,
    body: Incoming,
) -> Response {
    // Ignore a trailing slash.
    let path = head.uri.path();
    let path = path.strip_suffix('/').unwrap_or(path);
    match path {
        // These never wait. `/readyz` with a query names servers, so it needs authorization, below.
        "/healthz" => return serve_get(head, health::get_liveness),
        "/readyz" if app.shutdown.is_cancelled() => return serve_get(head, health::get_draining),
        "/readyz" if head.uri.query().is_none() => {
            return serve_get(head, || health::get_readiness(app));
        }
        _ => {}
    }
    if let Some(verifier) = &app.verifier {
        if let Some(metadata) = verifier.metadata(path) {
            return serve_get(head, || response::json(StatusCode::OK, metadata.into()));
        }
        let authorization = head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        // Boxed, because it is rare and would enlarge every request's future.
        Box::pin(verifier.fetch_missing_key(authorization)).await;
    }
    let server = match path {
        "/mcp" => None,
        "/readyz" => return serve_get(head, || health::get_server_readiness(app, head)),
        "/metrics" => return serve_get(head, || metrics::get_metrics(app, connection, head)),
        path => match path.strip_prefix("/mcp/").filter(|name| !name.is_empty() && !name.contains('/')) {
            // Invalid UTF-8 matches no server.
            Some(name) => Some(percent_decode_str(name).decode_utf8_lossy()),
            None => return not_found(),
        },
    };
    let server = server.as_deref();
    // Connections of operators stay open during the shutdown; they must not reach MCP.
    if app.shutdown.is_cancelled() && connection.permit.usage() == ConnectionUse::Operator {
        return shutting_down();
    }
    match head.method {
        Method::POST => post::handle_post(app, connection, server, head, body).await,
        Method::GET | Method::HEAD => get::open_session_stream(app, connection, server, head),
        Method::DELETE => delete::end_session(app, connection, server, head),
        _ => Err(method_not_allowed("GET, HEAD, POST, DELETE")),
    }
    .unwrap_or_else(|refusal| refusal)
}

fn not_found() -> Response {
    let message = "nothing is at this path: MCP is served at `/mcp`, and at `/mcp/NAME` for one server";
    refusal(StatusCode::NOT_FOUND, None, &invalid_request(message))
}

/// Calls `respond` for `GET` and `HEAD`, and refuses other methods.
fn serve_get(head: &Parts, respond: impl FnOnce() -> Response) -> Response {
    match head.method {
        Method::GET | Method::HEAD => respond(),
        _ => method_not_allowed("GET, HEAD"),
    }
}

fn method_not_allowed(allowed: &'static str) -> Response {
    let response = response::empty(StatusCode::METHOD_NOT_ALLOWED);
    with_header(response, header::ALLOW, HeaderValue::from_static(allowed))
}
