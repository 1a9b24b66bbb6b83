//! From a path and a method to what answers it.

use std::pin::pin;
use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncRead, AsyncWrite};

use super::cors::Page;
use super::line::Line;
use super::post::{self, Visitor};
use super::server::Door;
use super::wire::{Body, Head, Response, Wire};
use super::{delete, get, health, metrics};

/// The path's part behind `/mcp/`, where there is one.
pub(super) type Server = Option<String>;

/// Answers a request; `None` when its client goes away.
pub(super) async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    line: &Line,
    wire: &mut Wire<S>,
    head: Head,
) -> Option<Response> {
    let door = &line.door;
    let page = Page::of(door, &head);
    let routed = match page.as_ref().and_then(|it| it.allowed(door, &head)) {
        Some(res) => Err(res),
        None => route(door, &head),
    };
    let res = match routed {
        Ok(visitor) => match post::body(line, wire).await {
            Ok(body) => wire.while_there(pin!(post::post(line, &head, visitor, body))).await?,
            Err(refusal) => refusal,
        },
        Err(res) => res,
    };
    Some(match page {
        Some(page) => page.marked(res),
        None => res,
    })
}

/// Who posts a message, which is in the body; or the answer to everything else.
fn route(door: &Arc<Door>, head: &Head) -> Result<Visitor, Response> {
    let server = match head.target.path() {
        "/mcp" => None,
        "/healthz" => return Err(read_only(head, health::alive)),
        "/readyz" => return Err(read_only(head, || health::ready(door))),
        "/metrics" => return Err(read_only(head, || metrics::metrics(door, head))),
        path => match path.strip_prefix("/mcp/").filter(|it| !it.is_empty() && !it.contains('/')) {
            // What is no text names no server either.
            Some(name) => Some(percent_decode_str(name).decode_utf8_lossy().into_owned()),
            None => return Err(status(StatusCode::NOT_FOUND)),
        },
    };
    match head.method {
        Method::POST => post::visitor_with_json(door, head, server),
        Method::GET | Method::HEAD => Err(get::get(door, server, head)),
        Method::DELETE => Err(delete::delete(door, server, head)),
        _ => Err(not_allowed("GET, HEAD, POST, DELETE")),
    }
}

fn read_only(head: &Head, answer: impl FnOnce() -> Response) -> Response {
    match head.method {
        Method::GET | Method::HEAD => answer(),
        _ => not_allowed("GET, HEAD"),
    }
}

fn not_allowed(allowed: &'static str) -> Response {
    status(StatusCode::METHOD_NOT_ALLOWED).with(header::ALLOW, HeaderValue::from_static(allowed))
}

/// A response that says nothing but its status.
pub(super) fn status(status: StatusCode) -> Response {
    Response::new(status, Body::empty())
}

/// A response that is words.
pub(super) fn words(status: StatusCode, words: impl Into<bytes::Bytes>) -> Response {
    Response::new(status, Body::Whole(words.into())).of("text/plain; charset=utf-8")
}
