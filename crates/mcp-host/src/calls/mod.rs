//! Tool calls: routing by name, validation, and the result. `CallRouter::call` turns every error into a result.

pub(crate) mod admin;
mod admin_calls;
mod call_result;
mod deadline;
pub(crate) mod dialog;
pub(crate) mod pin;
pub(crate) mod provider_failure;
mod requests;
pub(crate) mod resource_lookup;
mod resource_search;
pub(crate) mod result_format;
mod result_limit;
mod route;
mod servers;
mod skills;
pub(crate) mod spill;
mod subscribe;
mod tool_call;
mod tool_lookup;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{CallResult, ErrorKind, RawJson, ServerId, TaskSupport, Tool, TraceContext};
use mcp_host_registry::{ValidationOutcome, ValidatorCache};
use mcp_host_transport::{
    CallOptions, CallResponse, Caller, RequestId, RetryPolicy, StartedCall, TaskRequest,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::Instrument;

use crate::calls::pin::PinnedGeneration;
use crate::calls::spill::SpillStore;
use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::state::dialog_id::DialogId;
use crate::supervisor::connector::SharedState;
use crate::supervisor::dialog::ReminderText;
use crate::supervisor::dialog_end::DialogEndCounter;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{LeaseTable, MachineEvent, RoutingTable};
use crate::supervisor::task::Command;
use crate::supervisor::tool_problem::ToolProblem;
use crate::telemetry::TraceSource;
use crate::telemetry::spans::CallGuard;
use deadline::CallDeadline;
pub use requests::{RequestOptions, TaskMethod};
use result_format::ResultFormat;
pub use result_format::{RawResult, RequestError};
use route::{MAX_ATTEMPTS, RequestScope, RouteError, being_replaced};
pub use tool_call::{TaskHandling, ToolCall};
use tool_lookup::{display_name, find_tool};

/// Routes calls and requests to instances.
pub(crate) struct CallRouter {
    /// The latest routing table.
    pub(crate) routing_table: watch::Receiver<Arc<RoutingTable<InstanceRef>>>,
    /// The published leases.
    pub(crate) leases: watch::Receiver<Arc<LeaseTable<InstanceRef>>>,
    pub(crate) validators: ValidatorCache,
    /// Commands to the supervisor task.
    pub(crate) commands: mpsc::Sender<Command>,
    /// Makes the reminders of leases.
    pub(crate) reminder: ReminderText,
    /// The idle timeout of leases; `None`: they do not time out.
    pub(crate) idle: Option<Duration>,
    /// Stores the parts of results that exceed the size limit.
    pub(crate) spills: SpillStore,
    /// Counts ended dialogs, to order lease requests and ends.
    pub(crate) ends: DialogEndCounter,
    pub(crate) trace: Option<TraceSource>,
    pub(crate) shared: Arc<SharedState>,
}

/// The catalog version that a call uses.
#[derive(Clone, Copy)]
pub(crate) enum CatalogVersion<'a> {
    /// The latest generation.
    Latest,
    /// A pinned generation.
    Pinned(&'a PinnedGeneration),
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

impl CallRouter {
    /// Calls a tool.
    pub(crate) async fn call(&self, call: ToolCall, version: CatalogVersion<'_>) -> CallResult {
        let guard = CallGuard::begin(&self.shared.metrics);
        let span = guard.span();
        // Pinned in place, because moving a large future copies it.
        let work = pin!(async {
            let outcome = self.route_call(&call, version, &guard).await;
            let result = self.result(&call, outcome, &guard).await;
            guard.end(result.error.as_ref().map(|it| it.kind), result.metadata.duration);
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
        let guard = CallGuard::begin(&self.shared.metrics);
        let span = guard.span();
        let work = pin!(async {
            let CallOutcome { tool, budget: _, duration, outcome } =
                self.route_call::<RawJson>(&call, version, &guard).await;
            let server = tool.map(|it| it.0);
            let outcome = match outcome {
                Ok(CallSuccess { request_id, value, warnings: _ }) => {
                    guard.record_bytes(value.as_bytes().len());
                    let server = server.expect("a successful call has a tool");
                    Ok(RawResult { result: value, server, request_id })
                }
                Err(error) => Err(RequestError { server, ..error }),
            };
            guard.end(outcome.as_ref().err().map(|it| it.error.kind), duration);
            outcome
        });
        work.instrument(span).await
    }

    /// Returns the latest routing table.
    pub(crate) fn latest(&self) -> Arc<RoutingTable<InstanceRef>> {
        Arc::clone(&self.routing_table.borrow())
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
        own.cloned().or_else(|| dialog.and_then(|it| self.shared.callers.caller(it)))
    }

    /// The scope of a request. Fails for a stopped dialog, also in a pinned generation (DM-066).
    fn scope<'a>(
        &self,
        dialog: Option<&'a DialogId>,
        version: CatalogVersion<'a>,
        deadline: CallDeadline,
    ) -> Result<RequestScope<'a>, HostError> {
        match dialog.and_then(|it| self.stop_reason(it)) {
            Some(failure) => Err(failure),
            None => Ok(RequestScope { dialog, version, deadline }),
        }
    }

    /// Finds the tool and its instance, and sends the call. Looks up again if the instance was retired.
    async fn route_call<T: ResultFormat>(
        &self,
        call: &ToolCall,
        version: CatalogVersion<'_>,
        guard: &CallGuard<'_>,
    ) -> CallOutcome<T> {
        let unrouted = |failure: HostError| {
            let duration = guard.elapsed();
            CallOutcome { tool: None, budget: usize::MAX, duration, outcome: Err(failure.into()) }
        };
        let label = || format!("Tool '{}'", display_name(&call.name));
        let deadline = CallDeadline::new(guard.started(), call.deadline);
        let scope = match self.scope(call.dialog.as_ref(), version, deadline) {
            Ok(scope) => scope,
            Err(failure) => return unrouted(failure),
        };
        for _ in 0..MAX_ATTEMPTS {
            let routing_table = self.routing(version);
            let (tool, route) = match find_tool(&routing_table, &call.name, call.server.as_ref()) {
                Ok((tool, Some(route))) => (&*tool.tool, route),
                // Boxed, because it is rare and would enlarge the future of every call.
                Ok((tool, None)) => return Box::pin(self.call_admin_tool(call, &tool.tool, guard)).await,
                Err(failure) => return unrouted(failure),
            };
            let spec = &route.server.spec;
            guard.set_tool(&spec.id, &tool.name);
            let outcome = match self.begin_request(route, label, scope).await {
                Ok(request) => self.send(call, (&route.server, tool), &request.instance, deadline).await,
                Err(RouteError::Retired) => continue,
                Err(RouteError::Refused(failure)) => Err(failure.into()),
            };
            return CallOutcome {
                tool: Some((spec.id.clone(), tool.name.to_string())),
                budget: spec.limits.result_bytes,
                duration: guard.elapsed(),
                outcome,
            };
        }
        unrouted(being_replaced(&label()))
    }

    /// Validates the arguments, sends the call to the instance and checks the result.
    async fn send<T: ResultFormat>(
        &self,
        call: &ToolCall,
        (server, tool): (&ResolvedServer, &Tool),
        instance: &InstanceRef,
        deadline: CallDeadline,
    ) -> Result<CallSuccess<T>, RequestError> {
        let id = &server.spec.id;
        self.validate(call, id, tool)?;
        let must_be_task = tool.task_support == TaskSupport::Required && call.tasks == TaskHandling::Follow;
        let options = || {
            let mut options = CallOptions::default();
            options.retry = if tool.hints.is_repeatable() { RetryPolicy::Once } else { RetryPolicy::Never };
            options.progress = call.progress.clone();
            options.trace = self.trace_for(call.trace.as_ref());
            options.caller = self.caller(call.caller.as_ref(), call.dialog.as_ref());
            options.meta = call.meta.clone();
            options.extra_params = call.extra_params.clone();
            options.input = call.input;
            options.task = must_be_task.then(TaskRequest::default);
            options
        };
        let session = &instance.session;
        let send = |options| T::fetch(session, &tool.name, &call.arguments, options, call.tasks);
        let CallResponse { value, request_id, .. } = deadline.send(server, options(), send).await?;
        let value = match value {
            StartedCall::Complete(value) => {
                if call.tasks == TaskHandling::Return
                    && let Some(task) = value.created_task()
                {
                    self.shared.tasks.add(id, instance, &task, Instant::now());
                }
                value
            }
            // Boxed, because it is rare and would enlarge the future of every call.
            StartedCall::Task(task) => {
                let _held = self.shared.tasks.hold(id, instance, &task, Instant::now());
                Box::pin(deadline.follow_task(server, session, &task, options())).await?
            }
        };
        let warnings = value.check_output(self, id, tool);
        Ok(CallSuccess { request_id: Some(request_id), value, warnings })
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
                self.report_tool_problem(
                    server,
                    tool,
                    ToolProblem::ArgumentsUnchecked,
                    Some(excerpt(reason)),
                );
            }
            Err(errors) => return Err(invalid(&excerpt(errors.to_string().replace('\n', "; ")))),
        }
        Ok(())
    }

    /// Reports a problem of a tool to the supervisor task; without a `reason`, withdraws it.
    fn report_tool_problem(
        &self,
        server: &ServerId,
        tool: &Tool,
        problem: ToolProblem,
        reason: Option<String>,
    ) {
        let (server, tool) = (server.clone(), tool.name.to_string());
        let event = MachineEvent::ToolProblem { server, tool, problem, reason };
        // If the queue is full, a later call reports it.
        let _ = self.commands.try_send(Command::event(event));
    }
}
