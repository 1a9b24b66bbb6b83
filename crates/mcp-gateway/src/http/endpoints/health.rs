//! Health checks: whether the process is alive, and whether servers are ready. Without a query, neither reveals the
//! configuration.

use std::collections::BTreeMap;

use http::StatusCode;
use http::request::Parts;
use mcp_host_registry::{ActiveProblem, HintSelection, ProblemKind, Selection, ViewFilter};
use mcp_host_runtime::{ServerState, ServerStatus};
use serde::Serialize;

use crate::http::app_state::AppState;
use crate::http::authorization::authorized_client::{self, read_query_selection};
use crate::http::reply::errors::{bad_request, invalid_request, refusal};
use crate::http::reply::response::{self, Response};

/// Maximum number of servers that an error lists.
const MAX_LISTED_SERVERS: usize = 64;

/// The body of the response to `/readyz?servers=…`.
#[derive(Serialize)]
struct Readiness<'a> {
    ready: bool,
    servers: BTreeMap<&'a str, &'static str>,
}

/// `/healthz`: always succeeds.
pub(crate) fn get_liveness() -> Response {
    response::text(StatusCode::OK, "ok\n")
}

/// `/readyz` during the shutdown: fails, so that no further client is sent here.
pub(crate) fn get_draining() -> Response {
    response::text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
}

/// `/readyz`: succeeds unless a server is being started for the first time, or no configuration could be used.
pub(crate) fn get_readiness(app: &AppState) -> Response {
    let snapshot = app.gateway.snapshot();
    let is_refused = |active: &ActiveProblem| active.problem.kind == ProblemKind::WorkspaceConfigError;
    if snapshot.servers.is_empty() && snapshot.problems.iter().any(is_refused) {
        response::text(StatusCode::SERVICE_UNAVAILABLE, "no server: the configuration is refused\n")
    } else if snapshot.servers.iter().any(|server| server.state == ServerState::Starting) {
        response::text(StatusCode::SERVICE_UNAVAILABLE, "starting\n")
    } else {
        response::text(StatusCode::OK, "ready\n")
    }
}

/// `/readyz?servers=…`: succeeds if each of these servers is ready. Names may have the wildcard `*`.
///
/// It requires authorization, because it names servers, and has only those that the client's token shows.
pub(crate) fn get_server_readiness(app: &AppState, head: &Parts) -> Response {
    // Not narrowed by the query, which names the servers.
    let scope = match authorized_client::admit(app, head, None) {
        Ok(admission) => admission.scope,
        Err(response) => return response,
    };
    let requested = match read_query_selection(&head.uri) {
        Ok(Some(ViewFilter {
            toolsets: Selection::Patterns(names),
            tools: Selection::Inherit,
            prompts: Selection::Inherit,
            resources: Selection::Inherit,
            hints: HintSelection::Any,
        })) => names,
        Ok(_) => return bad_request(&invalid_request("the query must be `servers=` with names of servers")),
        Err(error) => return bad_request(&error),
    };
    let snapshot = app.gateway.snapshot();
    let is_shown = |server: &&ServerStatus| server.id.id().is_some_and(|id| scope.may_show(id, |_| true));
    let shown: Vec<&ServerStatus> = snapshot.servers.iter().filter(is_shown).collect();
    let mut servers = BTreeMap::new();
    let mut is_ready = true;
    for name in requested {
        let named = Selection::Patterns(vec![name.clone()]);
        let mut matching = shown.iter().filter(|server| named.contains(&server.id)).peekable();
        if matching.peek().is_none() {
            return unknown_server_response(&name, &shown);
        }
        for server in matching {
            is_ready &= server.state == ServerState::Ready;
            servers.insert(&*server.id, server.state.as_str());
        }
    }
    let body = serde_json::to_vec(&Readiness { ready: is_ready, servers }).expect("its keys are strings");
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    response::json(status, body.into())
}

/// The response to a request for a server that does not exist, with the names of those that do.
fn unknown_server_response(name: &str, shown: &[&ServerStatus]) -> Response {
    let mut names: Vec<&str> = shown.iter().take(MAX_LISTED_SERVERS).map(|server| &*server.id).collect();
    let more = shown.len().saturating_sub(MAX_LISTED_SERVERS).to_string() + " more";
    if shown.len() > MAX_LISTED_SERVERS {
        names.push(&more);
    }
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!("there is no server `{name}`; the servers are: {known}");
    refusal(StatusCode::NOT_FOUND, None, &invalid_request(&message))
}
