//! Tool calls: routing, validation, and the result.

use std::pin::pin;
use std::sync::Arc;

use mcp_host_model::{CallResult, ErrorKind, RawJson, ResultInfo, ResultKind, TaskSupport};
use mcp_host_registry::ValidatorCache;
use mcp_host_transport::{CallOptions, CallResponse, RetryPolicy, StartedCall, TaskRequest};
use tokio::time::Instant;
use tracing::Instrument;

use crate::calls::admin::{AdminTools, run_admin_command, toolset_id};
use crate::calls::call_result::{CallSuccess, CallTarget, FinishedCall, ResultBuilder};
use crate::calls::deadline::CallDeadline;
use crate::calls::leases::LeaseReports;
use crate::calls::policy::permit::CallPermit;
use crate::calls::policy::{CallPolicy, PolicyCall};
use crate::calls::raw_result::{RawResult, RequestFailure};
use crate::calls::requests::RequestRouter;
use crate::calls::result_format::ResultFormat;
use crate::calls::route::{CatalogVersion, InstanceRequest, RequestScope, RequestTarget};
use crate::calls::schema_check::SchemaCheck;
use crate::calls::spill::SpillStore;
use crate::calls::supervisor_handle::SupervisorHandle;
use crate::calls::tool_call::{TaskHandling, ToolCall};
use crate::calls::tool_lookup::{being_replaced_error, display_name, find_called_tool};
use crate::telemetry::spans::CallGuard;

/// Routes tool calls and other requests to instances.
pub(crate) struct CallRouter {
    pub(crate) requests: RequestRouter,
    pub(crate) validators: ValidatorCache,
    /// Stores the parts of results that exceed the size limit.
    pub(crate) spills: SpillStore,
    /// The limit on results of all servers; `None`: that of each server.
    pub(crate) result_bytes: Option<usize>,
    pub(crate) lease_reports: LeaseReports,
    pub(crate) admin_tools: AdminTools,
    pub(crate) policy: Arc<dyn CallPolicy>,
    /// Whether spans have the arguments and results of calls.
    pub(crate) records_contents: bool,
}

/// The progress of a call, over several attempts.
#[derive(Default)]
struct CallProgress {
    /// The called tool, if it was found.
    target: Option<CallTarget>,
    permit: CallPermit,
}

impl CallRouter {
    /// Returns the handle of the supervisor task.
    pub(crate) fn supervisor(&self) -> &SupervisorHandle {
        &self.requests.instances.supervisor
    }

    /// Calls a tool. An error becomes a result.
    pub(crate) async fn call(&self, call: ToolCall, version: CatalogVersion<'_>) -> CallResult {
        let guard = CallGuard::begin(&self.supervisor().shared.metrics);
        let span = guard.span();
        // Pinned in place, because moving a large future copies it.
        let work = pin!(async {
            let finished = self.run(&call, version, &guard).await;
            let builder =
                ResultBuilder { spills: &self.spills, supervisor: self.supervisor(), guard: &guard };
            let result = builder.build(call.name(), finished).await;
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
    ) -> Result<RawResult, RequestFailure> {
        let guard = CallGuard::begin(&self.supervisor().shared.metrics);
        let span = guard.span();
        let work = pin!(async {
            let FinishedCall { target, ruling, duration, outcome } =
                self.run::<RawJson>(&call, version, &guard).await;
            let server = target.map(|it| it.server);
            let outcome = match outcome {
                Ok(CallSuccess { request_id, value, info, warnings: _ }) => {
                    guard.record_bytes(value.as_bytes().len());
                    let server = server.expect("a successful call has a tool");
                    Ok(RawResult { result: value, info, server, request_id, ruling })
                }
                Err(error) => Err(RequestFailure { server, ruling: ruling.map(Box::new), ..error }),
            };
            let failed = match &outcome {
                Ok(result) => (result.info.kind == ResultKind::ToolError).then_some(ErrorKind::Tool),
                Err(failure) => Some(failure.error.kind),
            };
            guard.end(failed, duration);
            outcome
        });
        work.instrument(span).await
    }

    /// Runs a call in the format `T`, and measures its duration.
    async fn run<T: ResultFormat>(
        &self,
        call: &ToolCall,
        version: CatalogVersion<'_>,
        guard: &CallGuard<'_>,
    ) -> FinishedCall<T> {
        if self.records_contents {
            guard.record_arguments(call.arguments.as_str());
        }
        let mut progress = CallProgress::default();
        let deadline = CallDeadline::new(guard.started(), call.options.deadline);
        let outcome = match self.requests.instances.new_scope(call.options.dialog.as_ref(), version, deadline)
        {
            Ok(scope) => {
                let mut has_begun_again = false;
                loop {
                    match self.run_in_scope::<T>(scope, call, guard, &mut progress).await {
                        Err(_) if progress.permit.is_pending() => {
                            // Boxed, because it is rare and would enlarge the future of every call.
                            if let Err(failure) = Box::pin(progress.permit.wait(call.name())).await {
                                break Err(failure.into());
                            }
                        }
                        Err(failure) if failure.may_begin_again && !has_begun_again => has_begun_again = true,
                        outcome => break outcome,
                    }
                }
            }
            Err(failure) => Err(failure.into()),
        };
        let CallProgress { target, permit: CallPermit { ruling, .. } } = progress;
        if let Some(ruling) = &ruling {
            guard.set_ruling(ruling.outcome.as_str(), &ruling.rule);
        }
        if let (true, Ok(success)) = (self.records_contents, &outcome) {
            guard.record_result(&success.value.recorded_text());
        }
        guard.record_response(match &outcome {
            Ok(success) => Ok(success.request_id),
            Err(failure) => Err(failure.rpc.as_ref().map(|rpc| rpc.code)),
        });
        FinishedCall { target, ruling, duration: guard.elapsed(), outcome }
    }

    /// Finds the tool, validates the arguments, asks the policy, finds the instance, sends the call and checks the
    /// result. Sets the target of `progress` when the tool is found, also if the call then fails. A failed call that
    /// was not sent has waited for another instance.
    async fn run_in_scope<T: ResultFormat>(
        &self,
        scope: RequestScope<'_>,
        call: &ToolCall,
        guard: &CallGuard<'_>,
        progress: &mut CallProgress,
    ) -> Result<CallSuccess<T>, RequestFailure> {
        let instances = &self.requests.instances;
        let label = || format!("Tool '{}'", display_name(call.name()));
        let CallProgress { target, permit } = progress;
        // The rules of today count for a pinned generation too.
        let current = match scope.version {
            CatalogVersion::Latest => None,
            CatalogVersion::Pinned(_) => Some(self.supervisor().latest_routing_table()),
        };
        let request_target = instances.begin(scope, &label, |routing_table| {
            *target = None;
            let (tool, route) = find_called_tool(routing_table, call)?;
            let (server, result_bytes) = match route.map(|it| &it.server.spec) {
                Some(spec) => (spec.id.clone(), self.result_bytes.unwrap_or(spec.limits.result_bytes)),
                None if self.admin_tools == AdminTools::Enabled => (toolset_id(), usize::MAX),
                None => return Err(being_replaced_error(&label())),
            };
            guard.set_tool(&server, &tool.tool.name);
            let target = target.insert(CallTarget { server, tool: Arc::clone(&tool.tool), result_bytes });
            // Before the instance is looked up, because that may start a server.
            self.schema_check(target).check_arguments(call, tool)?;
            permit.check(
                &*self.policy,
                &PolicyCall {
                    server: &target.server,
                    configured: route.map(|it| {
                        let newer = current.as_ref().and_then(|table| table.routes.get(&it.server.spec.id));
                        &newer.unwrap_or(it).server
                    }),
                    tool: &tool.tool,
                    is_approved: tool.is_approved,
                    call,
                    remaining: scope.deadline.time_left(),
                },
            )?;
            Ok((route, ()))
        });
        let request_target = request_target.await?;
        let target = target.as_ref().expect("the lookup of a begun request set it");
        let schema_check = self.schema_check(target);
        let InstanceRequest { guard: request_guard, server, item: () } = match request_target {
            RequestTarget::Instance(request) => request,
            RequestTarget::Host(()) => {
                // Boxed, because it is rare and would enlarge the future of every call.
                let text = Box::pin(run_admin_command(self.supervisor(), call, &target.tool)).await?;
                let (value, info) = (T::from_text(text), ResultInfo::default());
                return Ok(CallSuccess { request_id: None, value, info, warnings: Vec::new() });
            }
        };
        let (instance, tool) = (&request_guard.instance, &target.tool);
        guard.record_connection(&server, &instance.session);
        let must_be_task = tool.task_support == TaskSupport::Required && call.tasks == TaskHandling::Follow;
        let options = || {
            let mut options = CallOptions::default();
            options.retry = if tool.hints.is_repeatable() { RetryPolicy::Once } else { RetryPolicy::Never };
            options.task = must_be_task.then(TaskRequest::default);
            options.context = instances.call_context(&call.options);
            options
        };
        let session = &instance.session;
        let send = |options| T::call_tool(session, &tool.name, &call.arguments, options, call.tasks);
        let CallResponse { value, request_id, info, .. } =
            match scope.deadline.send(&server, options(), send).await {
                Ok(response) => response,
                // Boxed, because it is rare and would enlarge the future of every call.
                Err(failure) => return Err(Box::pin(request_guard.wait_for_successor(failure, scope)).await),
            };
        let tasks = &self.supervisor().shared.tasks;
        let (value, info) = match value {
            StartedCall::Complete(value) => {
                if call.tasks == TaskHandling::Return
                    && info.kind == ResultKind::Task
                    && let Some(task) = value.created_task()
                {
                    tasks.add(&target.server, instance, &task, Instant::now());
                }
                (value, info)
            }
            // Boxed, because it is rare and would enlarge the future of every call.
            StartedCall::Task(task) => {
                let _entry_guard = tasks.add_guarded(&target.server, instance, &task, Instant::now());
                let followed = Box::pin(scope.deadline.follow_task(&server, session, &task, options()));
                let CallResponse { value, info, .. } = followed.await?;
                (value, info)
            }
        };
        let warnings = value.as_tool_result().map(|it| schema_check.check_result(it)).unwrap_or_default();
        Ok(CallSuccess { request_id: Some(request_id), value, info, warnings })
    }

    /// Creates the check of the called tool.
    fn schema_check<'a>(&'a self, target: &'a CallTarget) -> SchemaCheck<'a> {
        let CallTarget { server, tool, result_bytes: _ } = target;
        SchemaCheck { validators: &self.validators, supervisor: self.supervisor(), server, tool }
    }
}
