//! Requests other than tool calls: prompts, resources, completions.
//!
//! They are routed like calls: to the shared instance or the dialog's leased one, in the requested generation. What a
//! filter hides cannot be requested. A URI in no list can be read as well, because servers may create resources
//! dynamically: from the named server, else from the first server that has it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{
    Completion, ErrorKind, PromptResult, RawJson, ReadResult, ServerId, Task, TraceContext,
};
use mcp_host_registry::ExposedPrompt;
use mcp_host_transport::{
    CallError, CallOptions, CallResponse, Caller, CompletionArgument, CompletionReference,
    DEFAULT_TASK_TIMEOUT, InputHandling, OnProgress, RetryPolicy, Session,
};
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use super::deadline::CallDeadline;
use super::resource_lookup::{LookupItem, find_item, find_prompt};
use super::result_format::{RawResult, RequestError};
use super::route::{MAX_ATTEMPTS, RequestScope, RouteError, being_replaced};
use super::tool_lookup::display_name;
use super::{CallRouter, CatalogVersion};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::telemetry::spans::SpanGuard;

/// Options of a request.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// The server, if the name or URI is ambiguous without it.
    pub server: Option<ServerId>,
    /// Without `server`, the servers that may be queried for a resource that no list contains; `None`: all servers with
    /// resources.
    pub servers: Option<Arc<[ServerId]>>,
    /// The dialog, which leases instances of servers that are not shared. All requests without a dialog use the
    /// same leases.
    pub dialog: Option<DialogId>,
    /// The maximum duration, including the start of a leased instance, as in
    /// [`ToolCall::deadline`](crate::calls::ToolCall::deadline).
    pub deadline: Option<Duration>,
    /// Receives progress notifications.
    pub progress: Option<OnProgress>,
    /// The trace context, as in [`ToolCall::trace`](crate::calls::ToolCall::trace).
    pub trace: Option<TraceContext>,
    /// Answers server requests, as in [`ToolCall::caller`](crate::calls::ToolCall::caller).
    pub caller: Option<Arc<Caller>>,
    /// The caller's `_meta`, as in [`ToolCall::meta`](crate::calls::ToolCall::meta).
    pub meta: Option<RawJson>,
    /// Additional parameters, as in [`ToolCall::extra_params`](crate::calls::ToolCall::extra_params).
    pub extra_params: Option<RawJson>,
    /// What is done with a result that requires input. Only raw requests can forward it.
    pub input: InputHandling,
}

/// A method of a request about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskMethod {
    /// `tasks/get`
    Get,
    /// `tasks/result`, of 2025-11-25
    Result,
    /// `tasks/update`, of 2026-07-28
    Update,
    /// `tasks/cancel`
    Cancel,
}

impl TaskMethod {
    fn name(self) -> &'static str {
        match self {
            TaskMethod::Get => "tasks/get",
            TaskMethod::Result => "tasks/result",
            TaskMethod::Update => "tasks/update",
            TaskMethod::Cancel => "tasks/cancel",
        }
    }
}

/// Sends a request in a session, with the server's own name of the item. Boxed, because the compiler cannot prove a
/// borrowing future `Send`.
pub(super) type SendRequest<T> =
    Arc<dyn for<'a> Fn(&'a Session, &'a str, CallOptions) -> RequestFuture<'a, T> + Send + Sync>;
pub(super) type RequestFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send + 'a>>;

impl CallRouter {
    /// Renders a prompt.
    pub(crate) async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<PromptResult, HostError> {
        let given = arguments.clone();
        let send: SendRequest<PromptResult> = Arc::new(move |session, name, options| {
            let given = given.clone();
            Box::pin(async move { session.get_prompt(name, &given, options).await.map(|it| it.value) })
        });
        self.prompt((name, arguments), options, version, send).await.map(|it| it.0).map_err(|it| it.error)
    }

    /// Renders a prompt and returns the raw result.
    pub(crate) async fn get_prompt_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<RawResult, RequestError> {
        let given = arguments.clone();
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(move |session, name, options| {
            let given = given.clone();
            Box::pin(async move { session.get_prompt_raw(name, &given, options).await })
        });
        self.prompt((name, arguments), options, version, send).await.map(raw)
    }

    async fn prompt<T>(
        &self,
        (name, arguments): (&str, &RawJson),
        options: RequestOptions,
        version: CatalogVersion<'_>,
        send: SendRequest<T>,
    ) -> Result<(T, ServerId), RequestError> {
        let routing_table = self.routing(version);
        if let Ok(prompt) = find_prompt(&routing_table, name, options.server.as_ref()) {
            let missing = |it: HostError| RequestError::from(it).on(&prompt.server);
            check_required_arguments(prompt, arguments).map_err(missing)?;
        }
        self.traced("prompts/get", LookupItem::Prompt(name), options, version, send).await
    }

    /// Reads a resource.
    pub(crate) async fn read_resource(
        &self,
        uri: &str,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<ReadResult, HostError> {
        let send: SendRequest<ReadResult> =
            Arc::new(|session, uri, options| Box::pin(session.read_resource(uri, options)));
        let read = self.traced("resources/read", LookupItem::Resource(uri), options, version, send).await;
        read.map(|it| it.0).map_err(|it| it.error)
    }

    /// Reads a resource and returns the raw result.
    pub(crate) async fn read_resource_raw(
        &self,
        uri: &str,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<RawResult, RequestError> {
        let send: SendRequest<CallResponse<RawJson>> =
            Arc::new(|session, uri, options| Box::pin(session.read_resource_raw(uri, options)));
        self.traced("resources/read", LookupItem::Resource(uri), options, version, send).await.map(raw)
    }

    /// Completes an argument.
    pub(crate) async fn complete(
        &self,
        of: &CompletionReference,
        argument: &CompletionArgument,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<Completion, HostError> {
        let known = (of.clone(), argument.clone());
        let send: SendRequest<Completion> = Arc::new(move |session, name, options| {
            let (of, argument) = known.clone();
            Box::pin(async move { session.complete(&with_server_name(&of, name), &argument, options).await })
        });
        let completed = self.traced("completion/complete", completion_item(of), options, version, send).await;
        completed.map(|it| it.0).map_err(|it| it.error)
    }

    /// Completes an argument and returns the raw result.
    pub(crate) async fn complete_raw(
        &self,
        of: &CompletionReference,
        argument: &CompletionArgument,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<RawResult, RequestError> {
        let known = (of.clone(), argument.clone());
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(move |session, name, options| {
            let (of, argument) = known.clone();
            Box::pin(
                async move { session.complete_raw(&with_server_name(&of, name), &argument, options).await },
            )
        });
        self.traced("completion/complete", completion_item(of), options, version, send).await.map(raw)
    }

    /// Sends a request about a task of `options.server` and returns the raw result. `input` has responses to its
    /// requests for input.
    pub(crate) async fn task_request_raw(
        &self,
        method: TaskMethod,
        id: &str,
        input: Option<&RawJson>,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<RawResult, RequestError> {
        let input = input.map(|it| format!(",\"inputResponses\":{}", it.as_str())).unwrap_or_default();
        let id_text = serde_json::Value::from(id);
        let params = format!("{{\"taskId\":{id_text}{input}}}");
        let params = RawJson::parse(params.into()).expect("its members are JSON");
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(move |session, id, options| {
            let params = params.clone();
            Box::pin(async move {
                require_tasks(session)?;
                session.request_raw(method.name(), Some(id), &params, options).await
            })
        });
        let server = options.server.clone();
        let result = self.traced(method.name(), LookupItem::Task(id), options, version, send).await.map(raw);
        if let Some(server) = &server
            && is_task_over(method, &result)
        {
            self.shared.tasks.record_end(server, id, Instant::now());
        }
        result
    }

    /// Waits for the result of a task of `options.server`.
    pub(crate) async fn task_result(
        &self,
        id: &str,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<RawResult, RequestError> {
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(|session, id, options| {
            Box::pin(async move {
                require_tasks(session)?;
                let task = session.get_task(id, &CallOptions::default()).await?;
                session.task_result_raw(&task, &options).await
            })
        });
        let options = RequestOptions { deadline: options.deadline.or(Some(DEFAULT_TASK_TIMEOUT)), ..options };
        let result =
            self.traced("tasks/result", LookupItem::Task(id), options, version, send).await.map(raw)?;
        self.shared.tasks.record_end(&result.server, id, Instant::now());
        Ok(result)
    }

    pub(super) async fn traced<T>(
        &self,
        method: &'static str,
        item: LookupItem<'_>,
        options: RequestOptions,
        version: CatalogVersion<'_>,
        send: SendRequest<T>,
    ) -> Result<(T, ServerId), RequestError> {
        let span = tracing::info_span!("request", method, server = Empty, outcome = Empty, duration = Empty);
        async {
            let guard = SpanGuard::begin();
            let deadline = CallDeadline::new(Instant::now(), options.deadline);
            let res = match self.scope(options.dialog.as_ref(), version, deadline) {
                Ok(scope) => self.route(item, &options, scope, &send).await,
                Err(failure) => Err(failure.into()),
            };
            let outcome = res.as_ref().err().map_or("success", |it| it.error.kind.as_str());
            let duration = guard.end(outcome);
            tracing::info!(outcome, ?duration, "request finished");
            res
        }
        .instrument(span)
        .await
    }

    /// Sends a request for an item of a server, or of the only server that can have it.
    pub(super) async fn route_to<T>(
        &self,
        item: LookupItem<'_>,
        server: Option<&ServerId>,
        options: &RequestOptions,
        scope: RequestScope<'_>,
        send: &SendRequest<T>,
    ) -> Result<(T, ServerId), RequestError> {
        for _ in 0..MAX_ATTEMPTS {
            let routing_table = self.routing(scope.version);
            let (route, name) = find_item(&routing_table, item, server)?;
            let id = &route.server.spec.id;
            tracing::Span::current().record("server", id.as_str());
            let own_instance = match item {
                LookupItem::Task(task) => self.begin_task_request(id, task, scope.dialog),
                LookupItem::Prompt(_)
                | LookupItem::Resource(_)
                | LookupItem::Template(_)
                | LookupItem::Skills => None,
            };
            let request = match own_instance {
                Some(request) => request,
                None => match self.begin_request(route, || item.label(), scope).await {
                    Ok(request) => request,
                    Err(RouteError::Retired) => continue,
                    Err(RouteError::Refused(failure)) => return Err(RequestError::from(failure).on(id)),
                },
            };
            let mut call_options = CallOptions::default();
            call_options.retry = RetryPolicy::Once;
            call_options.progress = options.progress.clone();
            call_options.trace = self.trace_for(options.trace.as_ref());
            call_options.caller = self.caller(options.caller.as_ref(), scope.dialog);
            call_options.meta = options.meta.clone();
            call_options.extra_params = options.extra_params.clone();
            call_options.input = options.input;
            let send = |options| send(&request.instance.session, &name, options);
            let outcome = scope.deadline.send(&route.server, call_options, send).await;
            return outcome.map(|value| (value, id.clone())).map_err(|it| it.on(id));
        }
        Err(being_replaced(&item.label()).into())
    }
}

fn require_tasks(session: &Session) -> Result<(), CallError> {
    match session.supports_tasks() {
        true => Ok(()),
        false => Err(CallError::Unsupported("the server has no tasks".to_owned())),
    }
}

/// Whether this outcome of a request about a task tells that the task has ended.
fn is_task_over(method: TaskMethod, outcome: &Result<RawResult, RequestError>) -> bool {
    match (method, outcome) {
        // The result of a task may be the server's JSON-RPC error.
        (TaskMethod::Result, Err(error)) => error.rpc.is_some(),
        (TaskMethod::Result, Ok(_)) => true,
        (TaskMethod::Get | TaskMethod::Update | TaskMethod::Cancel, Ok(raw)) => {
            raw.result.read().is_ok_and(|task: Task| task.status.is_final())
        }
        (TaskMethod::Get | TaskMethod::Update | TaskMethod::Cancel, Err(_)) => false,
    }
}

pub(super) fn raw((response, server): (CallResponse<RawJson>, ServerId)) -> RawResult {
    RawResult { result: response.value, server, request_id: Some(response.request_id) }
}

/// The catalog item of a completion.
fn completion_item(of: &CompletionReference) -> LookupItem<'_> {
    match of {
        CompletionReference::Prompt(name) => LookupItem::Prompt(name),
        CompletionReference::ResourceTemplate(uri) => LookupItem::Template(uri),
    }
}

/// The same reference with the server's own name of the prompt.
fn with_server_name(of: &CompletionReference, name: &str) -> CompletionReference {
    match of {
        CompletionReference::Prompt(_) => CompletionReference::Prompt(name.to_owned()),
        CompletionReference::ResourceTemplate(_) => CompletionReference::ResourceTemplate(name.to_owned()),
    }
}

/// Checks that the required arguments of a prompt are present.
fn check_required_arguments(prompt: &ExposedPrompt, arguments: &RawJson) -> Result<(), HostError> {
    let given: serde_json::Map<String, serde_json::Value> = arguments.read().unwrap_or_default();
    let missing: Vec<String> = prompt
        .prompt
        .arguments()
        .into_iter()
        .filter(|it| it.required && !given.contains_key(&it.name))
        .map(|it| format!("'{}'", display_name(&it.name)))
        .collect();
    let name = prompt.name.as_str();
    match missing.as_slice() {
        [] => Ok(()),
        names => {
            let noun = if names.len() == 1 { "argument" } else { "arguments" };
            let message = format!("Prompt '{name}' needs the {noun} {}", names.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}
