//! The era without sessions: each request stands alone, says who asks and in which version, and its stream is its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use mcp_model::{RawJson, RpcError, code};
use mcp_transport::CallerId;
use tokio::time::Instant;

use super::answering::{Answer, Answering, Leaving};
use super::post::{Visitor, busy, refusal};
use super::server::Door;
use super::{DIALOG_HEADER, headers, listen};
use crate::caller::Caller;
use crate::dialogs::LONGEST_NAME;
use crate::frame::Request;
use crate::meta::Meta;
use crate::outlet::outlet;
use crate::principal::Principal;
use crate::reply;
use crate::scope::Leased;

/// How many requests run, by client.
#[derive(Debug, Default)]
pub(super) struct Stateless(Mutex<HashMap<Principal, usize>>);

/// A request that runs.
struct Place {
    door: Arc<Door>,
    principal: Principal,
}

impl Place {
    fn take(door: &Arc<Door>, principal: &Principal) -> Option<Place> {
        let mut table = door.stateless.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = table.entry(principal.clone()).or_default();
        if *running >= door.bounds().requests_of_one.max(1) * 4 {
            return None;
        }
        *running += 1;
        Some(Place { door: Arc::clone(door), principal: principal.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.door.stateless.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = table.get_mut(&self.principal) {
            *running -= 1;
            if *running == 0 {
                table.remove(&self.principal);
            }
        }
    }
}

/// Answers a request.
pub(super) async fn answer(
    door: &Arc<Door>,
    parts: &Parts,
    visitor: Visitor,
    request: Request,
    meta: Meta,
) -> Response {
    let refuse = |error: &RpcError| refusal(StatusCode::BAD_REQUEST, Some(&request.id), error);
    let (version, capabilities) = match demanded(parts, &request, &meta) {
        Ok(demanded) => demanded,
        Err(error) => return refuse(&error),
    };
    let Visitor { principal, scope } = visitor;
    if let Err(error) = arguments_agree(door, parts, &scope, &request) {
        return refuse(&error);
    }
    let named = parts.headers.get(DIALOG_HEADER).and_then(|it| it.to_str().ok()).map(str::to_owned);
    let (dialog, owner, scope) = match named.filter(|it| !it.is_empty()).or_else(|| meta.dialog.clone()) {
        Some(name) if name.len() > LONGEST_NAME => {
            let message = format!("the name of a dialog has at most {LONGEST_NAME} bytes");
            return refuse(&RpcError::new(code::INVALID_REQUEST, message));
        }
        Some(name) => match door.gateway.dialogs.of(&door.gateway.host, &principal, &name, Instant::now()) {
            Ok((dialog, owner)) => (Some(dialog), owner, scope),
            Err(_) => return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &busy()),
        },
        None => {
            (None, CallerId::unique(), Arc::new(crate::Scope { leased: Leased::Hidden, ..(*scope).clone() }))
        }
    };
    let (out, inlet) = outlet(door.bounds());
    let places = (Place::take(door, &principal), Arc::clone(&door.places).try_acquire_owned().ok());
    let (Some(own), Some(place)) = places else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &busy());
    };
    let caller =
        Caller { version, scope, dialog, capabilities, outlet: out, session: None, owner, principal };
    if request.method == "subscriptions/listen" {
        return listen::stream(door, caller, request, (own, place)).await;
    }
    let gateway = Arc::clone(&door.gateway);
    let work = Box::pin(async move {
        let answered = gateway.stateless(caller, request.clone()).await;
        drop((own, place));
        Some(match answered {
            Ok(result) => Answer { status: StatusCode::OK, body: reply::result(&request.id, &result) },
            Err(error) => Answer { status: status(&error), body: reply::error(Some(&request.id), &error) },
        })
    });
    let accepts = headers::accepts(&parts.headers);
    Answering::new(work, inlet, Leaving::Cancels).respond(accepts).await
}

fn demanded(
    parts: &Parts,
    request: &Request,
    meta: &Meta,
) -> Result<(mcp_model::ProtocolVersion, RawJson), RpcError> {
    match meta.demanded() {
        // What is missing is said before what does not fit, and that before what is not spoken.
        Err(error) if error.code == code::INVALID_PARAMS => Err(error),
        demanded => {
            headers::agree(&parts.headers, request, meta)?;
            demanded
        }
    }
}

/// Looks at the headers that repeat arguments, where the tool wants them.
fn arguments_agree(
    door: &Door,
    parts: &Parts,
    scope: &Arc<crate::Scope>,
    request: &Request,
) -> Result<(), RpcError> {
    if request.method != "tools/call" {
        return Ok(());
    }
    let members = crate::splice::members(&request.params);
    let member = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, it)| it);
    let Some(name) = member("name").and_then(RawJson::to_text) else { return Ok(()) };
    let listing = door.gateway.listing(scope);
    let Some(target) = listing.tool(&name) else { return Ok(()) };
    let published = door.gateway.published();
    let Some(tool) = published.catalog.tool(&target.name) else { return Ok(()) };
    headers::arguments_agree(&parts.headers, &tool.tool.input_schema, member("arguments"))
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
