//! Operations on running servers: their reports and definitions, log levels and roots.

use std::sync::Arc;

use mcp_host_model::ServerId;
use mcp_host_registry::ServerSnapshot;
use mcp_host_transport::ServerInfo;
use tokio::task::JoinSet;

use crate::calls::supervisor_handle::SupervisorHandle;
use crate::config::approval::ServerDefinitions;
use crate::config::approval::server_identity;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::published::{InstanceSnapshot, InstanceStderr};
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::lists::ListSnapshot;
use crate::supervisor::machine::{InstructionsAccess, Route, RouteTarget};

/// Returns all running instances, shared and leased, of one server or of all.
fn running_instances(
    supervisor: &SupervisorHandle,
    server: Option<&ServerId>,
) -> Vec<(ServerId, InstanceRef)> {
    let routing_table = supervisor.latest_routing_table();
    let leases = supervisor.lease_table();
    let shared = routing_table.routes.iter().filter_map(|(id, route)| match &route.target {
        RouteTarget::Shared(instance) => Some((id.clone(), Arc::clone(instance))),
        RouteTarget::Leased(_) => None,
    });
    let leased = leases.active.iter().map(|((_, id), lease)| (id.clone(), Arc::clone(&lease.instance)));
    shared.chain(leased).filter(|it| server.is_none_or(|server| it.0 == *server)).collect()
}

/// Returns snapshots of all running instances, by server and dialog.
pub(crate) fn instance_snapshots(supervisor: &SupervisorHandle) -> Vec<InstanceSnapshot> {
    let running = running_instances(supervisor, None).into_iter();
    let snapshot = |(server, instance): (ServerId, InstanceRef)| InstanceSnapshot {
        server,
        dialog: instance.dialog().cloned(),
        pid: instance.pid(),
        started: instance.created_at(),
    };
    let mut snapshots: Vec<_> = running.map(snapshot).collect();
    snapshots.sort_by(|left, right| (&left.server, &left.dialog).cmp(&(&right.server, &right.dialog)));
    snapshots
}

/// Returns the last lines of standard error of the running instances of a server.
pub(crate) fn instance_stderr(supervisor: &SupervisorHandle, server: &ServerId) -> Vec<InstanceStderr> {
    let running = running_instances(supervisor, Some(server)).into_iter();
    running.map(|(_, instance)| InstanceStderr { pid: instance.pid(), stderr: instance.stderr() }).collect()
}

/// Returns the last report of a running or leased server about itself.
pub(crate) fn server_info(supervisor: &SupervisorHandle, server: &ServerId) -> Option<ServerInfo> {
    let latest = supervisor.latest_routing_table();
    let Route { listing, instructions, .. } = latest.routes.get(server)?;
    let mut info = supervisor.shared.server_info.get(server)?;
    let is_shown = match instructions {
        InstructionsAccess::Any => true,
        // A newer connection that is not published yet may have reported other instructions.
        InstructionsAccess::ApprovedOnly => {
            server_identity(&info).instructions == listing.identity.instructions
        }
        InstructionsAccess::Withheld => false,
    };
    if !is_shown {
        info.instructions = None;
    }
    Some(info)
}

/// Returns the current definitions of a running or leased server.
pub(crate) fn server_definitions(supervisor: &SupervisorHandle, id: &ServerId) -> Option<ServerDefinitions> {
    let latest = supervisor.latest_routing_table();
    let route = latest.routes.get(id)?;
    let ListSnapshot { identity, lists, .. } = &*route.listing;
    let instructions = supervisor.shared.server_info.get(id).and_then(|it| it.instructions);
    Some(ServerDefinitions {
        observed: ServerSnapshot::of(identity.clone(), lists),
        lists: Arc::clone(lists),
        read_lists: route.read_lists(),
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
pub(crate) fn notify_roots_changed(supervisor: &SupervisorHandle, dialog: &DialogId) {
    let leases = supervisor.lease_table();
    let own = leases.active.iter().filter(|((owner, _), _)| owner == dialog);
    own.for_each(|(_, lease)| lease.instance.session.notify_roots_changed());
}
