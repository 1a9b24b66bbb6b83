//! A message of a client: who sends it, in which era, and where it goes.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use mcp_model::{Era, ProtocolVersion, RawJson, RpcError, ServerId, code};
use mcp_registry::ViewFilter;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::answering::{Answer, Answering, Leaving, Work, json, taken_back};
use super::headers::{self, Accepts};
use super::line::Line;
use super::modern::{self, Place};
use super::routes::Server;
use super::server::Door;
use super::wire::{Fields, Head, Name, NotPlain, NotWhole, Response, Wire};
use super::worker::{Job, Worker};
use crate::access::principal::Principal;
use crate::access::scope::{self, Scope};
use crate::access::tokens;
use crate::methods::initialize;
use crate::protocol::frame::{self, Incoming, Request};
use crate::protocol::response;
use crate::session::caller::Caller;
use crate::session::outbound_queue::{Outlet, outlet};
use crate::session::registry::RECENT;
use crate::session::state::Session;

/// Who may ask, and what he sees.
pub(super) struct Visitor {
    pub(super) principal: Principal,
    pub(super) scope: Arc<Scope>,
}

/// The headers that select, in the order of [`scope::SELECTIONS`].
const SELECTING: [Name; 4] = [Name::Servers, Name::Tools, Name::Prompts, Name::Resources];

/// Who posts this, before his message is read.
pub(super) fn visitor_with_json(door: &Door, head: &Head, server: Server) -> Result<Visitor, Response> {
    let visitor = visitor(door, head, server)?;
    match headers::is_json(&head.fields) {
        true => Ok(visitor),
        false => {
            let error = invalid("the body must be `application/json`");
            Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &error))
        }
    }
}

/// The text of his message.
pub(super) async fn body<S: AsyncRead + AsyncWrite + Unpin>(
    line: &Line,
    wire: &mut Wire<S>,
) -> Result<Bytes, Response> {
    let Line { door, alarm, .. } = line;
    let bounds = door.bounds();
    let whole = pin!(wire.body(bounds.message_bytes, &door.gateway.budget));
    let refused = |status, message: &str| Err(refusal(status, None, &invalid(message)));
    match alarm.within(bounds.receive, whole).await {
        Some(Ok(body)) => Ok(body),
        Some(Err(NotWhole::TooLong)) => {
            let message = format!("a message may have {} bytes", bounds.message_bytes);
            refused(StatusCode::PAYLOAD_TOO_LARGE, &message)
        }
        Some(Err(NotWhole::NoRoom)) => {
            let res = refusal(StatusCode::SERVICE_UNAVAILABLE, None, &busy());
            Err(res.with(header::RETRY_AFTER, HeaderValue::from_static("1")))
        }
        Some(Err(NotWhole::Broken)) => refused(StatusCode::BAD_REQUEST, "the body cannot be read to its end"),
        None => refused(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
    }
}

/// Takes a message.
pub(super) async fn post(line: &Line, head: &Head, visitor: Visitor, body: Bytes) -> Response {
    match head.fields.text(Name::Session) {
        Some(id) => in_session(line, head, &visitor, id, body).await,
        None => without_session(line, head, visitor, body).await,
    }
}

/// Who sends this, and what he may see; or the response that turns him away.
pub(super) fn visitor(door: &Door, head: &Head, server: Server) -> Result<Visitor, Response> {
    let Head { fields, target, .. } = head;
    // What stands there twice, or cannot be read, is no name that could be looked at.
    let only = |name| match fields.only(name) {
        Ok(text) => Ok(text),
        Err(NotPlain) => {
            let error = invalid("a header is unreadable or stands twice");
            Err(refusal(StatusCode::BAD_REQUEST, None, &error))
        }
    };
    let (host, origin) = (only(Name::Host)?, only(Name::Origin)?);
    let (authorization, _) = (only(Name::Authorization)?, only(Name::Session)?);
    // Where the target names a host as well, that one counts, and whoever reads the other must not be deceived.
    let authority = target.authority().map(|it| it.as_str());
    let authority_fits = |()| authority.map_or(Ok(()), |it| door.guard.check(Some(it), None));
    if let Err(intruder) = door.guard.check(host.or(authority), origin).and_then(authority_fits) {
        return Err(refusal(StatusCode::FORBIDDEN, None, &invalid(intruder.words())));
    }
    let Some(tokens::Admitted { principal, view }) = door.tokens.admit(authorization.map(str::as_bytes))
    else {
        let res = refusal(StatusCode::UNAUTHORIZED, None, &invalid("a bearer token is needed"));
        return Err(res.with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
    };
    let selected = |view| match view {
        Ok(view) => Ok(view),
        Err(error) => Err(refusal(StatusCode::BAD_REQUEST, None, &invalid(&format!("{error}")))),
    };
    let of_query = selected(of_query(target))?;
    let of_fields = selected(of_fields(fields))?;
    if view.is_none() && server.is_none() && of_query.is_none() && of_fields.is_none() {
        return Ok(Visitor { principal, scope: Arc::clone(&door.scope) });
    }
    let mut scope = (*door.scope).clone();
    scope.views.extend(view);
    if let Some(name) = server {
        let id = ServerId::parse(&name).ok();
        let fits = |id: &ServerId| scope.server.as_ref().is_none_or(|only| only == id);
        match id.filter(|id| fits(id) && is_known(door, id)) {
            Some(id) => scope.server = Some(id),
            None => return Err(no_server()),
        }
        // Of what a token hides nobody learns that it is there.
        if !scope.views.is_empty() && door.gateway.listing(&Arc::new(scope.clone())).is_empty() {
            return Err(no_server());
        }
    }
    scope.views.extend(of_query);
    scope.views.extend(of_fields);
    Ok(Visitor { principal, scope: Arc::new(scope) })
}

fn no_server() -> Response {
    refusal(StatusCode::NOT_FOUND, None, &invalid("there is no such server here"))
}

fn of_query(uri: &Uri) -> Result<Option<ViewFilter>, scope::InvalidSelection> {
    let Some(query) = uri.query() else { return Ok(None) };
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    scope::view(pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())))
}

fn of_fields(fields: &Fields) -> Result<Option<ViewFilter>, scope::InvalidSelection> {
    let named = SELECTING.iter().zip(scope::SELECTIONS);
    scope::view(named.filter_map(|(header, key)| Some((key, fields.text(*header)?))))
}

fn is_known(door: &Door, id: &ServerId) -> bool {
    door.gateway.published().servers.iter().any(|it| it.id == id.as_str())
}

async fn in_session(line: &Line, head: &Head, visitor: &Visitor, id: &str, body: Bytes) -> Response {
    let door = &line.door;
    let Some(session) = session(door, visitor, id) else { return no_session() };
    if let Some(version) = head.fields.text(Name::Version)
        && version.parse::<ProtocolVersion>().map_or(true, |it| it.era() != Era::Legacy)
    {
        let error = invalid("the header `MCP-Protocol-Version` names no version of this session");
        return refusal(StatusCode::BAD_REQUEST, None, &error);
    }
    session.touch(Instant::now());
    let accepts = headers::accepts(&head.fields);
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
            let job = match begin(door, &session, out, request) {
                Ok(job) => job,
                Err((id, error)) => return refusal(StatusCode::OK, Some(&id), &error),
            };
            let work = Work::InSession(line.worker(job));
            Answering::new(work, inlet, Leaving::Finishes).respond(accepts, line).await
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

/// Gives a request of a session its places.
fn begin(
    door: &Arc<Door>,
    session: &Arc<Session>,
    out: Outlet,
    request: Request,
) -> Result<Job, (RawJson, RpcError)> {
    if request.method == "initialize" {
        return Err((request.id, invalid("this session is initialized already")));
    }
    let Ok(place) = Arc::clone(&door.places).try_acquire_owned() else {
        return Err((request.id, busy()));
    };
    // Whoever has many sessions has not many times the places.
    let own = match session.principal.is_anybody() {
        true => None,
        false => match Place::in_sessions(door, &session.principal) {
            None => return Err((request.id, busy())),
            own => own,
        },
    };
    let guard = match session.running.begin(&request.id, door.bounds().requests_of_one) {
        Ok(guard) => guard,
        Err(error) => return Err((request.id, error)),
    };
    let gateway = Arc::clone(&door.gateway);
    Ok(Job { gateway, caller: Caller::of_session(session, out), request, guard, place, own })
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
    let refused = |id: Option<&RawJson>, error: &RpcError| -> Work {
        let answer = Answer { status: StatusCode::OK, body: response::error(id, error) };
        Work::Alone(Box::pin(std::future::ready(Some(answer))))
    };
    let mut work = Vec::new();
    for message in messages {
        // What comes before an answer has no place in a batch of answers.
        let (out, _) = outlet(door.bounds());
        match message {
            Ok(Incoming::Request(request)) => match begin(door, session, out, request) {
                Ok(job) => work.push(Work::InSession(Worker::new(job))),
                Err((id, error)) => work.push(refused(Some(&id), &error)),
            },
            Ok(other) => take(door, session, other),
            Err(it) => work.push(refused(it.id.as_ref(), &it.error)),
        }
    }
    let answers = futures_util::future::join_all(work).await;
    let answers: Vec<Bytes> = answers.into_iter().flatten().map(|it| it.body).collect();
    match answers.is_empty() {
        true => taken_back(),
        false => json(Answer { status: StatusCode::OK, body: response::batch(&answers) }),
    }
}

async fn without_session(line: &Line, head: &Head, visitor: Visitor, body: Bytes) -> Response {
    let door = &line.door;
    let version = head.fields.text(Name::Version);
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
            match (stateless, &*request.method) {
                (true, _) => modern::answer(line, head, visitor, request).await,
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
    let body = response::result(&request.id, result.as_bytes());
    let id = HeaderValue::from_str(&session.id).expect("hexadecimal digits are a header's value");
    json(Answer { status: StatusCode::OK, body }).with(HeaderName::from_static(Name::Session.text()), id)
}

/// Nobody knows a session of this id: it has ended, or was another one's.
pub(super) fn no_session() -> Response {
    let error = RpcError::new(code::SERVER_ERROR, "there is no such session: begin a new one");
    refusal(StatusCode::NOT_FOUND, None, &error)
}

/// A response with an error.
pub(super) fn refusal(status: StatusCode, id: Option<&RawJson>, error: &RpcError) -> Response {
    json(Answer { status, body: response::error(id, error) })
}

/// There is no room for another session or dialog, until others were not used for a while.
pub(super) fn no_room(id: &RawJson) -> Response {
    let error = RpcError::new(code::SERVER_ERROR, "too many sessions or dialogs are in use: try again later");
    let res = refusal(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
    res.with(header::RETRY_AFTER, HeaderValue::from(RECENT.as_secs()))
}

pub(super) fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, message)
}

pub(super) fn busy() -> RpcError {
    RpcError::new(code::SERVER_ERROR, "too many requests at once: try again later")
}
