//! Handles a request by its method.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use mcp_host_model::{Era, Method, MethodName, RawJson, ResultKind, ResultTypeMember, RpcError, code};
use tokio::time::Instant;
use tracing::Instrument;

use crate::gateway::GatewayInner;
use crate::lists::definitions::CatalogList;
use crate::lists::resolution::Resolution;
use crate::methods::call_record::CallRecord;
use crate::methods::context::{RequestContext, to_printable};
use crate::methods::initialize;
use crate::methods::request_span::request_span;
use crate::protocol::frame::{ClientNotification, ClientRequest};
use crate::protocol::json_splice;
use crate::protocol::params::MessageParams;
use crate::protocol::result_body::{CheckedResult, HandlerError, HandlerResult, ResultBody};
use crate::session::pending_input::{PendingInputs, RunningCall};
use crate::session::request_client::RequestClient;
use crate::session::supported_requests::SupportedRequests;

/// Maximum length of a client's method name in a message, in characters.
const MAX_METHOD_CHARS: usize = 80;

impl GatewayInner {
    /// Handles a request of a client without a session. A call that needs input returns an `input_required` result, and
    /// continues when the client repeats it with the input. `resolution` is what the request refers to, if that is
    /// known.
    pub(crate) async fn handle_stateless(
        self: &Arc<GatewayInner>,
        client: RequestClient,
        request: ClientRequest,
        resolution: Option<Resolution>,
    ) -> HandlerResult {
        let may_need_input = request.method.as_known().is_some_and(Method::can_require_input);
        let state = request.params.text("requestState").filter(|state| PendingInputs::is_own_state(state));
        let state = state.filter(|_| may_need_input).map(Cow::into_owned);
        let supports_requests = client.features.supported_requests != SupportedRequests::default();
        if state.is_some() || (may_need_input && supports_requests) {
            // Boxed, because it is rare and would enlarge the future of every request.
            return Box::pin(self.handle_with_input(client, request, resolution, state)).await;
        }
        let context = RequestContext::new(self, &client, &request);
        // Pinned in place, because moving a large future copies it.
        let handled = pin!(self.handle(context.with_resolution(resolution)));
        handled.await
    }

    /// Starts a call in a task of its own, or continues the one with this state.
    async fn handle_with_input(
        self: &Arc<GatewayInner>,
        client: RequestClient,
        request: ClientRequest,
        resolution: Option<Resolution>,
        state: Option<String>,
    ) -> HandlerResult {
        let principal = client.principal.clone();
        let call = if let Some(state) = state {
            let responses = request.params.get("inputResponses");
            self.pending_inputs.take(&state, &principal, responses, Instant::now())?
        } else {
            let gateway = Arc::clone(self);
            RunningCall::start(|input_requests| async move {
                let context = RequestContext::new(&gateway, &client, &request).with_resolution(resolution);
                let context = RequestContext { input_requests: Some(input_requests), ..context };
                gateway.handle(context).await
            })
        };
        self.pending_inputs.advance(call, &principal, self.options.bounds.server_request_timeout).await
    }

    /// Handles a request, and records it. `initialize` and `subscriptions/listen` are handled elsewhere.
    pub(crate) async fn handle(&self, context: RequestContext<'_>) -> HandlerResult {
        let span = request_span(&context);
        let record = CallRecord::start(&context, span.clone());
        // Pinned in place, because moving a large future copies it.
        let dispatched = pin!(self.dispatch(&context));
        let result = dispatched.instrument(span).await;
        record.end(&result);
        result.map_err(|error| HandlerError { error, retry_after: context.retry_after.get().copied() })
    }

    /// Calls the handler of the method, and adds the members of results that the client's era requires.
    async fn dispatch(&self, context: &RequestContext<'_>) -> Result<ResultBody, RpcError> {
        context.admit_client()?;
        self.wait_for_startup().await;
        let method = &context.request.method;
        let Some(known) = method.as_known() else { return Err(unknown_method(method)) };
        let era = context.client.era();
        let CheckedResult { object, info } = match (known, era) {
            (Method::ListTools, _) => return context.list_page(CatalogList::Tools),
            (Method::ListPrompts, _) => return context.list_page(CatalogList::Prompts),
            (Method::ListResources, _) => return context.list_page(CatalogList::Resources),
            (Method::ListResourceTemplates, _) => return context.list_page(CatalogList::Templates),
            (Method::Discover, Era::Modern) => {
                return Ok(initialize::discover_result(self, &context.client.scope).into());
            }
            (Method::CallTool, _) => context.call_tool().await?,
            // Boxed, because they are rarer than calls and would enlarge the future of every request.
            (Method::GetPrompt, _) => Box::pin(context.get_prompt()).await?,
            (Method::ReadResource, _) => Box::pin(context.read_resource()).await?,
            (Method::Complete, _) => Box::pin(context.complete()).await?,
            (Method::ListSkills, _) => Box::pin(context.list_skills()).await?,
            (Method::GetSkill | Method::ReadDirectory, _) => {
                Box::pin(context.handle_skill_request(known)).await?
            }
            (Method::GetTask | Method::CancelTask, _)
            | (Method::UpdateTask, Era::Modern)
            | (Method::GetTaskResult, Era::Legacy) => Box::pin(context.handle_task_request(known)).await?,
            (Method::Ping, Era::Legacy) => RawJson::empty_object().into(),
            (Method::SetLevel, Era::Legacy) => Box::pin(context.set_log_level()).await?.into(),
            (Method::Subscribe, Era::Legacy) => Box::pin(context.subscribe()).await?.into(),
            (Method::Unsubscribe, Era::Legacy) => Box::pin(context.unsubscribe()).await?.into(),
            _ => return Err(unknown_method(method)),
        };
        let body = match (era, info.result_type) {
            (Era::Legacy, _) => object.into(),
            (Era::Modern, _) if info.kind == ResultKind::InputRequired => object.into(),
            (Era::Modern, _) if known.has_cacheable_result() => {
                let complete = ("resultType", r#""complete""#);
                let defaults = [complete, ("ttlMs", "0"), ("cacheScope", r#""private""#)];
                json_splice::with_defaults(&object, &defaults).into()
            }
            (Era::Modern, ResultTypeMember::Missing) => ResultBody::complete(object),
            (Era::Modern, ResultTypeMember::Present | ResultTypeMember::Ignored) => object.into(),
        };
        Ok(body.with_kind(info.kind))
    }

    /// Handles a notification of a client with a session.
    pub(crate) fn handle_notification(&self, client: &RequestClient, notification: &ClientNotification) {
        let Some(session) = &client.session else { return };
        match notification.method.as_known() {
            Some(Method::Cancelled) => {
                if let Some(id) = cancelled_id(&notification.params) {
                    session.running.cancel(id);
                }
            }
            Some(Method::RootsListChanged) => self.host.notify_roots_changed(session.dialog.id()),
            _ => {
                tracing::debug!(method = notification.method.as_str(), "ignoring a notification of a client")
            }
        }
    }
}

/// The id of the request that a `notifications/cancelled` cancels.
pub(crate) fn cancelled_id(params: &MessageParams) -> Option<&RawJson> {
    params.get("requestId")
}

/// The error for an unknown method.
fn unknown_method(method: &MethodName) -> RpcError {
    RpcError::new(
        code::METHOD_NOT_FOUND,
        format!("Method not found: {}", to_printable(method.as_str(), MAX_METHOD_CHARS)),
    )
}
