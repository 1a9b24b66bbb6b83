//! Tool calls: routing by name, validation, and the result. `CallRouter::call` turns every error into a result.

pub(crate) mod admin;
mod admin_calls;
mod call_result;
pub(crate) mod deadline;
pub(crate) mod dialog;
pub(crate) mod pin;
pub(crate) mod provider_failure;
mod requests;
pub(crate) mod resource_lookup;
pub(crate) mod result_format;
mod result_limit;
mod servers;
pub(crate) mod spill;
mod subscribe;
mod tool_call;
mod tool_lookup;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{CallResult, ErrorKind, RawJson, ServerId, Tool, TraceContext};
use mcp_registry::{ValidationOutcome, ValidatorCache};
use mcp_transport::{CallError, CallOptions, Caller, RequestId, RetryPolicy};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::Instrument;

use crate::calls::pin::PinnedGeneration;
use crate::calls::spill::SpillStore;
use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::notifications::dialog_callers::DialogCallers;
use crate::notifications::log_levels::LogLevels;
use crate::notifications::stream::{NotificationRouter, ServerNotification};
use crate::notifications::subscriptions::Subscriptions;
use crate::state::dialog_id::DialogId;
use crate::state::server_info_cache::ServerInfoCache;
use crate::supervisor::clock_jump::WallClock;
use crate::supervisor::committer::{Command, InstanceRef};
use crate::supervisor::connector::call_error;
use crate::supervisor::dialog::DialogEndCounter;
use crate::supervisor::dialog::ReminderText;
use crate::supervisor::gate::GateGuard;
use crate::supervisor::machine::{
    LeaseReply, LeaseRequest, LeaseTable, MachineEvent, RouteTarget, RoutingTable, ToolNote, saturating_after,
};
use crate::telemetry::TraceSource;
use crate::telemetry::metrics::HostMetrics;
use crate::telemetry::spans::CallRecord;
use deadline::{CallDeadline, outer, timeout_error};
pub use requests::RequestOptions;
use result_format::ResultFormat;
pub use result_format::{RawResult, RequestError};
pub use tool_call::ToolCall;
use tool_lookup::{display_name, find_tool};

/// The maximum number of attempts to route a call. An attempt fails when the instance is retired between the
/// lookup and the call.
const MAX_ATTEMPTS: usize = 4;

/// Routes calls and requests to instances.
pub(crate) struct CallRouter {
    /// The latest routing table.
    pub(crate) snapshot: watch::Receiver<Arc<RoutingTable<InstanceRef>>>,
    /// The published leases.
    pub(crate) leases: watch::Receiver<Arc<LeaseTable<InstanceRef>>>,
    pub(crate) validators: ValidatorCache,
    /// Commands to the committer.
    pub(crate) commands: mpsc::Sender<Command>,
    /// Makes the reminders of leases.
    pub(crate) reminder: ReminderText,
    /// The idle timeout of leases; `None`: they do not time out.
    pub(crate) idle: Option<Duration>,
    pub(crate) wall_clock: WallClock,
    pub(crate) metrics: Arc<HostMetrics>,
    /// Stores the parts of results that exceed the size limit.
    pub(crate) spills: SpillStore,
    /// Counts ended dialogs, to order lease requests and ends.
    pub(crate) ends: DialogEndCounter,
    pub(crate) trace: Option<TraceSource>,
    pub(crate) callers: Arc<DialogCallers>,
    pub(crate) notifications: Arc<NotificationRouter<ServerNotification>>,
    pub(crate) log_levels: Arc<LogLevels>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) server_info: Arc<ServerInfoCache>,
}

/// The catalog version that a call uses.
#[derive(Clone, Copy)]
pub(crate) enum CatalogVersion<'a> {
    /// The latest generation.
    Latest,
    /// A pinned generation.
    Pinned(&'a PinnedGeneration),
}

/// What a tool name refers to.
enum ToolTarget {
    /// A tool of a server.
    Server(CallTarget),
    /// A tool of the host.
    Host(Arc<Tool>),
}

/// A tool of a server with the route of its calls.
#[derive(Clone)]
struct CallTarget {
    server: Arc<ResolvedServer>,
    target: RouteTarget<InstanceRef>,
    tool: Arc<Tool>,
}

/// The server, route and dialog of a request.
#[derive(Clone, Copy)]
struct Destination<'a> {
    server: &'a ServerId,
    target: &'a RouteTarget<InstanceRef>,
    dialog: Option<&'a DialogId>,
}

/// The outcome of a call, with the data for its [`CallResult`].
struct CallOutcome<T> {
    /// The server and the original name of the tool, if found.
    tool: Option<(ServerId, String)>,
    /// The maximum size of the result, in bytes.
    budget: usize,
    duration: Duration,
    outcome: Result<CallSuccess<T>, RequestError>,
}

/// A successful call.
struct CallSuccess<T> {
    request_id: Option<RequestId>,
    value: T,
    /// Deviations of the result from the tool's output schema.
    warnings: Vec<String>,
}

/// Why there is no instance for a call.
enum RouteError {
    /// The instance was retired after the lookup; another lookup may find its successor.
    Retired,
    /// The server is not available.
    Refused(HostError),
}

impl CallRouter {
    /// Calls a tool.
    pub(crate) async fn call(&self, call: ToolCall, version: CatalogVersion<'_>) -> CallResult {
        let record = CallRecord::begin(&self.metrics);
        let span = record.span();
        // Pinned in place, because moving a large future copies it.
        let work = pin!(async {
            let outcome = self.route_call(&call, version, &record).await;
            let result = self.result(&call, outcome, &record).await;
            record.end(result.error.as_ref().map(|it| it.kind), result.metadata.duration);
            result
        });
        work.instrument(span).await
    }

    /// Calls a tool and returns its result as the server sent it.
    pub(crate) async fn call_raw(
        &self,
        call: ToolCall,
        version: CatalogVersion<'_>,
    ) -> Result<RawResult, RequestError> {
        let record = CallRecord::begin(&self.metrics);
        let span = record.span();
        let work = pin!(async {
            let CallOutcome { tool, budget: _, duration, outcome } =
                self.route_call::<RawJson>(&call, version, &record).await;
            let server = tool.map(|it| it.0);
            let outcome = match (outcome, server) {
                (Ok(CallSuccess { request_id, value, warnings: _ }), Some(server)) => {
                    record.record_bytes(value.as_bytes().len());
                    Ok(RawResult { result: value, server, request_id })
                }
                (Ok(_), None) => unreachable!("a result is some tool's"),
                (Err(error), server) => Err(RequestError { server, ..error }),
            };
            record.end(outcome.as_ref().err().map(|it| it.error.kind), duration);
            outcome
        });
        work.instrument(span).await
    }

    /// Returns the latest routing table.
    pub(crate) fn latest(&self) -> Arc<RoutingTable<InstanceRef>> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Returns the routing table of a version.
    fn routing(&self, version: CatalogVersion<'_>) -> Arc<RoutingTable<InstanceRef>> {
        match version {
            CatalogVersion::Latest => self.latest(),
            CatalogVersion::Pinned(pinned) => Arc::clone(pinned.routing()),
        }
    }

    /// Returns the trace of a request: its own, else the host's.
    fn trace_for(&self, own: Option<&TraceContext>) -> Option<TraceContext> {
        own.cloned().or_else(|| self.trace.as_ref().and_then(|it| it()))
    }

    /// Returns the caller of a request: its own, else the dialog's.
    fn caller(&self, own: Option<&Arc<Caller>>, dialog: Option<&DialogId>) -> Option<Arc<Caller>> {
        own.cloned().or_else(|| dialog.and_then(|it| self.callers.caller(it)))
    }

    /// Finds the tool and its instance, and sends the call. Looks up again if the instance was retired.
    async fn route_call<T: ResultFormat>(
        &self,
        call: &ToolCall,
        version: CatalogVersion<'_>,
        record: &CallRecord<'_>,
    ) -> CallOutcome<T> {
        let unrouted = |failure: HostError| {
            let duration = record.elapsed();
            CallOutcome { tool: None, budget: usize::MAX, duration, outcome: Err(failure.into()) }
        };
        // Also for pinned generations: stopping a dialog takes effect at once (DM-066).
        if let Some(failure) = call.dialog.as_ref().and_then(|it| self.stop_reason(it)) {
            return unrouted(failure);
        }
        // The clock is read only at the start and the end of a call, and after a wait.
        let deadline = CallDeadline::begin(record.started(), call.deadline);
        // If the instance's gate is retired, the server was replaced or stopped after the lookup, and the new
        // state is already published. Then a second lookup is enough. Only a lease may be released several times.
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.routing(version);
            let target = match resolve_tool(&snapshot, call) {
                Ok(ToolTarget::Server(target)) => target,
                // Boxed, because it is rare and would enlarge the future of every call.
                Ok(ToolTarget::Host(tool)) => {
                    return Box::pin(self.call_admin_tool(call, &tool, record)).await;
                }
                Err(failure) => return unrouted(failure),
            };
            record.set_tool(&target.server.spec.id, &target.tool.name);
            let finished_at = |outcome, at: Instant| CallOutcome {
                tool: Some((target.server.spec.id.clone(), target.tool.name.to_string())),
                budget: target.server.spec.limits.result_bytes,
                duration: at.saturating_duration_since(record.started()),
                outcome,
            };
            let finished = |outcome| finished_at(outcome, Instant::now());
            let destination = Destination {
                server: &target.server.spec.id,
                target: &target.target,
                dialog: call.dialog.as_ref(),
            };
            let instance = match &target.target {
                RouteTarget::Shared(instance) => Ok(Arc::clone(instance)),
                RouteTarget::Leased(_) => {
                    match Box::pin(deadline.wait(self.resolve_instance(destination, version))).await {
                        None => return finished(Err(deadline.exceeded(&target.server).into())),
                        Some(found) => found,
                    }
                }
            };
            let instance = match instance {
                Ok(instance) => instance,
                Err(RouteError::Refused(failure)) => return finished(Err(failure.into())),
                Err(RouteError::Retired) => match version {
                    CatalogVersion::Latest => continue,
                    CatalogVersion::Pinned(_) => return finished(Err(replaced(call, &target).into())),
                },
            };
            let Some(guard) = enter_gate(&instance, version) else {
                match (version, &target.target) {
                    // The instance was retired since the lookup: look up again.
                    (CatalogVersion::Latest, _) | (CatalogVersion::Pinned(_), RouteTarget::Leased(_)) => {
                        continue;
                    }
                    (CatalogVersion::Pinned(_), RouteTarget::Shared(_)) => {
                        return finished(Err(replaced(call, &target).into()));
                    }
                }
            };
            let now = match &target.target {
                RouteTarget::Shared(_) => record.started(),
                RouteTarget::Leased(_) => Instant::now(),
            };
            instance.touch(now);
            let outcome = self.send(call, &target, &instance, (deadline, now)).await;
            let now = Instant::now();
            instance.touch(now);
            drop(guard);
            return finished_at(outcome, now);
        }
        let message =
            format!("Tool '{}' is not available: its server is being replaced", display_name(&call.name));
        unrouted(HostError::new(ErrorKind::Connection, message))
    }

    /// Returns the instance for a request, and leases one if the server is not shared.
    async fn resolve_instance(
        &self,
        destination: Destination<'_>,
        version: CatalogVersion<'_>,
    ) -> Result<InstanceRef, RouteError> {
        let Destination { server, target, dialog } = destination;
        let base = match target {
            RouteTarget::Shared(instance) => return Ok(Arc::clone(instance)),
            RouteTarget::Leased(base) => *base,
        };
        let server = server.clone();
        let dialog = dialog.cloned().unwrap_or_else(DialogId::anonymous);
        match version {
            CatalogVersion::Latest => self.lease_instance(LeaseRequest { dialog, server, base }).await,
            CatalogVersion::Pinned(pinned) => {
                let kept = pinned.leased_instance(&dialog, &server);
                if let Some(kept) = kept.as_ref().filter(|it| it.gate.is_open() && !it.is_over()) {
                    return Ok(Arc::clone(kept));
                }
                // The pinned lease was released or lost. Another lease on the same base replaces it. If the base
                // was replaced, the pinned instance is used while it still accepts pinned calls.
                let request = LeaseRequest { dialog: dialog.clone(), server: server.clone(), base };
                match self.lease_instance(request).await {
                    Ok(instance) => {
                        pinned.pin_leased(&dialog, &server, &instance);
                        Ok(instance)
                    }
                    Err(RouteError::Retired) => {
                        kept.filter(|it| it.takes_pinned()).ok_or(RouteError::Retired)
                    }
                    Err(RouteError::Refused(failure)) => Err(RouteError::Refused(failure)),
                }
            }
        }
    }

    /// Returns the instance of the dialog, and starts it if needed.
    async fn lease_instance(&self, request: LeaseRequest) -> Result<InstanceRef, RouteError> {
        let key = (request.dialog.clone(), request.server.clone());
        if let Some(held) = self.leases.borrow().held.get(&key)
            && held.base == request.base
            && held.instance.gate.is_open()
        {
            return Ok(Arc::clone(&held.instance));
        }
        let (answer, taken) = oneshot::channel();
        let shut_down =
            || RouteError::Refused(HostError::new(ErrorKind::Connection, "the host was shut down"));
        let ends_seen = self.ends.current();
        self.commands.send(Command::Lease(request, ends_seen, answer)).await.map_err(|_| shut_down())?;
        match taken.await {
            Ok(LeaseReply::Granted(instance)) => Ok(instance),
            Ok(LeaseReply::Refused(failure)) => Err(RouteError::Refused(failure)),
            Ok(LeaseReply::Stale | LeaseReply::Released | LeaseReply::NotHeld) => Err(RouteError::Retired),
            Err(_) => Err(shut_down()),
        }
    }

    /// Validates the arguments, sends the call to the instance and checks the result.
    async fn send<T: ResultFormat>(
        &self,
        call: &ToolCall,
        target: &CallTarget,
        instance: &InstanceRef,
        (deadline, now): (CallDeadline, Instant),
    ) -> Result<CallSuccess<T>, RequestError> {
        let CallTarget { server, target: _, tool } = target;
        self.validate(call, &server.spec.id, tool)?;
        let limits = &server.spec.limits;
        let deadline = deadline.remaining(limits.request);
        let replay = if tool.hints.is_repeatable() { RetryPolicy::Once } else { RetryPolicy::Never };
        let options = CallOptions {
            timeout: Some(deadline),
            idle_timeout: limits.idle,
            retry: replay,
            progress: call.progress.clone(),
            trace: self.trace_for(call.trace.as_ref()),
            caller: self.caller(call.caller.as_ref(), call.dialog.as_ref()),
            meta: call.meta.clone(),
            extra_params: call.extra_params.clone(),
            input: call.input,
        };
        let outer = outer(deadline, &options);
        let answer = pin!(T::fetch(&instance.session, &tool.name, &call.arguments, options));
        match tokio::time::timeout_at(saturating_after(now, outer), answer).await {
            Ok(Ok(answer)) => {
                let warnings = answer.value.check_output(self, &server.spec.id, tool);
                Ok(CallSuccess { request_id: Some(answer.request_id), value: answer.value, warnings })
            }
            Ok(Err(error @ CallError::Closed(_))) if replay == RetryPolicy::Never => {
                let mut res = call_error(server, &error);
                res.message.push_str("; it is not known whether the call ran");
                Err(res.into())
            }
            Ok(Err(error)) => Err(RequestError::new(call_error(server, &error), &error)),
            Err(_) => Err(timeout_error(server, deadline).into()),
        }
    }

    /// Validates the arguments against the tool's schema.
    fn validate(&self, call: &ToolCall, server: &ServerId, tool: &Tool) -> Result<(), HostError> {
        let invalid = |what: &str| {
            let message = format!("Invalid arguments for tool '{}': {what}", display_name(&call.name));
            HostError::new(ErrorKind::Validation, message)
        };
        if !call.arguments.is_object() {
            return Err(invalid("they must be a JSON object"));
        }
        match self.validators.check_arguments(&tool.input_schema, &call.arguments) {
            Ok(ValidationOutcome::Valid) => {}
            Ok(ValidationOutcome::Unvalidated(reason)) => {
                tracing::debug!(reason, "arguments are passed on unchecked");
                self.report_note(server, tool, ToolNote::ArgumentsUnchecked, Some(excerpt(reason)));
            }
            Err(errors) => return Err(invalid(&excerpt(errors.to_string().replace('\n', "; ")))),
        }
        Ok(())
    }
}

impl CallRouter {
    /// Reports a note about a tool to the committer; without a `reason`, withdraws it.
    fn report_note(&self, server: &ServerId, tool: &Tool, note: ToolNote, reason: Option<String>) {
        let (server, tool) = (server.clone(), tool.name.to_string());
        // If the queue is full, a later call reports it.
        let _ =
            self.commands.try_send(Command::event(MachineEvent::ToolNoted { server, tool, note, reason }));
    }
}

/// Finds the tool of a call, with its route.
fn resolve_tool(snapshot: &RoutingTable<InstanceRef>, call: &ToolCall) -> Result<ToolTarget, HostError> {
    let (tool, route) = find_tool(snapshot, &call.name, call.server.as_ref())?;
    let tool = tool.tool.clone();
    Ok(match route {
        Some(route) => ToolTarget::Server(CallTarget {
            server: Arc::clone(&route.server),
            target: route.target.clone(),
            tool,
        }),
        None => ToolTarget::Host(tool),
    })
}

/// Enters the instance's gate; `None` if it does not accept calls of this version.
fn enter_gate<'a>(instance: &'a InstanceRef, version: CatalogVersion<'_>) -> Option<GateGuard<'a>> {
    match version {
        CatalogVersion::Latest => instance.gate.enter(),
        CatalogVersion::Pinned(_) => instance.gate.enter_pinned(),
    }
}

/// The error of a pinned call whose instance has ended.
fn replaced(call: &ToolCall, target: &CallTarget) -> HostError {
    let message = format!(
        "Replaced: server '{}' was replaced or stopped after this generation; tool '{}' of it is no longer there",
        target.server.spec.id,
        display_name(&call.name)
    );
    HostError::new(ErrorKind::Connection, message)
}
