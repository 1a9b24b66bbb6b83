//! Responses that refuse a request, with a JSON-RPC error as their body.

use http::{HeaderValue, StatusCode, header};
use mcp_host_model::{RawJson, RpcError, code};

use crate::http::reply::response::{self, Response, with_header};
use crate::protocol::message_writer;
use crate::session::usage::EVICTION_PROTECTION;

/// The response to a request. An error is a response that refuses the request.
pub(crate) type ResponseResult = Result<Response, Response>;

/// A response that refuses a request with status 400.
pub(crate) fn bad_request(error: &RpcError) -> Response {
    refusal(StatusCode::BAD_REQUEST, None, error)
}

/// A response that refuses a request: a status, and a JSON-RPC error as its body. `id` is that of the JSON-RPC request,
/// if it was read.
pub(crate) fn refusal(status: StatusCode, id: Option<&RawJson>, error: &RpcError) -> Response {
    response::json(status, message_writer::write_error(id, error))
}

/// A response to a request whose end is ambiguous. It closes the connection, because bytes of another
/// request may follow.
pub(crate) fn ambiguous_framing() -> Response {
    let message = "the end of the request is ambiguous: it has both `Content-Length` and `Transfer-Encoding`, repeats \
                   one of them, or a line ends with a line feed alone";
    with_header(bad_request(&invalid_request(message)), header::CONNECTION, HeaderValue::from_static("close"))
}

/// A response while the server shuts down. It closes the connection.
pub(crate) fn shutting_down() -> Response {
    let error = RpcError::new(code::SERVER_ERROR, "the gateway is shutting down: try again later");
    let response = refusal(StatusCode::SERVICE_UNAVAILABLE, None, &error);
    let response = with_header(response, header::RETRY_AFTER, HeaderValue::from_static("1"));
    with_header(response, header::CONNECTION, HeaderValue::from_static("close"))
}

/// The error for a request that the protocol does not allow.
pub(crate) fn invalid_request(message: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, message)
}

/// The error for too many concurrent requests.
pub(crate) fn busy_error() -> RpcError {
    RpcError::new(code::SERVER_ERROR, "too many requests are running: try again later")
}

/// A response for the case that all connections are in use, or all of the client's share. It closes the connection.
pub(crate) fn too_many_connections(limit: usize) -> Response {
    let message = format!(
        "this client has used up its share of the {limit} connections, or all are in use: end requests and streams, \
         or use fewer connections, then try again"
    );
    let error = RpcError::new(code::SERVER_ERROR, message);
    let response = refusal(StatusCode::SERVICE_UNAVAILABLE, None, &error);
    let response = with_header(response, header::RETRY_AFTER, HeaderValue::from_static("1"));
    with_header(response, header::CONNECTION, HeaderValue::from_static("close"))
}

/// A response to an unknown session id: the session has ended, or belongs to another client.
pub(crate) fn no_such_session() -> Response {
    let error =
        RpcError::new(code::SERVER_ERROR, "there is no such session: start a new one with `initialize`");
    refusal(StatusCode::NOT_FOUND, None, &error)
}

/// A response for the case that there are too many sessions or dialogs, and all were used recently.
pub(crate) fn too_many_sessions(id: &RawJson) -> Response {
    let error = RpcError::new(code::SERVER_ERROR, "too many sessions or dialogs are in use: try again later");
    let response = refusal(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
    with_header(response, header::RETRY_AFTER, HeaderValue::from(EVICTION_PROTECTION.as_secs()))
}
