//! Requests other than tool calls: prompts, resources, completions.
//!
//! They are routed like calls: to the shared instance or the dialog's leased one, in the requested generation. Items
//! that a filter hides cannot be requested. A resource that no list contains can be read, because servers may create
//! resources dynamically: from the named server, or else from the first server that has it.

use std::sync::Arc;

use mcp_host_model::{Completion, ErrorKind, Method, PromptResult, RawJson, ResourceResult, Task};
use mcp_host_registry::ExposedPrompt;
use mcp_host_transport::{
    CallError, CallOptions, CallResponse, CompletionArgument, CompletionReference, DEFAULT_TASK_TIMEOUT,
    Session,
};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::calls::deadline::CallDeadline;
use crate::calls::raw_result::{RawResult, RequestFailure};
use crate::calls::request_options::RequestOptions;
use crate::calls::resource_lookup::{LookupItem, find_prompt};
use crate::calls::resource_search::send_or_search;
use crate::calls::route::{CatalogVersion, InstanceRouter, SendRequest, ServerReply};
use crate::calls::tool_lookup::display_name;
use crate::error::HostError;
use crate::telemetry::metrics::SUCCESS;
use crate::telemetry::spans::{SpanGuard, record_code};

/// Sends requests other than tool calls.
pub(crate) struct RequestRouter {
    pub(crate) instances: InstanceRouter,
}

impl RequestRouter {
    /// Renders a prompt.
    pub(crate) async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<PromptResult, HostError> {
        self.check_prompt_arguments(name, arguments, &options, version).map_err(|it| it.error)?;
        let arguments = arguments.clone();
        let send: SendRequest<PromptResult> = Arc::new(move |session, name, options| {
            let arguments = arguments.clone();
            Box::pin(async move { session.get_prompt(name, &arguments, options).await.map(|it| it.value) })
        });
        let rendered = self.send(Method::GetPrompt, LookupItem::Prompt(name), options, version, send).await;
        rendered.map(|it| it.value).map_err(|it| it.error)
    }

    /// Renders a prompt and returns the raw result.
    pub(crate) async fn get_prompt_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        self.check_prompt_arguments(name, arguments, &options, CatalogVersion::Latest)?;
        let arguments = arguments.clone();
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(move |session, name, options| {
            let arguments = arguments.clone();
            Box::pin(async move { session.get_prompt_raw(name, &arguments, options).await })
        });
        self.send_raw(Method::GetPrompt, LookupItem::Prompt(name), options, send).await
    }

    /// Checks the arguments of a prompt. A missing prompt is no error here: sending the request fails.
    fn check_prompt_arguments(
        &self,
        name: &str,
        arguments: &RawJson,
        options: &RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<(), RequestFailure> {
        let routing_table = self.instances.routing_table(version);
        let Ok(prompt) = find_prompt(&routing_table, name, options.server.as_ref()) else { return Ok(()) };
        let to_failure = |it: HostError| RequestFailure::from(it).with_server(&prompt.server);
        check_required_arguments(prompt, arguments).map_err(to_failure)
    }

    /// Reads a resource.
    pub(crate) async fn read_resource(
        &self,
        uri: &str,
        options: RequestOptions,
        version: CatalogVersion<'_>,
    ) -> Result<ResourceResult, HostError> {
        let send: SendRequest<ResourceResult> =
            Arc::new(|session, uri, options| Box::pin(session.read_resource(uri, options)));
        let read = self.send(Method::ReadResource, LookupItem::Resource(uri), options, version, send).await;
        read.map(|it| it.value).map_err(|it| it.error)
    }

    /// Reads a resource and returns the raw result.
    pub(crate) async fn read_resource_raw(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        let send: SendRequest<CallResponse<RawJson>> =
            Arc::new(|session, uri, options| Box::pin(session.read_resource_raw(uri, options)));
        self.send_raw(Method::ReadResource, LookupItem::Resource(uri), options, send).await
    }

    /// Completes an argument.
    pub(crate) async fn complete(
        &self,
        reference: &CompletionReference,
        argument: &CompletionArgument,
        options: RequestOptions,
    ) -> Result<Completion, HostError> {
        let request = (reference.clone(), argument.clone());
        let send: SendRequest<Completion> = Arc::new(move |session, name, options| {
            let (reference, argument) = request.clone();
            Box::pin(async move {
                session.complete(&with_server_name(&reference, name), &argument, options).await
            })
        });
        let (item, version) = (completion_item(reference), CatalogVersion::Latest);
        let completed = self.send(Method::Complete, item, options, version, send).await;
        completed.map(|it| it.value).map_err(|it| it.error)
    }

    /// Completes an argument and returns the raw result.
    pub(crate) async fn complete_raw(
        &self,
        reference: &CompletionReference,
        argument: &CompletionArgument,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        let request = (reference.clone(), argument.clone());
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(move |session, name, options| {
            let (reference, argument) = request.clone();
            Box::pin(async move {
                session.complete_raw(&with_server_name(&reference, name), &argument, options).await
            })
        });
        self.send_raw(Method::Complete, completion_item(reference), options, send).await
    }

    /// Sends a `tasks/…` request about a task of `options.server`, and returns the raw result. `input` has the
    /// responses to the task's requests for input.
    pub(crate) async fn send_task_request_raw(
        &self,
        method: Method,
        id: &str,
        input: Option<&RawJson>,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        let input = input.map(|it| format!(",\"inputResponses\":{}", it.as_str())).unwrap_or_default();
        let id_text = serde_json::Value::from(id);
        let params = format!("{{\"taskId\":{id_text}{input}}}");
        let params = RawJson::parse(params.into()).expect("its members are JSON");
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(move |session, id, options| {
            let params = params.clone();
            Box::pin(async move {
                require_tasks(session)?;
                session.request_raw(method, Some(id), &params, options).await
            })
        });
        let server = options.server.clone();
        let result = self.send_raw(method, LookupItem::Task(id), options, send).await;
        if let Some(server) = &server
            && is_task_over(method, &result)
        {
            self.instances.supervisor.shared.tasks.record_end(server, id, Instant::now());
        }
        result
    }

    /// Waits for the result of a task of `options.server`.
    pub(crate) async fn wait_for_task_result(
        &self,
        id: &str,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        let send: SendRequest<CallResponse<RawJson>> = Arc::new(|session, id, options| {
            Box::pin(async move {
                require_tasks(session)?;
                let task = session.get_task(id, &CallOptions::default()).await?;
                session.task_result_raw(&task, &options).await
            })
        });
        let options = RequestOptions { deadline: options.deadline.or(Some(DEFAULT_TASK_TIMEOUT)), ..options };
        let result = self.send_raw(Method::GetTaskResult, LookupItem::Task(id), options, send).await?;
        self.instances.supervisor.shared.tasks.record_end(&result.server, id, Instant::now());
        Ok(result)
    }

    /// Sends a request in the latest generation, and returns the raw result.
    pub(super) async fn send_raw(
        &self,
        method: Method,
        item: LookupItem<'_>,
        options: RequestOptions,
        send: SendRequest<CallResponse<RawJson>>,
    ) -> Result<RawResult, RequestFailure> {
        let ServerReply { value, server } =
            self.send(method, item, options, CatalogVersion::Latest, send).await?;
        let CallResponse { value: result, request_id, info, .. } = value;
        Ok(RawResult { result, info, server, request_id: Some(request_id), ruling: None })
    }

    /// Sends a request about an item, in a span of its own.
    pub(super) async fn send<T>(
        &self,
        method: Method,
        item: LookupItem<'_>,
        options: RequestOptions,
        version: CatalogVersion<'_>,
        send: SendRequest<T>,
    ) -> Result<ServerReply<T>, RequestFailure> {
        let span = tracing::info_span!(
            "request",
            method = method.as_str(),
            server = Empty,
            prompt = item.prompt(),
            uri = item.uri(),
            transport = Empty,
            version = Empty,
            address = Empty,
            port = Empty,
            code = Empty,
            outcome = Empty,
            duration = Empty
        );
        async {
            let guard = SpanGuard::begin();
            let deadline = CallDeadline::new(Instant::now(), options.deadline);
            let reply = match self.instances.new_scope(options.dialog.as_ref(), version, deadline) {
                Ok(scope) => send_or_search(&self.instances, item, &options, scope, &send).await,
                Err(failure) => Err(failure.into()),
            };
            let failure = reply.as_ref().err();
            record_code(&Span::current(), failure.and_then(|it| it.rpc.as_ref()).map(|rpc| rpc.code));
            let outcome = failure.map_or(SUCCESS, |it| it.error.kind.as_str());
            let duration = guard.end(outcome);
            tracing::info!(outcome, ?duration, "request finished");
            reply
        }
        .instrument(span)
        .await
    }
}

/// Fails if the server has no tasks.
fn require_tasks(session: &Session) -> Result<(), CallError> {
    match session.supports_tasks() {
        true => Ok(()),
        false => Err(CallError::Unsupported("the server has no tasks".to_owned())),
    }
}

/// Returns whether this outcome of a request about a task shows that the task has ended.
fn is_task_over(method: Method, outcome: &Result<RawResult, RequestFailure>) -> bool {
    match outcome {
        Ok(_) if method == Method::GetTaskResult => true,
        Ok(raw) => raw.result.read().is_ok_and(|task: Task| task.status.is_final()),
        // The result of a task may be the server's JSON-RPC error.
        Err(error) => method == Method::GetTaskResult && error.rpc.is_some(),
    }
}

/// Returns the item whose argument is completed.
fn completion_item(reference: &CompletionReference) -> LookupItem<'_> {
    match reference {
        CompletionReference::Prompt(name) => LookupItem::Prompt(name),
        CompletionReference::ResourceTemplate(uri) => LookupItem::Template(uri),
    }
}

/// Returns the same reference with the server's own name of the item.
fn with_server_name(reference: &CompletionReference, name: &str) -> CompletionReference {
    match reference {
        CompletionReference::Prompt(_) => CompletionReference::Prompt(name.to_owned()),
        CompletionReference::ResourceTemplate(_) => CompletionReference::ResourceTemplate(name.to_owned()),
    }
}

/// Checks that the required arguments of a prompt are present.
fn check_required_arguments(prompt: &ExposedPrompt, arguments: &RawJson) -> Result<(), HostError> {
    let present: serde_json::Map<String, serde_json::Value> = arguments.read().unwrap_or_default();
    let missing: Vec<String> = prompt
        .prompt
        .arguments()
        .into_iter()
        .filter(|it| it.required && !present.contains_key(&it.name))
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
