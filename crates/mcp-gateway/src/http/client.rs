//! Authorizes a request: identifies the client and the part of the catalog that it sees.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use mcp_model::{RpcError, ServerId};
use mcp_registry::ViewFilter;

use super::errors::{bad_request, invalid_request, refusal};
use super::header_names::{MCP_HOST_DIALOG, MCP_HOST_SELECTIONS, MCP_SESSION_ID, single};
use super::headers;
use super::response::{Response, with_header};
use super::server::AppState;
use crate::access::principal::Principal;
use crate::access::scope::{self, InvalidSelection, Scope};
use crate::access::tokens::{Admission, TokenError, TokenId};

/// An authorized client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) principal: Principal,
    /// Its token, if there are tokens.
    pub(super) token: Option<TokenId>,
    pub(super) scope: Arc<Scope>,
}

impl Client {
    /// Authorizes a request for `server`, or for the whole catalog. An error is the response that refuses the
    /// request.
    pub(super) fn authorize(app: &AppState, head: &Parts, server: Option<&str>) -> Result<Client, Response> {
        let Admission { principal, token, view } = admit(app, head)?;
        let query_view = query_selection(&head.uri).map_err(|error| bad_request(&error))?;
        let header_view = header_selection(&head.headers).map_err(|error| bad_request(&error))?;
        if view.is_none() && server.is_none() && query_view.is_none() && header_view.is_none() {
            return Ok(Client { principal, token, scope: Arc::clone(&app.scope) });
        }
        let mut scope = (*app.scope).clone();
        scope.views.extend(view);
        if let Some(name) = server {
            restrict_to_server(app, &mut scope, name).ok_or_else(no_such_server)?;
        }
        scope.views.extend(query_view);
        scope.views.extend(header_view);
        Ok(Client { principal, token, scope: Arc::new(scope) })
    }

    /// Authorizes a request whose body is a message: JSON without a coding that the gateway does not decode.
    pub(super) fn authorize_message(
        app: &AppState,
        head: &Parts,
        server: Option<&str>,
    ) -> Result<Client, Response> {
        let client = Client::authorize(app, head, server)?;
        let is_supported_coding = match single(&head.headers, &header::TRANSFER_ENCODING) {
            Ok(coding) => coding.is_none_or(|coding| coding.eq_ignore_ascii_case("chunked")),
            Err(_) => false,
        };
        let (status, message) = if !headers::is_json(&head.headers) {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be `application/json`")
        } else if head.headers.contains_key(header::CONTENT_ENCODING) {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must have no `Content-Encoding`")
        } else if !is_supported_coding {
            (StatusCode::NOT_IMPLEMENTED, "the only supported `Transfer-Encoding` is `chunked`")
        } else {
            return Ok(client);
        };
        Err(refusal(status, None, &invalid_request(message)))
    }
}

/// Checks `Host`, `Origin` and the token.
fn admit(app: &AppState, head: &Parts) -> Result<Admission, Response> {
    let single = |name: &HeaderName| single(&head.headers, name).map_err(|error| bad_request(&error));
    let (host, origin) = (single(&header::HOST)?, single(&header::ORIGIN)?);
    let (authorization, _) = (single(&header::AUTHORIZATION)?, single(&MCP_SESSION_ID)?);
    // A target with an authority overrides `Host`. Both must be allowed, because a proxy may look at either.
    let authority = head.uri.authority().map(|authority| authority.as_str());
    let authority_allowed = |()| authority.map_or(Ok(()), |authority| app.guard.check(Some(authority), None));
    if let Err(forbidden) = app.guard.check(host.or(authority), origin).and_then(authority_allowed) {
        return Err(refusal(StatusCode::FORBIDDEN, None, &invalid_request(forbidden.message())));
    }
    app.tokens.borrow().admit(authorization.map(str::as_bytes)).map_err(unauthorized)
}

/// The response to a request without an accepted token. By RFC 6750 only a token that was sent has an error code.
fn unauthorized(error: TokenError) -> Response {
    let (message, challenge) = match error {
        TokenError::Missing => ("a token is needed: send the header `Authorization: Bearer TOKEN`", "Bearer"),
        TokenError::Unknown => (
            "the token is wrong: it is not one of those that are accepted now",
            "Bearer error=\"invalid_token\"",
        ),
    };
    let response = refusal(StatusCode::UNAUTHORIZED, None, &invalid_request(message));
    with_header(response, header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

/// Restricts a scope to a server. Returns `None` if the client must not learn that the server exists.
fn restrict_to_server(app: &AppState, scope: &mut Scope, name: &str) -> Option<()> {
    let id = ServerId::parse(name).ok()?;
    let is_allowed = scope.server.as_ref().is_none_or(|only| *only == id);
    let is_known = app.gateway.snapshot().servers.iter().any(|server| server.id == id.as_str());
    if !is_allowed || !is_known {
        return None;
    }
    scope.server = Some(id);
    // A server that the token hides looks like one that does not exist.
    let is_hidden = !scope.views.is_empty() && app.gateway.listing(&Arc::new(scope.clone())).is_empty();
    (!is_hidden).then_some(())
}

fn no_such_server() -> Response {
    refusal(StatusCode::NOT_FOUND, None, &invalid_request("there is no server with this name"))
}

fn query_selection(uri: &Uri) -> Result<Option<ViewFilter>, RpcError> {
    let Some(query) = uri.query() else { return Ok(None) };
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    scope::view(pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))).map_err(invalid_selection)
}

fn header_selection(headers: &HeaderMap) -> Result<Option<ViewFilter>, RpcError> {
    // Most requests have none of these headers. One pass over the names costs less than four lookups.
    if !headers.keys().any(|name| name.as_str().starts_with("mcp-host-")) {
        return Ok(None);
    }
    let is_known = |name: &HeaderName| {
        name == MCP_HOST_DIALOG
            || MCP_HOST_SELECTIONS.contains(name)
            || !name.as_str().starts_with("mcp-host-")
    };
    if !headers.keys().all(is_known) {
        return Err(invalid_selection(scope::unknown_key()));
    }
    let mut selections = Vec::new();
    for (name, key) in MCP_HOST_SELECTIONS.iter().zip(scope::SELECTIONS) {
        selections.extend(single(headers, name)?.map(|value| (key, value)));
    }
    scope::view(selections.into_iter()).map_err(invalid_selection)
}

fn invalid_selection(error: InvalidSelection) -> RpcError {
    invalid_request(&error.to_string())
}
