//! From an item of the catalog to the instance that receives a request for it.

use std::pin::Pin;
use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, ServerId};
use mcp_host_transport::{CallContext, CallError, CallOptions, RetryPolicy, Session};
use tokio::time::Instant;

use crate::calls::deadline::CallDeadline;
use crate::calls::pinned_routes::PinnedRoutes;
use crate::calls::raw_result::RequestFailure;
use crate::calls::request_options::RequestOptions;
use crate::calls::resource_lookup::{LookupItem, find_item};
use crate::calls::supervisor_handle::SupervisorHandle;
use crate::calls::tool_lookup::being_replaced;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::gate::GateGuard;
use crate::supervisor::instance::Instance;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{LeaseReply, LeaseRequest, Route, RouteTarget, RoutingTable};
use crate::supervisor::server_error::server_error;
use crate::telemetry::TraceSource;

/// The maximum number of lookups for a request. If an instance is retired after the lookup, the new state is already
/// published, so a second lookup is enough. Only a lease may be released several times.
const MAX_ATTEMPTS: usize = 4;

/// Why there is no instance for a request.
enum RouteError {
    /// The instance was retired after the lookup; another lookup may find its successor.
    Retired,
    /// The instance is not available, or its server was replaced after the pinned generation.
    Refused(HostError),
}

/// Finds the instances that receive requests.
pub(crate) struct InstanceRouter {
    pub(crate) supervisor: SupervisorHandle,
    /// The source of traces for requests without one.
    pub(crate) trace: Option<TraceSource>,
}

/// The catalog version that a request uses.
#[derive(Clone, Copy)]
pub(crate) enum CatalogVersion<'a> {
    /// The latest generation.
    Latest,
    /// A pinned generation.
    Pinned(&'a PinnedRoutes),
}

/// What applies to all attempts of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestScope<'a> {
    pub(super) dialog: Option<&'a DialogId>,
    pub(super) version: CatalogVersion<'a>,
    pub(super) deadline: CallDeadline,
}

/// A request that has begun.
pub(super) enum Begun<T> {
    /// It runs at an instance.
    AtInstance(BegunRequest<T>),
    /// No server has the item, as its lookup returned it: it is one of the host.
    AtHost(T),
}

/// A request that has begun at an instance.
pub(super) struct BegunRequest<T> {
    pub(super) running: RunningRequest,
    pub(super) server: Arc<ResolvedServer>,
    /// The item, as its lookup returned it.
    pub(super) item: T,
}

/// The response to a request, and its server.
pub(super) struct ServerReply<T> {
    pub(super) value: T,
    pub(super) server: ServerId,
}

/// Sends a request in a session, with the server's own name of the item. Boxed, because the compiler cannot prove a
/// borrowing future `Send`.
pub(super) type SendRequest<T> =
    Arc<dyn for<'a> Fn(&'a Session, &'a str, CallOptions) -> SendFuture<'a, T> + Send + Sync>;
pub(super) type SendFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send + 'a>>;

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

impl InstanceRouter {
    /// Returns the routing table of a version.
    pub(super) fn routing(&self, version: CatalogVersion<'_>) -> Arc<RoutingTable<InstanceRef>> {
        match version {
            CatalogVersion::Latest => self.supervisor.latest(),
            CatalogVersion::Pinned(pinned) => Arc::clone(&pinned.routing_table),
        }
    }

    /// The scope of a request. Fails for a stopped dialog, also in a pinned generation (DM-066).
    pub(super) fn scope<'a>(
        &self,
        dialog: Option<&'a DialogId>,
        version: CatalogVersion<'a>,
        deadline: CallDeadline,
    ) -> Result<RequestScope<'a>, HostError> {
        match dialog.and_then(|it| self.supervisor.stop_reason(it)) {
            Some(failure) => Err(failure),
            None => Ok(RequestScope { dialog, version, deadline }),
        }
    }

    /// The context of a request: without a trace or a caller of its own, it has that of the host or of the dialog.
    pub(super) fn context(&self, options: &RequestOptions) -> CallContext {
        let mut context = options.context.clone();
        context.trace = context.trace.or_else(|| self.trace.as_ref().and_then(|it| it()));
        let of_dialog = |it: &DialogId| self.supervisor.shared.callers.caller(it);
        context.caller = context.caller.or_else(|| options.dialog.as_ref().and_then(of_dialog));
        context
    }

    /// Finds an item (such as `Tool 'x'`) with `find`, and begins a request at an instance of its server, if it has
    /// one. Looks up again if the instance was retired. The error names the server, if one was found.
    pub(super) async fn begin<T: Send>(
        &self,
        scope: RequestScope<'_>,
        item: &(impl Fn() -> String + Sync),
        mut find: impl for<'t> FnMut(
            &'t RoutingTable<InstanceRef>,
        ) -> Result<(Option<&'t Route<InstanceRef>>, T), HostError>
        + Send,
    ) -> Result<Begun<T>, RequestFailure> {
        for _ in 0..MAX_ATTEMPTS {
            let routing_table = self.routing(scope.version);
            let (route, found) = find(&routing_table)?;
            let Some(route) = route else { return Ok(Begun::AtHost(found)) };
            let server = &route.server;
            match self.begin_at(route, item, scope).await {
                Ok(running) => {
                    let server = Arc::clone(server);
                    return Ok(Begun::AtInstance(BegunRequest { running, server, item: found }));
                }
                Err(RouteError::Retired) => {}
                Err(RouteError::Refused(failure)) => {
                    return Err(RequestFailure::from(failure).on(&server.spec.id));
                }
            }
        }
        Err(being_replaced(&item()).into())
    }

    /// Begins a request for an item of a server, or of the only server that can have it.
    pub(super) async fn begin_item(
        &self,
        scope: RequestScope<'_>,
        item: LookupItem<'_>,
        server: Option<&ServerId>,
    ) -> Result<BegunRequest<String>, RequestFailure> {
        let label = || item.label();
        let begun = self.begin(scope, &label, |table| {
            let (route, name) = find_recorded(table, item, server)?;
            Ok((Some(route), name))
        });
        match begun.await? {
            Begun::AtInstance(begun) => Ok(begun),
            Begun::AtHost(_) => Err(being_replaced(&label()).into()),
        }
    }

    /// Sends a request for an item of a server, or of the only server that can have it.
    pub(super) async fn send<T>(
        &self,
        item: LookupItem<'_>,
        server: Option<&ServerId>,
        options: &RequestOptions,
        scope: RequestScope<'_>,
        send: &SendRequest<T>,
    ) -> Result<ServerReply<T>, RequestFailure> {
        let at_own_instance = match item {
            LookupItem::Task(task) => self.begin_at_task(task, server, scope)?,
            LookupItem::Prompt(_)
            | LookupItem::Resource(_)
            | LookupItem::Template(_)
            | LookupItem::Skills => None,
        };
        let begun = match at_own_instance {
            Some(begun) => begun,
            None => self.begin_item(scope, item, server).await?,
        };
        let BegunRequest { running, server, item: name } = &begun;
        let mut call_options = CallOptions::default();
        call_options.retry = RetryPolicy::Once;
        call_options.context = self.context(options);
        let send = |options| send(&running.instance.session, name, options);
        let id = &server.spec.id;
        match scope.deadline.send(server, call_options, send).await {
            Ok(value) => Ok(ServerReply { value, server: id.clone() }),
            Err(error) => Err(error.on(id)),
        }
    }

    /// Begins a request at the instance of a route. Leases an instance if the server is not shared.
    async fn begin_at(
        &self,
        route: &Route<InstanceRef>,
        item: &(impl Fn() -> String + Sync),
        scope: RequestScope<'_>,
    ) -> Result<RunningRequest, RouteError> {
        let RequestScope { dialog, version, deadline } = scope;
        let replaced = || {
            let (server, item) = (&route.server.spec.id, item());
            let message = format!(
                "Replaced: server '{server}' was replaced or stopped after this generation; {item} is no longer \
                available"
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
        let has_subject =
            || dialog.is_some_and(|dialog| self.supervisor.shared.subjects.get(dialog).is_some());
        if !server.endpoint.is_per_user() || has_subject() {
            return Ok(());
        }
        let message = "it acts for the user of each caller, and this caller has no access token of a user";
        let help = "connect through `mcp-host serve --auth ISSUER_URL` and log in there";
        Err(HostError { help: Some(help.to_owned()), ..server_error(server, ErrorKind::Connection, message) })
    }

    /// Begins a request about a task at the instance that created the task. `None` if that does not run any more.
    fn begin_at_task(
        &self,
        task: &str,
        server: Option<&ServerId>,
        scope: RequestScope<'_>,
    ) -> Result<Option<BegunRequest<String>>, HostError> {
        let routing_table = self.routing(scope.version);
        let (route, name) = find_recorded(&routing_table, LookupItem::Task(task), server)?;
        let (now, dialog) = (Instant::now(), scope.dialog.cloned().unwrap_or_else(DialogId::anonymous));
        let accepts = |it: &Instance| it.serves(&dialog) && !it.is_over();
        let found = self.supervisor.shared.tasks.find(&route.server.spec.id, task, now, accepts);
        let Some(instance) = found else { return Ok(None) };
        let Some(guard) = instance.gate.enter_for_task() else { return Ok(None) };
        instance.touch(now);
        let running = RunningRequest { instance, _guard: guard };
        Ok(Some(BegunRequest { running, server: Arc::clone(&route.server), item: name }))
    }

    /// Returns the instance of a dialog in a pinned generation.
    async fn lease_pinned(
        &self,
        request: LeaseRequest,
        pinned: &PinnedRoutes,
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
        if let Some(lease) = self.supervisor.leases.borrow().held.get(&key)
            && lease.base == request.base
            && lease.instance.gate.is_open()
        {
            return Ok(Arc::clone(&lease.instance));
        }
        match self.supervisor.lease(request).await {
            Some(LeaseReply::Granted(instance)) => Ok(instance),
            Some(LeaseReply::Refused(failure)) => Err(RouteError::Refused(failure)),
            Some(LeaseReply::Stale | LeaseReply::Released | LeaseReply::NotHeld) => Err(RouteError::Retired),
            None => Err(RouteError::Refused(HostError::shut_down())),
        }
    }
}

/// Finds an item, and records its server in the span of the request.
fn find_recorded<'t>(
    routing_table: &'t RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
) -> Result<(&'t Route<InstanceRef>, String), HostError> {
    let (route, name) = find_item(routing_table, item, server)?;
    tracing::Span::current().record("server", route.server.spec.id.as_str());
    Ok((route, name))
}
