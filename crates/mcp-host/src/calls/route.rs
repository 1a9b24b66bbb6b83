//! From a route of the catalog to the instance that receives a request.

use std::sync::Arc;

use mcp_host_model::{ErrorKind, ServerId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::deadline::CallDeadline;
use super::{CallRouter, CatalogVersion};
use crate::calls::pin::PinnedGeneration;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::gate::GateGuard;
use crate::supervisor::instance::Instance;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{LeaseReply, LeaseRequest, Route, RouteTarget};
use crate::supervisor::server_error::server_error;
use crate::supervisor::task::Command;

/// The maximum number of lookups for a request. If an instance is retired after the lookup, the new state is already
/// published, so a second lookup is enough. Only a lease may be released several times.
pub(super) const MAX_ATTEMPTS: usize = 4;

/// Why there is no instance for a request.
pub(super) enum RouteError {
    /// The instance was retired after the lookup; another lookup may find its successor.
    Retired,
    /// The instance is not available, or its server was replaced after the pinned generation.
    Refused(HostError),
}

/// What applies to all attempts of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestScope<'a> {
    pub(super) dialog: Option<&'a DialogId>,
    pub(super) version: CatalogVersion<'a>,
    pub(super) deadline: CallDeadline,
}

/// A running request at an instance. Dropping it ends the request for the instance.
pub(super) struct RunningRequest {
    pub(super) instance: InstanceRef,
    _guard: GateGuard,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.instance.touch(Instant::now());
    }
}

impl CallRouter {
    /// Begins a request for an item (such as `Tool 'x'`). Leases an instance if the server is not shared.
    pub(super) async fn begin_request(
        &self,
        route: &Route<InstanceRef>,
        item: impl Fn() -> String + Send,
        scope: RequestScope<'_>,
    ) -> Result<RunningRequest, RouteError> {
        let RequestScope { dialog, version, deadline } = scope;
        let replaced = || {
            let (server, item) = (&route.server.spec.id, item());
            let message = format!(
                "Replaced: server '{server}' was replaced or stopped after this generation; {item} is no longer available"
            );
            RouteError::Refused(HostError::new(ErrorKind::Replaced, message))
        };
        self.check_subject(route, dialog).map_err(RouteError::Refused)?;
        let instance = match &route.target {
            RouteTarget::Shared(instance) => Arc::clone(instance),
            RouteTarget::Leased(base) => {
                let dialog = dialog.cloned().unwrap_or_else(DialogId::anonymous);
                let request = LeaseRequest { dialog, server: route.server.spec.id.clone(), base: *base };
                // Boxed, because it would enlarge the future of every call.
                let lease = Box::pin(async {
                    match version {
                        CatalogVersion::Latest => self.lease_instance(request).await,
                        CatalogVersion::Pinned(pinned) => match self.lease_pinned(request, pinned).await {
                            Err(RouteError::Retired) => Err(replaced()),
                            leased => leased,
                        },
                    }
                });
                deadline.wait_for_instance(&route.server, lease).await.map_err(RouteError::Refused)??
            }
        };
        let guard = match version {
            CatalogVersion::Latest => instance.gate.enter(),
            CatalogVersion::Pinned(_) => instance.gate.enter_pinned(),
        };
        match (guard, version, &route.target) {
            (Some(guard), ..) => {
                instance.touch(Instant::now());
                Ok(RunningRequest { instance, _guard: guard })
            }
            (None, CatalogVersion::Pinned(_), RouteTarget::Shared(_)) => Err(replaced()),
            (None, CatalogVersion::Pinned(_), RouteTarget::Leased(_)) | (None, CatalogVersion::Latest, _) => {
                Err(RouteError::Retired)
            }
        }
    }

    /// Checks that a request for a server with token exchange has a token to exchange. So a request without one starts
    /// nothing.
    fn check_subject(&self, route: &Route<InstanceRef>, dialog: Option<&DialogId>) -> Result<(), HostError> {
        let server = &route.server;
        let has_subject = || dialog.is_some_and(|dialog| self.shared.subjects.get(dialog).is_some());
        if !server.endpoint.is_per_user() || has_subject() {
            return Ok(());
        }
        let message = "it acts for the user of each caller, and this caller has no access token of a user";
        let help = "connect through `mcp-host serve --auth ISSUER_URL` and log in there";
        Err(HostError { help: Some(help.to_owned()), ..server_error(server, ErrorKind::Connection, message) })
    }

    /// Begins a request about a task at the instance that created the task. `None` if that does not run any more.
    pub(super) fn begin_task_request(
        &self,
        server: &ServerId,
        task: &str,
        dialog: Option<&DialogId>,
    ) -> Option<RunningRequest> {
        let (now, dialog) = (Instant::now(), dialog.cloned().unwrap_or_else(DialogId::anonymous));
        let accepts = |it: &Instance| it.serves(&dialog) && !it.is_over();
        let instance = self.shared.tasks.find(server, task, now, accepts)?;
        let guard = instance.gate.enter_for_task()?;
        instance.touch(now);
        Some(RunningRequest { instance, _guard: guard })
    }

    /// Returns the instance of a dialog in a pinned generation.
    async fn lease_pinned(
        &self,
        request: LeaseRequest,
        pinned: &PinnedGeneration,
    ) -> Result<InstanceRef, RouteError> {
        let (dialog, server) = (request.dialog.clone(), request.server.clone());
        let known = pinned.leased_instance(&dialog, &server);
        if let Some(instance) = known.as_ref().filter(|it| it.gate.is_open() && !it.is_over()) {
            return Ok(Arc::clone(instance));
        }
        // The pinned lease was released or lost. Another lease on the same base replaces it. If the base was replaced,
        // the pinned instance is used while it still accepts pinned calls.
        match self.lease_instance(request).await {
            Ok(instance) => {
                pinned.pin_leased(&dialog, &server, &instance);
                Ok(instance)
            }
            Err(RouteError::Retired) => known.filter(|it| it.takes_pinned()).ok_or(RouteError::Retired),
            Err(error) => Err(error),
        }
    }

    /// Returns the instance of a dialog, and starts it if needed.
    async fn lease_instance(&self, request: LeaseRequest) -> Result<InstanceRef, RouteError> {
        let key = (request.dialog.clone(), request.server.clone());
        if let Some(lease) = self.leases.borrow().held.get(&key)
            && lease.base == request.base
            && lease.instance.gate.is_open()
        {
            return Ok(Arc::clone(&lease.instance));
        }
        let (sender, reply) = oneshot::channel();
        // A host that has shut down sends no reply.
        let dialog_ends_seen = self.ends.current();
        let _ = self.commands.send(Command::Lease { request, dialog_ends_seen, reply: sender }).await;
        match reply.await {
            Ok(LeaseReply::Granted(instance)) => Ok(instance),
            Ok(LeaseReply::Refused(failure)) => Err(RouteError::Refused(failure)),
            Ok(LeaseReply::Stale | LeaseReply::Released | LeaseReply::NotHeld) => Err(RouteError::Retired),
            Err(_) => Err(RouteError::Refused(HostError::shut_down())),
        }
    }
}

/// The error after [`MAX_ATTEMPTS`] lookups.
pub(super) fn being_replaced(item: &str) -> HostError {
    let message = format!("{item} is not available: its server is being replaced");
    HostError::new(ErrorKind::Connection, message)
}
