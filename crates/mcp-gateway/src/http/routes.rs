//! From a path and a method to what answers it.

use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use super::body::{Body, Response};
use super::line::{Line, Sent};
use super::{cors, delete, get, health, metrics, post};

/// A request as it comes in.
pub(super) type HttpRequest = http::Request<Incoming>;

/// The path's part behind `/mcp/`, where there is one.
pub(super) type Server = Option<String>;

/// Answers a request.
pub(super) async fn answer(
    line: Arc<Line>,
    request: HttpRequest,
) -> Result<http::Response<Sent>, Infallible> {
    line.begun();
    let res = match line.door.guard.origins.is_empty() {
        true => route(&line, request).await,
        // Boxed, for it is rare, and holds all of the other.
        false => Box::pin(cors::answer(&line, request)).await,
    };
    line.door.gateway.counts.responded(res.status().as_u16());
    Ok(res.map(|it| Sent::new(it, line)))
}

/// Answers a request of whoever may read the answer.
pub(super) async fn route(line: &Line, request: HttpRequest) -> Response {
    let door = &line.door;
    let path = request.uri().path();
    let server = match path {
        "/mcp" => None,
        "/healthz" => return read_only(&request, health::alive),
        "/readyz" => return read_only(&request, || health::ready(door)),
        "/metrics" => return read_only(&request, || metrics::metrics(door, &request)),
        _ => match path.strip_prefix("/mcp/").filter(|it| !it.is_empty() && !it.contains('/')) {
            // What is no text names no server either.
            Some(name) => Some(percent_decode_str(name).decode_utf8_lossy().into_owned()),
            None => return status(StatusCode::NOT_FOUND),
        },
    };
    match *request.method() {
        Method::POST => post::post(line, server, request).await,
        Method::GET | Method::HEAD => get::get(door, server, request),
        Method::DELETE => delete::delete(door, server, request),
        _ => not_allowed("GET, HEAD, POST, DELETE"),
    }
}

fn read_only(request: &HttpRequest, answer: impl FnOnce() -> Response) -> Response {
    match *request.method() {
        Method::GET | Method::HEAD => answer(),
        _ => not_allowed("GET, HEAD"),
    }
}

fn not_allowed(allowed: &'static str) -> Response {
    let mut res = status(StatusCode::METHOD_NOT_ALLOWED);
    res.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    res
}

/// A response that says nothing but its status.
pub(super) fn status(status: StatusCode) -> Response {
    let mut res = Response::new(Body::empty());
    *res.status_mut() = status;
    res
}

/// A response that is words.
pub(super) fn words(status: StatusCode, words: impl Into<bytes::Bytes>) -> Response {
    let mut res = Response::new(Body::from(words.into()));
    *res.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    res.headers_mut().insert(header::CONTENT_TYPE, plain);
    res
}
