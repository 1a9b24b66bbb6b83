//! A message of a client: who sends it, in which era, and where it goes.

use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming as Body};
use mcp_model::{Era, ProtocolVersion, RawJson, RpcError, ServerId, code};
use mcp_registry::View;
use tokio::time::Instant;

use super::answering::{Answer, Answering, Leaving, json, taken_back};
use super::body::Response;
use super::headers::{self, Accepts, SESSION, VERSION};
use super::line::Line;
use super::modern::{self, Place};
use super::routes::{HttpRequest, Server};
use super::server::Door;
use crate::budget::{Budget, Held, NoRoom, SMALL};
use crate::caller::Caller;
use crate::frame::{self, Incoming, Request};
use crate::methods::initialize;
use crate::outlet::{Outlet, outlet};
use crate::principal::Principal;
use crate::scope::{self, Scope};
use crate::session::Session;
use crate::sessions::RECENT;
use crate::{reply, tokens};

/// Who may ask, and what he sees.
pub(super) struct Visitor {
    pub(super) principal: Principal,
    pub(super) scope: Arc<Scope>,
}

/// The headers that select, in the order of [`scope::SELECTIONS`].
static SELECTING: [HeaderName; 4] = [
    HeaderName::from_static("mcp-host-servers"),
    HeaderName::from_static("mcp-host-tools"),
    HeaderName::from_static("mcp-host-prompts"),
    HeaderName::from_static("mcp-host-resources"),
];

/// Takes a message.
pub(super) async fn post(line: &Line, server: Server, request: HttpRequest) -> Response {
    let door = &line.door;
    let (parts, body) = request.into_parts();
    let visitor = match visitor(door, &parts.headers, &parts.uri, server) {
        Ok(visitor) => visitor,
        Err(refusal) => return *refusal,
    };
    if !headers::is_json(&parts.headers) {
        let message = "the body must be `application/json`";
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &invalid(message));
    }
    let bounds = door.bounds();
    let whole = whole(body, bounds.message_bytes, &door.gateway.budget);
    let body = match line.alarm.within(bounds.receive, whole).await {
        Some(Ok(body)) => body,
        Some(Err(NotWhole::TooLong)) => {
            let message = format!("a message may have {} bytes", bounds.message_bytes);
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, None, &invalid(&message));
        }
        Some(Err(NotWhole::NoRoom)) => {
            let mut res = refusal(StatusCode::SERVICE_UNAVAILABLE, None, &busy());
            res.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            return res;
        }
        Some(Err(NotWhole::Broken)) => {
            return refusal(StatusCode::BAD_REQUEST, None, &invalid("the body cannot be read to its end"));
        }
        None => return refusal(StatusCode::REQUEST_TIMEOUT, None, &invalid("the body took too long")),
    };
    match headers::text(&parts.headers, &SESSION) {
        Some(id) => in_session(line, &parts, &visitor, id, body).await,
        None => without_session(line, &parts, visitor, body).await,
    }
}

/// Why there is no body.
enum NotWhole {
    TooLong,
    Broken,
    /// Too much of others is held.
    NoRoom,
}

/// The body, of `most` bytes. What was received counts, and not what was announced.
async fn whole(mut body: Body, most: usize, budget: &Arc<Budget>) -> Result<Bytes, NotWhole> {
    if body.size_hint().lower() > most as u64 {
        return Err(NotWhole::TooLong);
    }
    let mut held: Option<Held> = None;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while !body.is_end_stream() {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let Some(frame) = next else { break };
        // What stands behind the body means nothing here.
        let Ok(part) = frame.map_err(|_| NotWhole::Broken)?.into_data() else { continue };
        let bytes = first.len() + rest.len() + part.len();
        if bytes > most {
            return Err(NotWhole::TooLong);
        }
        if bytes >= SMALL {
            match &mut held {
                Some(held) => held.grow(bytes).map_err(|NoRoom| NotWhole::NoRoom)?,
                None => held = Some(budget.reserve(bytes).map_err(|NoRoom| NotWhole::NoRoom)?),
            }
        }
        // Most bodies come in one piece, which is not copied.
        match first.is_empty() && rest.is_empty() {
            true => first = part,
            false => {
                rest.extend_from_slice(&std::mem::take(&mut first));
                rest.extend_from_slice(&part);
            }
        }
    }
    let bytes = if rest.is_empty() { first } else { rest.freeze() };
    Ok(match held {
        Some(held) => held.keeps(bytes),
        None => bytes,
    })
}

/// Who sends this, and what he may see; or the response that turns him away.
pub(super) fn visitor(
    door: &Door,
    headers: &HeaderMap,
    uri: &Uri,
    server: Server,
) -> Result<Visitor, Box<Response>> {
    // What stands there twice, or cannot be read, is no name that could be looked at.
    let only = |name: &HeaderName| match headers::only(headers, name) {
        Ok(text) => Ok(text),
        Err(headers::NotPlain) => {
            let error = invalid("a header is unreadable or stands twice");
            Err(Box::new(refusal(StatusCode::BAD_REQUEST, None, &error)))
        }
    };
    let (host, origin) = (only(&header::HOST)?, only(&header::ORIGIN)?);
    let (authorization, _) = (only(&header::AUTHORIZATION)?, only(&SESSION)?);
    // Where the target names a host as well, that one counts, and whoever reads the other must not be deceived.
    let target = uri.authority().map(|it| it.as_str());
    let target_fits = |()| target.map_or(Ok(()), |it| door.guard.check(Some(it), None));
    if let Err(intruder) = door.guard.check(host.or(target), origin).and_then(target_fits) {
        return Err(Box::new(refusal(StatusCode::FORBIDDEN, None, &invalid(intruder.words()))));
    }
    let Some(tokens::Admitted { principal, view }) = door.tokens.admit(authorization.map(str::as_bytes))
    else {
        let mut res = refusal(StatusCode::UNAUTHORIZED, None, &invalid("a bearer token is needed"));
        res.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Err(Box::new(res));
    };
    let selected = |view| match view {
        Ok(view) => Ok(view),
        Err(error) => Err(Box::new(refusal(StatusCode::BAD_REQUEST, None, &invalid(&format!("{error}"))))),
    };
    let of_query = selected(of_query(uri))?;
    let of_headers = selected(of_headers(headers))?;
    if view.is_none() && server.is_none() && of_query.is_none() && of_headers.is_none() {
        return Ok(Visitor { principal, scope: Arc::clone(&door.scope) });
    }
    let mut scope = (*door.scope).clone();
    scope.views.extend(view);
    if let Some(name) = server {
        let id = ServerId::parse(&name).ok();
        let fits = |id: &ServerId| scope.server.as_ref().is_none_or(|only| only == id);
        match id.filter(|id| fits(id) && is_known(door, id)) {
            Some(id) => scope.server = Some(id),
            None => return Err(Box::new(no_server())),
        }
        // Of what a token hides nobody learns that it is there.
        if !scope.views.is_empty() && door.gateway.listing(&Arc::new(scope.clone())).is_empty() {
            return Err(Box::new(no_server()));
        }
    }
    scope.views.extend(of_query);
    scope.views.extend(of_headers);
    Ok(Visitor { principal, scope: Arc::new(scope) })
}

fn no_server() -> Response {
    refusal(StatusCode::NOT_FOUND, None, &invalid("there is no such server here"))
}

fn of_query(uri: &Uri) -> Result<Option<View>, scope::InvalidSelection> {
    let Some(query) = uri.query() else { return Ok(None) };
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    scope::view(pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())))
}

fn of_headers(headers: &HeaderMap) -> Result<Option<View>, scope::InvalidSelection> {
    // Few clients send any: one look at all names is less than one for each.
    if !headers.keys().any(|it| SELECTING.contains(it)) {
        return Ok(None);
    }
    let named = SELECTING.iter().zip(scope::SELECTIONS);
    scope::view(named.filter_map(|(header, key)| Some((key, headers.get(header)?.to_str().ok()?))))
}

fn is_known(door: &Door, id: &ServerId) -> bool {
    door.gateway.published().servers.iter().any(|it| it.id == id.as_str())
}

async fn in_session(line: &Line, parts: &Parts, visitor: &Visitor, id: &str, body: Bytes) -> Response {
    let door = &line.door;
    let Some(session) = session(door, visitor, id) else { return no_session() };
    if let Some(version) = headers::text(&parts.headers, &VERSION)
        && version.parse::<ProtocolVersion>().map_or(true, |it| it.era() != Era::Legacy)
    {
        let error = invalid("the header `MCP-Protocol-Version` names no version of this session");
        return refusal(StatusCode::BAD_REQUEST, None, &error);
    }
    session.touch(Instant::now());
    let accepts = headers::accepts(&parts.headers);
    let batches = session.version == ProtocolVersion::V2025_03_26;
    if batches && body.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b'[') {
        return batch(door, &session, &body).await;
    }
    match frame::read(&body) {
        Ok(Incoming::Request(request)) => {
            let (mut out, inlet) = outlet(door.bounds());
            if accepts == Accepts::Json {
                // He hears nothing before his answer: what he is asked must find another way, or none.
                (out, _) = outlet(door.bounds());
            }
            let work = match begin(door, &session, out, request) {
                Ok(work) => work,
                Err((id, error)) => return refusal(StatusCode::OK, Some(&id), &error),
            };
            let work = Box::pin(async move {
                let body = work.await?;
                Some(Answer { status: StatusCode::OK, body })
            });
            Answering::new(work, inlet, Leaving::Finishes).respond(accepts, &line.alarm).await
        }
        Ok(other) => {
            take(door, &session, other);
            taken_back()
        }
        Err(it) => refusal(StatusCode::BAD_REQUEST, it.id.as_ref(), &it.error),
    }
}

/// The session of this id, where it is the visitor's own and sees no more than he does.
pub(super) fn session(door: &Door, visitor: &Visitor, id: &str) -> Option<Arc<Session>> {
    let session = door.gateway.sessions.get(id, &visitor.principal)?;
    (session.scope == visitor.scope).then_some(session)
}

/// Begins a request of a session: gives what is to be done, `None` in the end when it was taken back.
fn begin(
    door: &Arc<Door>,
    session: &Arc<Session>,
    out: Outlet,
    request: Request,
) -> Result<impl Future<Output = Option<Bytes>> + Send + 'static, (RawJson, RpcError)> {
    let id = request.id.clone();
    if request.method == "initialize" {
        return Err((id, invalid("this session is initialized already")));
    }
    let Ok(place) = Arc::clone(&door.places).try_acquire_owned() else {
        return Err((id, busy()));
    };
    // Whoever has many sessions has not many times the places.
    let own = match session.principal.is_anybody() {
        true => None,
        false => match Place::in_sessions(door, &session.principal) {
            None => return Err((id, busy())),
            own => own,
        },
    };
    let mut guard = match session.running.begin(&request.id, door.bounds().requests_of_one) {
        Ok(guard) => guard,
        Err(error) => return Err((id, error)),
    };
    let gateway = Arc::clone(&door.gateway);
    let caller = Caller::of_session(session, out);
    Ok(async move {
        let answered = tokio::select! {
            biased;
            () = guard.taken_back() => None,
            answered = gateway.answer(&caller, &request) => Some(answered),
        };
        if let Some(session) = &caller.session {
            session.touch(Instant::now());
        }
        drop((guard, place, own));
        let body = match answered? {
            Ok(result) => reply::result(&request.id, &result),
            Err(error) => reply::error(Some(&request.id), &error),
        };
        Some(gateway.budget.counted(body))
    })
}

/// Takes in what wants no answer.
fn take(door: &Door, session: &Arc<Session>, incoming: Incoming) {
    match incoming {
        Incoming::Notification(it) => {
            // What a notification leads to is told nowhere.
            let (out, _) = outlet(door.bounds());
            door.gateway.hear(&Caller::of_session(session, out), &it);
        }
        Incoming::Response(it) => session.asked.answered(&it.id, it.outcome),
        Incoming::Request(_) => unreachable!("requests are answered"),
    }
}

/// The messages of a batch, beside each other; their answers in the order in which they were asked.
async fn batch(door: &Arc<Door>, session: &Arc<Session>, body: &Bytes) -> Response {
    let messages = match frame::read_many(body) {
        Ok(messages) => messages,
        Err(it) => return refusal(StatusCode::BAD_REQUEST, it.id.as_ref(), &it.error),
    };
    let mut work = Vec::new();
    for message in messages {
        // What comes before an answer has no place in a batch of answers.
        let (out, _) = outlet(door.bounds());
        match message {
            Ok(Incoming::Request(request)) => match begin(door, session, out, request) {
                Ok(it) => work.push(futures_util::future::Either::Left(it)),
                Err((id, error)) => {
                    let answer = reply::error(Some(&id), &error);
                    work.push(futures_util::future::Either::Right(std::future::ready(Some(answer))));
                }
            },
            Ok(other) => take(door, session, other),
            Err(it) => {
                let answer = reply::error(it.id.as_ref(), &it.error);
                work.push(futures_util::future::Either::Right(std::future::ready(Some(answer))));
            }
        }
    }
    let answers: Vec<Bytes> = futures_util::future::join_all(work).await.into_iter().flatten().collect();
    match answers.is_empty() {
        true => taken_back(),
        false => json(Answer { status: StatusCode::OK, body: reply::batch(&answers) }),
    }
}

async fn without_session(line: &Line, parts: &Parts, visitor: Visitor, body: Bytes) -> Response {
    let door = &line.door;
    let version = headers::text(&parts.headers, &VERSION);
    let incoming = match frame::read(&body) {
        Ok(incoming) => incoming,
        Err(it) => return refusal(StatusCode::BAD_REQUEST, it.id.as_ref(), &it.error),
    };
    let said = version.map(str::parse::<ProtocolVersion>);
    let has_sessions = matches!(said, Some(Ok(version)) if version.era() == Era::Legacy);
    match incoming {
        Incoming::Request(request) => {
            // Whoever says a version beside the message does so in the era without sessions, or has one already.
            let stateless = request.meta.is_modern() || (said.is_some() && !has_sessions);
            match (stateless, request.method.as_str()) {
                (true, _) => modern::answer(line, parts, visitor, request).await,
                (false, "initialize") => {
                    door.gateway.settle().await;
                    initialize(door, visitor, &request)
                }
                (false, _) => {
                    let message =
                        "there is no session: send `initialize` first, and its `Mcp-Session-Id` then";
                    let error = RpcError::new(code::SERVER_ERROR, message);
                    refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error)
                }
            }
        }
        // A client of the era without sessions says nothing that means something here: it ends what it does not want.
        Incoming::Notification(_) | Incoming::Response(_) if !has_sessions => taken_back(),
        Incoming::Notification(_) | Incoming::Response(_) => {
            let error = RpcError::new(code::SERVER_ERROR, "there is no session: `Mcp-Session-Id` is missing");
            refusal(StatusCode::BAD_REQUEST, None, &error)
        }
    }
}

fn initialize(door: &Arc<Door>, visitor: Visitor, request: &Request) -> Response {
    let agreed = match initialize::agree(request.params.raw()) {
        Ok(agreed) => agreed,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error),
    };
    let Visitor { principal, scope } = visitor;
    let result = initialize::initialized(&door.gateway, &agreed, &scope);
    let Ok(session) = door.gateway.begin(principal, scope, agreed) else {
        return no_room(&request.id);
    };
    let body = reply::result(&request.id, result.as_bytes());
    let mut res = json(Answer { status: StatusCode::OK, body });
    let id = HeaderValue::from_str(&session.id).expect("hexadecimal digits are a header's value");
    res.headers_mut().insert(SESSION, id);
    res
}

/// Nobody knows a session of this id: it has ended, or was another one's.
pub(super) fn no_session() -> Response {
    let error = RpcError::new(code::SERVER_ERROR, "there is no such session: begin a new one");
    refusal(StatusCode::NOT_FOUND, None, &error)
}

/// A response with an error.
pub(super) fn refusal(status: StatusCode, id: Option<&RawJson>, error: &RpcError) -> Response {
    json(Answer { status, body: reply::error(id, error) })
}

/// There is no room for another session or dialog, until others were not used for a while.
pub(super) fn no_room(id: &RawJson) -> Response {
    let error = RpcError::new(code::SERVER_ERROR, "too many sessions or dialogs are in use: try again later");
    let mut res = refusal(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
    res.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RECENT.as_secs()));
    res
}

pub(super) fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, message)
}

pub(super) fn busy() -> RpcError {
    RpcError::new(code::SERVER_ERROR, "too many requests at once: try again later")
}
