//! Routing: finding the instance that receives a request for an item of the catalog.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

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
use crate::calls::tool_lookup::being_replaced_error;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::gate::GateGuard;
use crate::supervisor::instance::{Instance, InstanceRef};
use crate::supervisor::machine::{LeaseReply, LeaseRequest, Route, RouteTarget, RoutingTable};
use crate::supervisor::server_error::server_error;
use crate::telemetry::TraceSource;
use crate::telemetry::spans::record_connection;

/// The maximum number of lookups for a request. If an instance is retired after the lookup, its successor is already
/// published, so a second lookup is enough. Only a lease may be released several times.
const MAX_ATTEMPTS: usize = 4;

/// The maximum time for which a request waits for the successor of an instance that ended between two calls.
const MAX_SUCCESSOR_WAIT: Duration = Duration::from_secs(10);

/// The reason why a request gets no instance.
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

/// The dialog, catalog version and deadline of all attempts of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestScope<'a> {
    pub(super) dialog: Option<&'a DialogId>,
    pub(super) version: CatalogVersion<'a>,
    pub(super) deadline: CallDeadline,
}

/// The target of a request that has begun. `T` is the item, as its lookup returned it.
pub(super) enum RequestTarget<T> {
    /// An instance of a server.
    Instance(InstanceRequest<T>),
    /// The host itself: no server has the item.
    Host(T),
}

/// A request that has begun at an instance. `T` is the item.
pub(super) struct InstanceRequest<T> {
    pub(super) guard: RequestGuard,
    pub(super) server: Arc<ResolvedServer>,
    /// The item, as its lookup returned it.
    pub(super) item: T,
}

/// The response to a request, and its server.
pub(super) struct ServerReply<T> {
    pub(super) value: T,
    pub(super) server: ServerId,
}

/// A function that sends a request in a session, with the server's own name of the item. Its future is boxed, because
/// the compiler cannot prove a borrowing future `Send`.
pub(super) type SendRequest<T> =
    Arc<dyn for<'a> Fn(&'a Session, &'a str, CallOptions) -> SendFuture<'a, T> + Send + Sync>;
/// The future of a [`SendRequest`].
pub(super) type SendFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send + 'a>>;

/// A guard of a request that runs at an instance. Dropping it ends the request, and records the use of the instance.
pub(super) struct RequestGuard {
    pub(super) instance: InstanceRef,
    _gate_guard: GateGuard,
}

impl RequestGuard {
    /// Waits for the successor of the instance if the request may begin again, because the connection ended. Without
    /// a successor, the wait ends when the loss is published. Returns the error, which says whether the request may
    /// begin again.
    pub(super) async fn wait_for_successor(
        &self,
        mut failure: RequestFailure,
        scope: RequestScope<'_>,
    ) -> RequestFailure {
        if !failure.may_begin_again {
            return failure;
        }
        failure.may_begin_again = match scope.version {
            CatalogVersion::Latest => {
                let limit = scope.deadline.remaining(MAX_SUCCESSOR_WAIT).min(MAX_SUCCESSOR_WAIT);
                let is_retired = tokio::time::timeout(limit, self.instance.gate.wait_retired()).await.is_ok();
                if !is_retired {
                    failure.error.message.push_str("; it is still being started");
                }
                is_retired
            }
            // No other instance may receive it.
            CatalogVersion::Pinned(_) => false,
        };
        failure
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.instance.touch(Instant::now());
    }
}

impl InstanceRouter {
    /// Returns the routing table of a version.
    pub(super) fn routing_table(&self, version: CatalogVersion<'_>) -> Arc<RoutingTable<InstanceRef>> {
        match version {
            CatalogVersion::Latest => self.supervisor.latest_routing_table(),
            CatalogVersion::Pinned(pinned) => Arc::clone(&pinned.routing_table),
        }
    }

    /// Creates the scope of a request. Fails for a stopped dialog, also in a pinned generation (DM-066).
    pub(super) fn new_scope<'a>(
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

    /// Returns the context of a request. If the request has no trace or no caller, it has the host's trace and the
    /// dialog's caller.
    pub(super) fn call_context(&self, options: &RequestOptions) -> CallContext {
        let mut context = options.context.clone();
        context.trace = context.trace.or_else(|| self.trace.as_ref().and_then(|source| source()));
        let dialog_caller = |dialog: &DialogId| self.supervisor.shared.callers.caller(dialog);
        context.caller = context.caller.or_else(|| options.dialog.as_ref().and_then(dialog_caller));
        context
    }

    /// Finds an item with `find`, and begins a request at an instance of its server, if it has one. Looks up again if
    /// the instance was retired. `label` returns a label of the item, such as `Tool 'x'`. The error has the server, if
    /// one was found.
    pub(super) async fn begin<T: Send>(
        &self,
        scope: RequestScope<'_>,
        label: &(impl Fn() -> String + Sync),
        mut find: impl for<'t> FnMut(
            &'t RoutingTable<InstanceRef>,
        ) -> Result<(Option<&'t Route<InstanceRef>>, T), HostError>
        + Send,
    ) -> Result<RequestTarget<T>, RequestFailure> {
        for _ in 0..MAX_ATTEMPTS {
            let routing_table = self.routing_table(scope.version);
            let (route, item) = find(&routing_table)?;
            let Some(route) = route else { return Ok(RequestTarget::Host(item)) };
            let server = &route.server;
            match self.begin_at(route, label, scope).await {
                Ok(guard) => {
                    let server = Arc::clone(server);
                    return Ok(RequestTarget::Instance(InstanceRequest { guard, server, item }));
                }
                Err(RouteError::Retired) => {}
                Err(RouteError::Refused(failure)) => {
                    return Err(RequestFailure::from(failure).with_server(&server.spec.id));
                }
            }
        }
        Err(being_replaced_error(&label()).into())
    }

    /// Begins a request for an item of a server, or of the only server that can have it.
    pub(super) async fn begin_item(
        &self,
        scope: RequestScope<'_>,
        item: LookupItem<'_>,
        server: Option<&ServerId>,
    ) -> Result<InstanceRequest<String>, RequestFailure> {
        let label = || item.label();
        let target = self.begin(scope, &label, |table| {
            let (route, name) = find_and_record(table, item, server)?;
            Ok((Some(route), name))
        });
        match target.await? {
            RequestTarget::Instance(request) => Ok(request),
            RequestTarget::Host(_) => Err(being_replaced_error(&label()).into()),
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
        let mut has_begun_again = false;
        loop {
            let task_request = match item {
                LookupItem::Task(task) => self.begin_at_task(task, server, scope)?,
                LookupItem::Prompt(_)
                | LookupItem::Resource(_)
                | LookupItem::Template(_)
                | LookupItem::Skills => None,
            };
            let request = match task_request {
                Some(request) => request,
                None => self.begin_item(scope, item, server).await?,
            };
            let InstanceRequest { guard, server, item: name } = &request;
            record_connection(&tracing::Span::current(), server, &guard.instance.session);
            let mut call_options = CallOptions::default();
            call_options.retry = RetryPolicy::Once;
            call_options.context = self.call_context(options);
            let send = |options| send(&guard.instance.session, name, options);
            let id = &server.spec.id;
            let failure = match scope.deadline.send(server, call_options, send).await {
                Ok(value) => return Ok(ServerReply { value, server: id.clone() }),
                Err(failure) if has_begun_again => return Err(failure.with_server(id)),
                // Boxed, because it is rare and would enlarge the future of every request.
                Err(failure) => Box::pin(guard.wait_for_successor(failure, scope)).await,
            };
            if !failure.may_begin_again {
                return Err(failure.with_server(id));
            }
            has_begun_again = true;
        }
    }

    /// Begins a request at the instance of a route. Leases an instance if the server is not shared.
    async fn begin_at(
        &self,
        route: &Route<InstanceRef>,
        label: &(impl Fn() -> String + Sync),
        scope: RequestScope<'_>,
    ) -> Result<RequestGuard, RouteError> {
        let RequestScope { dialog, version, deadline } = scope;
        let replaced = || {
            let (server, label) = (&route.server.spec.id, label());
            let message = format!(
                "Replaced: server '{server}' was replaced or stopped after this generation; {label} is no longer \
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
                Ok(RequestGuard { instance, _gate_guard: guard })
            }
            (None, CatalogVersion::Pinned(_), RouteTarget::Shared(_)) => Err(replaced()),
            (None, CatalogVersion::Pinned(_), RouteTarget::Leased(_)) | (None, CatalogVersion::Latest, _) => {
                Err(RouteError::Retired)
            }
        }
    }

    /// Checks that a request for a server with token exchange has a token to exchange, before an instance is started
    /// for it.
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

    /// Begins a request about a task at the instance that created the task. Returns `None` if that does not run any
    /// more.
    fn begin_at_task(
        &self,
        task: &str,
        server: Option<&ServerId>,
        scope: RequestScope<'_>,
    ) -> Result<Option<InstanceRequest<String>>, HostError> {
        let routing_table = self.routing_table(scope.version);
        let (route, name) = find_and_record(&routing_table, LookupItem::Task(task), server)?;
        let (now, dialog) = (Instant::now(), scope.dialog.cloned().unwrap_or_else(DialogId::anonymous));
        let is_usable = |it: &Instance| it.is_usable_by(&dialog) && !it.is_over();
        let instance = self.supervisor.shared.tasks.find(&route.server.spec.id, task, now, is_usable);
        let Some(instance) = instance else { return Ok(None) };
        let Some(gate_guard) = instance.gate.enter_for_task() else { return Ok(None) };
        instance.touch(now);
        let guard = RequestGuard { instance, _gate_guard: gate_guard };
        Ok(Some(InstanceRequest { guard, server: Arc::clone(&route.server), item: name }))
    }

    /// Returns the leased instance of a dialog in a pinned generation, and starts it if needed.
    async fn lease_pinned(
        &self,
        request: LeaseRequest,
        pinned: &PinnedRoutes,
    ) -> Result<InstanceRef, RouteError> {
        let (dialog, server) = (request.dialog.clone(), request.server.clone());
        let pinned_instance = pinned.leased_instance(&dialog, &server);
        if let Some(instance) = pinned_instance.as_ref().filter(|it| it.gate.is_open() && !it.is_over()) {
            return Ok(Arc::clone(instance));
        }
        // There is none, or it was released or lost. A lease on the same base replaces it. If the base was replaced,
        // the pinned instance is used while it still accepts pinned calls.
        match self.lease_instance(request).await {
            Ok(instance) => {
                pinned.pin_leased(&dialog, &server, &instance);
                Ok(instance)
            }
            Err(RouteError::Retired) => {
                pinned_instance.filter(|it| it.can_take_pinned()).ok_or(RouteError::Retired)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the leased instance of a dialog, and starts it if needed.
    async fn lease_instance(&self, request: LeaseRequest) -> Result<InstanceRef, RouteError> {
        let key = (request.dialog.clone(), request.server.clone());
        if let Some(lease) = self.supervisor.leases.borrow().active.get(&key)
            && lease.base == request.base
            && lease.instance.gate.is_open()
        {
            return Ok(Arc::clone(&lease.instance));
        }
        match self.supervisor.request_lease(request).await {
            Some(LeaseReply::Granted(instance)) => Ok(instance),
            Some(LeaseReply::Refused(failure)) => Err(RouteError::Refused(failure)),
            Some(LeaseReply::Stale | LeaseReply::Released | LeaseReply::NotHeld) => Err(RouteError::Retired),
            None => Err(RouteError::Refused(HostError::shut_down())),
        }
    }
}

/// Finds an item, and records its server in the span of the request.
fn find_and_record<'t>(
    routing_table: &'t RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
) -> Result<(&'t Route<InstanceRef>, String), HostError> {
    let (route, name) = find_item(routing_table, item, server)?;
    tracing::Span::current().record("server", route.server.spec.id.as_str());
    Ok((route, name))
}
