//! Operations on running servers: details, definitions, log levels, roots.

use std::sync::Arc;

use mcp_host_model::{ServerId, Sharing};
use mcp_host_registry::ServerSnapshot;
use mcp_host_transport::ServerInfo;
use tokio::task::JoinSet;

use crate::calls::supervisor_handle::SupervisorHandle;
use crate::config::approval::ServerDefinitions;
use crate::config::approval::about as about_server;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::server_info_cache::ServerDetails;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{InstructionsAccess, Route, RouteTarget};

/// All running instances, shared and leased, of one server or of all.
fn running_instances(
    supervisor: &SupervisorHandle,
    server: Option<&ServerId>,
) -> Vec<(ServerId, InstanceRef)> {
    let routing_table = supervisor.latest();
    let leases = supervisor.lease_table();
    let shared = routing_table.routes.iter().filter_map(|(id, route)| match &route.target {
        RouteTarget::Shared(instance) => Some((id.clone(), InstanceRef::clone(instance))),
        RouteTarget::Leased(_) => None,
    });
    let leased = leases.held.iter().map(|((_, id), held)| (id.clone(), InstanceRef::clone(&held.instance)));
    shared.chain(leased).filter(|it| server.is_none_or(|server| it.0 == *server)).collect()
}

/// Information about a running or leased server.
pub(crate) fn details(supervisor: &SupervisorHandle, server: &ServerId) -> Option<ServerDetails> {
    let latest = supervisor.latest();
    let Route { about, instructions, target, .. } = latest.routes.get(server)?;
    let mut info = supervisor.shared.server_info.get(server);
    // A newer connection that is not published yet may have reported others.
    let is_same = |it: &ServerInfo| about_server(it).instructions == about.instructions;
    match instructions {
        InstructionsAccess::Any => {}
        InstructionsAccess::ApprovedOnly if info.as_ref().is_none_or(is_same) => {}
        InstructionsAccess::ApprovedOnly | InstructionsAccess::Withheld => {
            if let Some(info) = &mut info {
                info.instructions = None;
            }
        }
    }
    let sharing = match target {
        RouteTarget::Shared(_) => Sharing::Shared,
        RouteTarget::Leased(_) => Sharing::PerOwner,
    };
    Some(ServerDetails { sharing, info })
}

/// The current definitions of a running or leased server.
pub(crate) fn definitions(supervisor: &SupervisorHandle, server: &ServerId) -> Option<ServerDefinitions> {
    let latest = supervisor.latest();
    let Route { about, lists, read, .. } = latest.routes.get(server)?;
    let instructions = supervisor.shared.server_info.get(server).and_then(|it| it.instructions);
    let seen = ServerSnapshot::of(about.clone(), lists);
    Some(ServerDefinitions {
        observed: seen,
        lists: Arc::clone(lists),
        read_lists: read.clone(),
        instructions,
    })
}

/// Sends the requested log levels to running instances, concurrently.
pub(crate) async fn apply_log_levels(
    supervisor: &SupervisorHandle,
    server: Option<&ServerId>,
) -> Vec<(ServerId, Result<(), HostError>)> {
    let mut requests = JoinSet::new();
    for (id, instance) in running_instances(supervisor, server) {
        let shared = Arc::clone(&supervisor.shared);
        requests.spawn(async move { (id, instance.apply_log_level(&shared.log_levels).await) });
    }
    requests.join_all().await
}

/// Notifies the leased instances of a dialog that its roots changed.
pub(crate) fn roots_changed(supervisor: &SupervisorHandle, dialog: &DialogId) {
    let leases = supervisor.lease_table();
    let own = leases.held.iter().filter(|((it, _), _)| it == dialog);
    own.for_each(|(_, held)| held.instance.session.roots_changed());
}
