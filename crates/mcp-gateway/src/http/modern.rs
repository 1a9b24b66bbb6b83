//! The era without sessions: each request stands alone, says who asks and in which version, and its stream is its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use mcp_model::{RawJson, RpcError, code};
use mcp_transport::CallerId;
use tokio::time::Instant;

use super::answering::{Answer, Answering, Leaving, Work};
use super::line::Line;
use super::post::{Visitor, busy, no_room, refusal};
use super::server::Door;
use super::wire::{Head, Name, Response};
use super::{headers, listen};
use crate::access::principal::Principal;
use crate::access::scope::Leased;
use crate::protocol::frame::Request;
use crate::protocol::response;
use crate::session::caller::{Able, Caller};
use crate::session::dialogs::LONGEST_NAME;
use crate::session::outbound_queue::outlet;
use crate::session::registry::Full;

/// How much of something runs, by client.
#[derive(Debug, Default)]
pub(super) struct Counted(Mutex<HashMap<Principal, usize>>);

impl Counted {
    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that runs, or a stream that is open.
pub(super) struct Place {
    counted: Arc<Counted>,
    principal: Principal,
}

impl Place {
    fn of_request(door: &Door, principal: &Principal) -> Option<Place> {
        Place::take(&door.stateless, principal, door.bounds().requests_of_one, usize::MAX)
    }

    /// A request of one of his sessions.
    pub(super) fn in_sessions(door: &Door, principal: &Principal) -> Option<Place> {
        let most = door.bounds().requests_of_one.saturating_mul(2);
        Place::take(&door.in_sessions, principal, most, usize::MAX)
    }

    /// A stream that stays open. Half of the connections are left for what does not.
    pub(super) fn of_stream(door: &Door, principal: &Principal) -> Option<Place> {
        let all = (door.bounds().connections / 2).max(1);
        Place::take(&door.streams, principal, (all / 2).max(1), all)
    }

    fn take(counted: &Arc<Counted>, principal: &Principal, most_of_one: usize, most: usize) -> Option<Place> {
        let mut table = counted.lock();
        if most < usize::MAX && table.values().sum::<usize>() >= most {
            return None;
        }
        let running = table.entry(principal.clone()).or_default();
        if *running >= most_of_one {
            return None;
        }
        *running += 1;
        Some(Place { counted: Arc::clone(counted), principal: principal.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.counted.lock();
        if let Some(running) = table.get_mut(&self.principal) {
            *running -= 1;
            if *running == 0 {
                table.remove(&self.principal);
            }
        }
    }
}

/// Answers a request.
pub(super) async fn answer(line: &Line, head: &Head, visitor: Visitor, request: Request) -> Response {
    let door = &line.door;
    let refuse = |error: &RpcError| refusal(StatusCode::BAD_REQUEST, Some(&request.id), error);
    let (version, capabilities) = match demanded(head, &request) {
        Ok(demanded) => demanded,
        Err(error) => return refuse(&error),
    };
    let Visitor { principal, scope } = visitor;
    if let Err(error) = arguments_agree(door, head, &scope, &request) {
        return refuse(&error);
    }
    let named = head.fields.text(Name::Dialog).filter(|it| !it.is_empty());
    let (dialog, owner, scope) = match named.or(request.meta.dialog.as_deref()) {
        Some(name) if name.len() > LONGEST_NAME => {
            let message = format!("the name of a dialog has at most {LONGEST_NAME} bytes");
            return refuse(&RpcError::new(code::INVALID_REQUEST, message));
        }
        Some(name) => match door.gateway.dialogs.of(&door.gateway.host, &principal, name, Instant::now()) {
            Ok((dialog, owner)) => (Some(dialog), owner, scope),
            Err(Full) => return no_room(&request.id),
        },
        None => {
            let hidden = match Arc::ptr_eq(&scope, &door.scope) {
                true => Arc::clone(&door.without_leased),
                false => Arc::new(crate::access::scope::Scope { leased: Leased::Hidden, ..(*scope).clone() }),
            };
            (None, CallerId::unique(), hidden)
        }
    };
    let (out, inlet) = outlet(door.bounds());
    let places = (Place::of_request(door, &principal), Arc::clone(&door.places).try_acquire_owned().ok());
    let (Some(own), Some(place)) = places else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &busy());
    };
    let caller = Caller {
        version,
        scope,
        dialog,
        able: Able::of(capabilities),
        outlet: out,
        session: None,
        owner,
        principal,
    };
    if request.method == "subscriptions/listen" {
        drop(own);
        let Some(stream) = Place::of_stream(door, &caller.principal) else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &busy());
        };
        // The stream keeps its dialog, and what that has leased.
        let held = (stream, place, caller.dialog.clone());
        return listen::stream(door, caller, &request, held).await;
    }
    let gateway = Arc::clone(&door.gateway);
    let request = Arc::new(request);
    let work = Work::Alone(Box::pin(async move {
        let answered = gateway.stateless(caller, Arc::clone(&request)).await;
        drop((own, place));
        Some(match answered {
            Ok(result) => {
                let body = gateway.budget.counted(response::result(&request.id, &result));
                Answer { status: StatusCode::OK, body }
            }
            Err(error) => Answer { status: status(&error), body: response::error(Some(&request.id), &error) },
        })
    }));
    let accepts = headers::accepts(&head.fields);
    Answering::new(work, inlet, Leaving::Cancels).respond(accepts, line).await
}

fn demanded(head: &Head, request: &Request) -> Result<(mcp_model::ProtocolVersion, RawJson), RpcError> {
    match request.meta.demanded() {
        // What is missing is said before what does not fit, and that before what is not spoken.
        Err(error) if error.code == code::INVALID_PARAMS => Err(error),
        demanded => {
            headers::agree(&head.fields, request, &request.meta)?;
            demanded
        }
    }
}

/// Looks at the headers that repeat arguments, where the tool wants them.
fn arguments_agree(
    door: &Door,
    head: &Head,
    scope: &Arc<crate::access::scope::Scope>,
    request: &Request,
) -> Result<(), RpcError> {
    if request.method != "tools/call" {
        return Ok(());
    }
    let Some(name) = request.params.text("name") else { return Ok(()) };
    let listing = door.gateway.listing(scope);
    let Some(target) = listing.tool(&name) else { return Ok(()) };
    let published = door.gateway.published();
    let Some(tool) = published.catalog.tool(&target.name) else { return Ok(()) };
    headers::arguments_agree(&head.fields, &tool.tool.input_schema, request.params.get("arguments"))
}

/// The status of an error that comes alone.
fn status(error: &RpcError) -> StatusCode {
    match error.code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::HEADER_MISMATCH
        | code::MISSING_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION
        | code::INVALID_REQUEST
        | code::PARSE_ERROR => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
