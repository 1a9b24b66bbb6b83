//! Authorizes a request: identifies the client and the part of the catalog that it sees.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use mcp_host_model::{Method, RawJson, RpcError, ServerId};
use mcp_host_registry::{Selection, ViewFilter};
use mcp_host_runtime::{HostSnapshot, ServerState};

use crate::access::admission::{Admission, Credential};
use crate::access::oauth::{AccessGrant, TokenRefusal, TokenVerifier};
use crate::access::principal::Principal;
use crate::access::scope::{self, InvalidSelection, Scope};
use crate::access::tokens::{TokenError, bearer_token};
use crate::http::app_state::AppState;
use crate::http::authorization::guard::ForbiddenHeader;
use crate::http::authorization::refusals::RefusalReason;
use crate::http::connection::client_connection::ClientConnection;
use crate::http::reply::errors::{bad_request, invalid_request, no_such_session, refusal};
use crate::http::reply::response::{Response, with_header};
use crate::http::request::header_names::{MCP_HOST_DIALOG, MCP_HOST_SELECTIONS, only_value};
use crate::limits::byte_budget::Account;
use crate::lists::definitions::CatalogList;
use crate::lists::listing::Audience;
use crate::lists::resolution::Resolution;
use crate::protocol::frame::ClientRequest;
use crate::session::client_dialog::ClientDialog;
use crate::session::client_session::ClientSession;
use crate::session::request_client::RequestSource;

/// `Retry-After` while the keys of the authorization server are not available, in seconds.
const KEYS_RETRY: HeaderValue = HeaderValue::from_static("10");

/// The client of an authorized request.
#[derive(Debug)]
pub(crate) struct AuthorizedClient<'a> {
    /// The server in the path of the request; `None` for the whole catalog.
    server: Option<&'a str>,
    /// Its identity.
    pub(crate) principal: Principal,
    /// The account for its bytes in memory.
    pub(crate) account: Account,
    /// Whether the account used more than its share before this request.
    pub(crate) is_over_share: bool,
    /// Where the request came from.
    pub(crate) source: RequestSource,
    /// The part of the catalog that the request may use: that of the token, narrowed by path, query and headers.
    pub(crate) scope: Arc<Scope>,
    /// Its token, if it needs one.
    pub(crate) credential: Option<Credential>,
}

impl<'a> AuthorizedClient<'a> {
    /// Authorizes a request for `server`, or for the whole catalog. An error is the response that refuses the
    /// request.
    pub(crate) fn authorize(
        app: &AppState,
        connection: &ClientConnection,
        head: &Parts,
        server: Option<&'a str>,
    ) -> Result<AuthorizedClient<'a>, Response> {
        let Admission { principal, mut scope, credential } = admit(app, head, server)?;
        let query_view = read_query_selection(&head.uri).map_err(|error| bad_request(&error))?;
        let header_view = read_header_selection(&head.headers).map_err(|error| bad_request(&error))?;
        if let Some(name) = server {
            scope = restrict_to_server(app, &scope, name)
                .ok_or_else(|| hidden_server(app, credential.as_ref(), &scope, name))?;
        }
        if query_view.is_some() || header_view.is_some() {
            Arc::make_mut(&mut scope).views.extend(query_view.into_iter().chain(header_view));
        }
        let account = match principal.is_anonymous() {
            true => connection.id.account(),
            false => Account::Client(principal.clone()),
        };
        let token_line = match &credential {
            Some(Credential::Listed(token)) => Some(token.line()),
            Some(Credential::Access(_)) | None => None,
        };
        let address = Some(app.client_address(connection.peer, &head.headers));
        Ok(AuthorizedClient {
            server,
            principal,
            is_over_share: app.gateway.budget.is_exceeded_by(&account),
            account,
            source: RequestSource { address, token_line },
            scope,
            credential,
        })
    }

    /// What its access token grants, if it has one of the authorization server.
    pub(crate) fn grant(&self) -> Option<&Arc<AccessGrant>> {
        self.credential.as_ref().and_then(Credential::grant)
    }

    /// Resolves what a request refers to, once the servers have started. Refuses a request for a tool, prompt or
    /// resource that the access token does not show, but that another OAuth scope shows. The response names that scope.
    pub(crate) async fn resolve(
        &self,
        app: &AppState,
        audience: Audience,
        request: &ClientRequest,
    ) -> Result<Resolution, Response> {
        app.gateway.wait_for_startup().await;
        let resolution = app.gateway.resolve(&self.scope, audience, request);
        self.require_scope(app, request, &resolution.snapshot)?;
        Ok(resolution)
    }

    /// The item that a request refers to, if the access token shows only a part of the catalog.
    pub(crate) fn limited_item<'r>(&self, request: &'r ClientRequest) -> Option<(CatalogList, Cow<'r, str>)> {
        self.grant().filter(|_| !self.scope.granted.is_empty())?;
        let (kind, parameter) = match request.method.as_known()? {
            Method::CallTool => (CatalogList::Tools, "name"),
            Method::GetPrompt => (CatalogList::Prompts, "name"),
            Method::ReadResource | Method::Subscribe => (CatalogList::Resources, "uri"),
            _ => return None,
        };
        Some((kind, request.params.text(parameter)?))
    }

    /// Refuses a request for an item that only another OAuth scope shows in this snapshot.
    fn require_scope(
        &self,
        app: &AppState,
        request: &ClientRequest,
        snapshot: &HostSnapshot,
    ) -> Result<(), Response> {
        let (Some(verifier), Some(grant)) = (&app.verifier, self.grant()) else { return Ok(()) };
        let Some((kind, key)) = self.limited_item(request) else { return Ok(()) };
        let is_shown = |scope: &Arc<Scope>| {
            let listing = app.gateway.listing_of(snapshot, scope, Audience::ModelsAndApps);
            listing.find(kind, &key).is_some()
                || (kind == CatalogList::Resources && listing.matching_template(&key, None).is_some())
        };
        let shows = |granted| is_shown(&Arc::new(Scope { granted, ..(*self.scope).clone() }));
        // A name that no scope shows needs none.
        if is_shown(&self.scope) || !shows(Vec::new()) {
            return Ok(());
        }
        match verifier.missing_scope(grant, shows) {
            None => Ok(()),
            scope => Err(refuse(
                verifier,
                TokenRefusal::InsufficientScope,
                RefusedRequest { server: self.server, scope, id: Some(&request.id) },
            )),
        }
    }

    /// Finds the session with this id, if it belongs to the client and has the client's scope.
    pub(crate) fn find_session(&self, app: &AppState, id: &str) -> Result<Arc<ClientSession>, Response> {
        let session = app.gateway.sessions.get(id, &self.principal);
        // A session outlives its access token: the next one may grant more, or less.
        let is_same = |scope: &Scope| {
            *scope == *self.scope
                || (self.grant().is_some()
                    && *scope == Scope { granted: scope.granted.clone(), ..(*self.scope).clone() })
        };
        session.filter(|session| is_same(&session.scope)).ok_or_else(no_such_session)
    }
}

/// Sets the access token of an authorized request as the subject token of a dialog of its client. The tokens of the
/// list are never passed on.
pub(crate) fn set_subject_token(dialog: &ClientDialog, grant: Option<&Arc<AccessGrant>>, head: &Parts) {
    let Some(grant) = grant else { return };
    if let Some(token) = bearer_token(head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes)) {
        dialog.set_subject_token(grant, token);
    }
}

/// Checks `Host`, `Origin` and the token.
pub(crate) fn admit(app: &AppState, head: &Parts, server: Option<&str>) -> Result<Admission, Response> {
    let value_of = |name: &HeaderName| only_value(&head.headers, name).map_err(|error| bad_request(&error));
    let (host, origin) = (value_of(&header::HOST)?, value_of(&header::ORIGIN)?);
    let authorization = value_of(&header::AUTHORIZATION)?;
    // A target with an authority overrides `Host`. Both must be allowed, because a proxy may look at either.
    let authority = head.uri.authority().map(|authority| authority.as_str());
    let authority_allowed = |()| authority.map_or(Ok(()), |authority| app.guard.check(Some(authority), None));
    if let Err(forbidden) = app.guard.check(host.or(authority), origin).and_then(authority_allowed) {
        let value = match forbidden {
            ForbiddenHeader::Host => host.or(authority),
            ForbiddenHeader::Origin => origin,
        };
        let message = forbidden.message(value);
        let mut response = refusal(StatusCode::FORBIDDEN, None, &invalid_request(&message));
        response.extensions_mut().insert(RefusalReason(message.into()));
        return Err(response);
    }
    let authorization = authorization.map(str::as_bytes);
    match (app.tokens.borrow().admit(authorization, SystemTime::now()), &app.verifier) {
        (Ok(Some(token)), _) => Ok(Credential::Listed(token).into()),
        (Ok(None), None) => {
            let (principal, scope) = (Principal::anonymous(), Arc::clone(&app.scope));
            Ok(Admission { principal, scope, credential: None })
        }
        (Ok(None) | Err(TokenError::Missing | TokenError::Unknown), Some(verifier)) => {
            let grant = verifier.admit(authorization, server).map_err(|refusal| {
                refuse(verifier, refusal, RefusedRequest { server, scope: None, id: None })
            })?;
            Ok(Credential::Access(grant).into())
        }
        (Err(error), _) => Err(unauthorized(error)),
    }
}

/// The response to a request without an accepted token. By RFC 6750 only a token that was sent has an error code.
fn unauthorized(error: TokenError) -> Response {
    let (message, challenge) = match error {
        TokenError::Missing => ("a token is needed: send the header `Authorization: Bearer TOKEN`", "Bearer"),
        TokenError::Unknown => (
            "the token is wrong: it is not one of those that are accepted now",
            "Bearer error=\"invalid_token\"",
        ),
        TokenError::Expired => (
            "the token has expired: a new one is needed",
            "Bearer error=\"invalid_token\", error_description=\"the token has expired\"",
        ),
    };
    let mut response = refusal(StatusCode::UNAUTHORIZED, None, &invalid_request(message));
    response.extensions_mut().insert(RefusalReason(message.into()));
    with_header(response, header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

/// A request that is refused because of its access token.
struct RefusedRequest<'a> {
    /// The server in its path; `None` for the whole catalog.
    server: Option<&'a str>,
    /// The scope that would suffice, if another one does.
    scope: Option<&'a str>,
    /// The id of the request, if it was read.
    id: Option<&'a RawJson>,
}

/// The response to a request without an acceptable access token.
fn refuse(
    verifier: &TokenVerifier,
    reason: TokenRefusal,
    RefusedRequest { server, scope, id }: RefusedRequest<'_>,
) -> Response {
    let status = match reason {
        TokenRefusal::Missing | TokenRefusal::Invalid(_) => StatusCode::UNAUTHORIZED,
        TokenRefusal::InsufficientScope => StatusCode::FORBIDDEN,
        TokenRefusal::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = refusal(status, id, &invalid_request(reason.message()));
    // A client without a token is about to log in, and one without a scope is about to request it.
    if matches!(reason, TokenRefusal::Invalid(_) | TokenRefusal::Unavailable) {
        response.extensions_mut().insert(RefusalReason(reason.message().into()));
    }
    if reason == TokenRefusal::Unavailable {
        return with_header(response, header::RETRY_AFTER, KEYS_RETRY);
    }
    let challenge = HeaderValue::try_from(verifier.challenge(reason, server, scope));
    with_header(response, header::WWW_AUTHENTICATE, challenge.expect("scopes and URLs are visible ASCII"))
}

/// Narrows a scope to one server. `None` if the client must not learn that the server exists.
fn restrict_to_server(app: &AppState, scope: &Scope, name: &str) -> Option<Arc<Scope>> {
    let id = ServerId::parse(name).ok()?;
    let is_allowed = scope.server.as_ref().is_none_or(|only| *only == id);
    let snapshot = app.gateway.snapshot();
    let status = snapshot.server(&id)?;
    if !is_allowed {
        return None;
    }
    let is_down = status.state != ServerState::Ready;
    // The tools of a server that is down are not known, so the scope must name the server, or show all tools.
    let names_server =
        |view: &ViewFilter| view.toolsets != Selection::Inherit || view.tools == Selection::Inherit;
    let is_named_and_down = is_down && scope.may_show(&id, names_server);
    let restricted = Arc::new(Scope { server: Some(id), ..scope.clone() });
    if is_named_and_down {
        return Some(restricted);
    }
    // A server that the token hides looks like one that does not exist.
    let is_filtered = !restricted.views.is_empty() || !restricted.granted.is_empty();
    let is_hidden = is_filtered && app.gateway.listing(&restricted, Audience::ModelsAndApps).is_empty();
    (!is_hidden).then_some(restricted)
}

/// The response to a request for a server that does not exist, or that the scope hides.
fn hidden_server(app: &AppState, credential: Option<&Credential>, scope: &Scope, name: &str) -> Response {
    let shows = |granted| restrict_to_server(app, &Scope { granted, ..scope.clone() }, name).is_some();
    match app.verifier.as_ref().zip(credential.and_then(Credential::grant)) {
        Some((verifier, grant)) => match verifier.missing_scope(grant, shows) {
            None => no_such_server(),
            scope => refuse(
                verifier,
                TokenRefusal::InsufficientScope,
                RefusedRequest { server: Some(name), scope, id: None },
            ),
        },
        None => no_such_server(),
    }
}

fn no_such_server() -> Response {
    refusal(StatusCode::NOT_FOUND, None, &invalid_request("there is no server with this name"))
}

/// Reads the selection in the query of a URI, if any.
pub(crate) fn read_query_selection(uri: &Uri) -> Result<Option<ViewFilter>, RpcError> {
    let Some(query) = uri.query() else { return Ok(None) };
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    scope::read_view(pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())))
        .map_err(invalid_selection)
}

/// Reads the selection in the `Mcp-Host-*` headers, if any.
fn read_header_selection(headers: &HeaderMap) -> Result<Option<ViewFilter>, RpcError> {
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
        return Err(invalid_selection(scope::unknown_key_error()));
    }
    let mut selections = Vec::new();
    for (name, key) in MCP_HOST_SELECTIONS.iter().zip(scope::SELECTIONS) {
        selections.extend(only_value(headers, name)?.map(|value| (key, value)));
    }
    scope::read_view(selections).map_err(invalid_selection)
}

fn invalid_selection(error: InvalidSelection) -> RpcError {
    invalid_request(&error.to_string())
}
