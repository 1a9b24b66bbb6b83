//! Search for a resource that no list contains: the servers that may have it are queried in order.
//!
//! Servers with a matching template are first, the most literal template before others. Then all servers with resources
//! follow in their configured order. Hidden resources are not searched. A leased server without a matching template is
//! queried only if the dialog already has a lease of it, because a search must not start servers.

use std::cmp::Reverse;
use std::time::Duration;

use mcp_host_model::{ErrorKind, ServerId, code};
use tokio::time::Instant;

use crate::calls::raw_result::RequestFailure;
use crate::calls::request_options::RequestOptions;
use crate::calls::resource_lookup::{LookupItem, is_hidden, is_listed, match_template, missing_error};
use crate::calls::route::{InstanceRouter, RequestScope, SendRequest, ServerReply};
use crate::calls::supervisor_handle::SupervisorHandle;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{Route, RouteTarget, RoutingTable};

/// The maximum number of servers that are queried for a resource.
const MAX_SERVERS: usize = 64;

/// The time after which no other server is queried.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(60);

/// The maximum time limit of a server without a matching template.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that may have the resource, and the time limit of its response.
struct Candidate {
    server: ServerId,
    limit: Duration,
}

/// Sends a request for an item. If no server is named, searches a resource that no list contains.
pub(super) async fn send_or_search<T>(
    router: &InstanceRouter,
    item: LookupItem<'_>,
    options: &RequestOptions,
    scope: RequestScope<'_>,
    send: &SendRequest<T>,
) -> Result<ServerReply<T>, RequestFailure> {
    let candidates = match (item, &options.server) {
        (LookupItem::Resource(uri), None) => {
            find_candidates(&router.supervisor, &router.routing_table(scope.version), uri, options)
        }
        _ => None,
    };
    let Some(candidates) = candidates else {
        return router.send(item, options.server.as_ref(), options, scope, send).await;
    };
    if let [Candidate { server, .. }] = candidates.as_slice() {
        return router.send(item, Some(server), options, scope, send).await;
    }
    let started = Instant::now();
    // The first failure of a server that may have the resource.
    let mut failure = None;
    for Candidate { server, limit } in &candidates {
        let attempt = RequestScope { deadline: scope.deadline.capped(*limit), ..scope };
        match router.send(item, Some(server), options, attempt, send).await {
            Ok(found) => return Ok(found),
            Err(error) if is_resource_missing(&error) => {}
            Err(error) => failure = failure.or(Some(error)),
        }
        if started.elapsed() >= MAX_SEARCH_TIME || scope.deadline.is_over() {
            break;
        }
    }
    Err(failure.unwrap_or_else(|| match &options.servers {
        None => missing_error(&router.routing_table(scope.version), item, None).into(),
        // The reason would reveal other servers.
        Some(_) => HostError::new(ErrorKind::Validation, format!("{} not found", item.label())).into(),
    }))
}

/// Finds the servers that may have a resource that no list contains. Returns `None` if the lookup in the catalog
/// decides, or explains why there is none.
fn find_candidates(
    supervisor: &SupervisorHandle,
    routing_table: &RoutingTable<InstanceRef>,
    uri: &str,
    options: &RequestOptions,
) -> Option<Vec<Candidate>> {
    if options.servers.is_none() && is_listed(routing_table, uri) {
        return None;
    }
    let templates = routing_table.snapshot.catalog.templates();
    let matching =
        templates.iter().filter_map(|it| Some((match_template(&it.template.uri_template, uri)?, it)));
    let mut matching: Vec<_> = matching.collect();
    matching.sort_by_key(|(literal, _)| Reverse(*literal));
    let matching: Vec<&ServerId> = matching.into_iter().map(|(_, it)| &it.server).collect();
    let configured = routing_table.snapshot.server_ids().filter(|id| {
        routing_table
            .routes
            .get(*id)
            .is_some_and(|route| is_searched(supervisor, route, options.dialog.as_ref()))
    });
    let mut candidates: Vec<Candidate> = Vec::new();
    for server in matching.iter().copied().chain(configured).cloned() {
        if candidates.len() == MAX_SERVERS {
            break;
        }
        let Some(route) = routing_table.routes.get(&server) else { continue };
        let is_allowed = options.servers.as_ref().is_none_or(|servers| servers.contains(&server));
        let is_known = candidates.iter().any(|candidate| candidate.server == server);
        if is_allowed && !is_known && !is_hidden(routing_table, &server, uri) {
            let request_limit = route.server.spec.limits.request;
            let is_match = matching.contains(&&server);
            let limit = if is_match { request_limit } else { request_limit.min(SERVER_TIMEOUT) };
            candidates.push(Candidate { server, limit });
        }
    }
    // The lookup in the catalog explains why there is no candidate, unless that would reveal other servers.
    (options.servers.is_some() || !candidates.is_empty()).then_some(candidates)
}

/// Returns whether a server without a matching template is queried.
fn is_searched(supervisor: &SupervisorHandle, route: &Route<InstanceRef>, dialog: Option<&DialogId>) -> bool {
    let id = &route.server.spec.id;
    let is_running = match route.target {
        RouteTarget::Shared(_) => true,
        RouteTarget::Leased(_) => dialog.is_some_and(|dialog| {
            supervisor.leases.borrow().active.contains_key(&(dialog.clone(), id.clone()))
        }),
    };
    is_running && supervisor.shared.server_info.has_resources(id)
}

/// Returns whether a server responded that it does not have the resource. Each era has a code for it, and a server
/// without resources does not know the method.
fn is_resource_missing(error: &RequestFailure) -> bool {
    match &error.rpc {
        Some(rpc) => {
            matches!(rpc.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS | code::METHOD_NOT_FOUND)
        }
        None => error.error.kind == ErrorKind::Validation,
    }
}
