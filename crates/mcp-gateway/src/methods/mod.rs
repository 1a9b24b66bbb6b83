//! Handles requests: one file for each family of methods, independent of the transport.

mod completion;
pub(crate) mod initialize;
mod lists;
mod named;
mod prompts;
mod received;
mod resources;
mod tools;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use mcp_host::{DialogId, RequestOptions};
use mcp_model::{Era, RawJson, RpcError, ServerId, code};
use mcp_transport::{
    Handlers, InputHandling, LogMessage, OnProgress, OnServerEvent, Progress, RawRequestHandler, ServerEvent,
};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::gateway::GatewayInner;
use crate::limits::counters::{Counters, Outcome};
use crate::lists::listing::{ListKind, Listing};
use crate::notifications::watch;
use crate::protocol::frame::{Notification, Request};
use crate::protocol::params::Params;
use crate::protocol::{json_splice, response};
use crate::session::caller::Caller;
use crate::session::elicitation::{
    InputRequest, InputRequestHandler, SessionRequestHandler, SupportedRequests,
};
use crate::session::pending_input::{self, PendingInputs, RunningCall};

/// How long a client may cache a list, in milliseconds. A subscription reports changes sooner.
const LIST_TTL_MS: &str = "5000";

/// A request that is being handled.
pub(crate) type RequestFuture<'a> = Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send + 'a>>;

/// A request with its context.
pub(crate) struct RequestContext<'a> {
    pub(crate) gateway: &'a GatewayInner,
    pub(crate) caller: &'a Caller,
    pub(crate) request: &'a Request,
    /// The queue of server requests that a modern client answers by repeating its call.
    pub(crate) input_requests: Option<mpsc::Sender<InputRequest>>,
}

impl GatewayInner {
    /// Handles a request; `initialize` and `subscriptions/listen` are handled elsewhere. Returns the result, a JSON
    /// object.
    ///
    /// Boxed, to keep the caller's future small.
    pub(crate) fn handle_boxed<'a>(&'a self, caller: &'a Caller, request: &'a Request) -> RequestFuture<'a> {
        Box::pin(self.handle(RequestContext::new(self, caller, request)))
    }

    /// Handles a request of a client without a session. A call that needs input returns that as its result, and
    /// continues when the client repeats it with the input.
    pub(crate) async fn handle_stateless(
        self: &Arc<GatewayInner>,
        caller: Caller,
        request: Arc<Request>,
    ) -> Result<Bytes, RpcError> {
        let may_ask = matches!(&*request.method, "tools/call" | "prompts/get" | "resources/read");
        if !may_ask {
            return self.handle_boxed(&caller, &request).await;
        }
        let wait = self.options.bounds.server_request_timeout;
        let state = request.params.text("requestState").filter(|it| PendingInputs::is_ours(it));
        let principal = caller.principal.clone();
        if let Some(state) = state {
            let responses = request.params.get("inputResponses");
            let call = self.pending_inputs.take(&state, &principal, responses, Instant::now())?;
            return self.pending_inputs.advance(call, &principal, wait).await;
        }
        let supported = caller.features.supported_requests();
        if supported == SupportedRequests::default() {
            return self.handle_boxed(&caller, &request).await;
        }
        let (input_requests, laid_down) = pending_input::input_channel();
        let gateway = Arc::clone(self);
        let work: Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send>> = Box::pin(async move {
            let (gateway, caller, request, input_requests) =
                (&*gateway, &caller, &*request, Some(input_requests));
            gateway.handle(RequestContext { gateway, caller, request, input_requests }).await
        });
        self.pending_inputs.advance(RunningCall::start(work, laid_down), &principal, wait).await
    }

    /// Handles a request without boxing the future.
    pub(crate) async fn handle(&self, context: RequestContext<'_>) -> Result<Bytes, RpcError> {
        let counting = RequestTimer {
            counters: &self.counters,
            method: &context.request.method,
            begun: Instant::now(),
            outcome: None,
        };
        let answered = self.dispatch(&context).await;
        counting.end(if answered.is_ok() { Outcome::Success } else { Outcome::Error });
        answered
    }

    async fn dispatch(&self, context: &RequestContext<'_>) -> Result<Bytes, RpcError> {
        self.wait_for_startup().await;
        let method = &*context.request.method;
        let era = context.caller.era();
        let result = match (method, era) {
            ("tools/list", _) => return context.list(ListKind::Tools),
            ("prompts/list", _) => return context.list(ListKind::Prompts),
            ("resources/list", _) => return context.list(ListKind::Resources),
            ("resources/templates/list", _) => return context.list(ListKind::Templates),
            ("server/discover", Era::Modern) => {
                return Ok(initialize::discover_result(self, &context.caller.scope).into_bytes());
            }
            ("tools/call", _) => context.call_tool().await?,
            ("prompts/get", _) => context.get_prompt().await?,
            ("resources/read", _) => context.read_resource().await?,
            ("completion/complete", _) => context.complete().await?,
            ("ping", Era::Legacy) => RawJson::empty_object(),
            ("logging/setLevel", Era::Legacy) => context.set_log_level().await?,
            ("resources/subscribe", Era::Legacy) => context.subscribe().await?,
            ("resources/unsubscribe", Era::Legacy) => context.unsubscribe().await?,
            _ => return Err(unknown_method(method)),
        };
        let mut lacking = vec![("resultType", r#""complete""#)];
        if method == "resources/read" && !is_input_required(&result) {
            lacking.extend([("ttlMs", "0"), ("cacheScope", r#""private""#)]);
        }
        Ok(match era {
            Era::Modern => json_splice::with_defaults(&result, &lacking),
            Era::Legacy => result.into_bytes(),
        })
    }

    /// Handles a notification of a client with a session.
    pub(crate) fn handle_notification(&self, caller: &Caller, notification: &Notification) {
        let Some(session) = &caller.session else { return };
        match &*notification.method {
            "notifications/cancelled" => {
                if let Some(id) = cancelled_id(&notification.params) {
                    session.running.cancel(id);
                }
            }
            _ => tracing::debug!(method = &*notification.method, "a notification is ignored"),
        }
    }
}

/// The id of the request that a `notifications/cancelled` cancels.
pub(crate) fn cancelled_id(params: &Params) -> Option<&RawJson> {
    params.get("requestId")
}

/// Counts a request when it ends or is dropped.
struct RequestTimer<'a> {
    counters: &'a Counters,
    method: &'a str,
    begun: Instant,
    outcome: Option<Outcome>,
}

impl RequestTimer<'_> {
    fn end(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for RequestTimer<'_> {
    fn drop(&mut self) {
        let outcome = self.outcome.unwrap_or(Outcome::Cancelled);
        self.counters.request_ended(self.method, outcome, self.begun.elapsed());
    }
}

/// The error for an unknown method.
pub(crate) fn unknown_method(method: &str) -> RpcError {
    let method: String = method.chars().filter(|it| !it.is_control()).take(80).collect();
    RpcError::new(code::METHOD_NOT_FOUND, format!("Method not found: {method}"))
}

fn is_input_required(result: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct RawResultType<'a> {
        #[serde(borrow, rename = "resultType")]
        kind: Option<Cow<'a, str>>,
    }
    memchr::memmem::find(result.as_bytes(), b"input_required").is_some()
        && result
            .read::<RawResultType<'_>>()
            .ok()
            .and_then(|it| it.kind)
            .is_some_and(|it| it == "input_required")
}

impl<'a> RequestContext<'a> {
    /// A context whose server requests go to the client's session, if any.
    pub(crate) fn new(
        gateway: &'a GatewayInner,
        caller: &'a Caller,
        request: &'a Request,
    ) -> RequestContext<'a> {
        RequestContext { gateway, caller, request, input_requests: None }
    }
}

impl RequestContext<'_> {
    /// A required string parameter.
    fn text(&self, name: &str) -> Result<Cow<'_, str>, RpcError> {
        self.request.params.text(name).ok_or_else(|| {
            RpcError::new(code::INVALID_PARAMS, format!("the parameter `{name}` must be a string"))
        })
    }

    /// The lists that the client sees.
    fn listing(&self) -> Arc<Listing> {
        self.gateway.listing(&self.caller.scope)
    }

    /// A host request for something besides a tool, with the parameters that are forwarded.
    fn request_options(
        &self,
        server: Option<ServerId>,
        name: &str,
        own: &[&str],
    ) -> Result<RequestOptions, RpcError> {
        Ok(RequestOptions {
            dialog: self.dialog(),
            progress: self.progress_handler(),
            trace: self.request.meta.trace.clone(),
            caller: Some(self.upstream_caller()),
            meta: self.request.meta.raw.clone(),
            extra_params: self.extra_params(server.as_ref(), name, own)?,
            input: self.input_mode(),
            server,
            ..RequestOptions::default()
        })
    }

    /// The parameters that are forwarded to the server: all but `own`, and answers to its input request only if it
    /// made one.
    fn extra_params(
        &self,
        server: Option<&ServerId>,
        name: &str,
        own: &[&str],
    ) -> Result<Option<RawJson>, RpcError> {
        // Only a modern server requests input by its result, and only a modern client answers so.
        let may_answer = self.caller.era() == Era::Modern
            && self.may_need_input()
            && server.is_none_or(|it| self.gateway.era(it) != Some(Era::Legacy));
        let state = match self.request.params.get("requestState") {
            // A state that the gateway has not issued is refused before anything starts.
            Some(it) if self.caller.era() == Era::Modern => {
                let given = it.to_text().filter(|_| may_answer);
                Some(
                    given
                        .and_then(|it| self.unseal(server, name, &it))
                        .ok_or_else(pending_input::unknown_state)?,
                )
            }
            // In the legacy era the member has no meaning.
            Some(_) | None => None,
        };
        let answers = may_answer && (server.is_some() || state.is_some());
        let mut more = Vec::new();
        for (key, value) in self.request.params.iter() {
            let value = match key {
                "_meta" => continue,
                key if own.contains(&key) => continue,
                "requestState" => match &state {
                    Some(state) => Cow::Owned(response::text(state)),
                    None => continue,
                },
                "inputResponses" if !answers => continue,
                _ => Cow::Borrowed(value.as_str()),
            };
            more.push(format!("{}:{value}", response::text(key)));
        }
        if more.is_empty() {
            return Ok(None);
        }
        let object = format!("{{{}}}", more.join(","));
        Ok(Some(RawJson::parse(object.into()).expect("members make an object")))
    }

    /// The server's state, from the sealed state that the client sent.
    fn unseal(&self, server: Option<&ServerId>, name: &str, given: &str) -> Option<String> {
        let open =
            |it: &ServerId| self.gateway.sealer.open(&self.state_binding(it, name), given).map(str::to_owned);
        match server {
            Some(server) => open(server),
            // The host will find the server; it is one that issued the state.
            None => {
                let published = self.gateway.published();
                published
                    .servers
                    .iter()
                    .filter_map(|it| ServerId::parse(&it.id).ok())
                    .find_map(|it| open(&it))
            }
        }
    }

    /// How a server's input request is handled. A modern client receives it as the result of its call.
    fn input_mode(&self) -> InputHandling {
        match self.caller.era() {
            Era::Legacy => InputHandling::ByHandlers,
            Era::Modern => InputHandling::ReturnToCaller,
        }
    }

    /// The caller as the host sees it.
    fn upstream_caller(&self) -> Arc<mcp_transport::Caller> {
        let Caller { features, sender, session, owner, .. } = self.caller;
        let supported = features.supported_requests();
        let limit = self.gateway.options.bounds.server_request_timeout;
        let raw_requests: Option<Arc<dyn RawRequestHandler>> = match (session, &self.input_requests) {
            (Some(session), _) => {
                let (session, sender) = (Arc::clone(session), sender.clone());
                Some(Arc::new(SessionRequestHandler { supported, session, sender, limit }))
            }
            (None, Some(input_requests)) => {
                Some(Arc::new(InputRequestHandler { supported, requests: input_requests.clone(), limit }))
            }
            (None, None) => None,
        };
        let handlers = Handlers { raw_requests, ..Handlers::default() };
        let mut caller = mcp_transport::Caller::new(*owner, handlers);
        caller.max_deadline_pause = limit;
        caller.on_event = Some(self.event_handler());
        caller.capabilities = features.upstream_capabilities();
        Arc::new(caller)
    }

    /// Forwards log messages and notifications of servers while the request runs.
    fn event_handler(&self) -> OnServerEvent {
        let from = self.caller.log_level(&self.request.meta);
        let (sender, session) = (self.caller.sender.clone(), self.caller.session.clone());
        Arc::new(move |event| {
            let message = match event {
                ServerEvent::Log(LogMessage { level, raw, .. }) => {
                    // A session can change its level while the request runs.
                    let from = session.as_ref().and_then(|it| it.log_level()).or(from);
                    let loud = from.is_some_and(|from| level.is_none_or(|it| it >= from));
                    loud.then(|| response::notification("notifications/message", raw.as_str()))
                }
                ServerEvent::Notification { method, params } => {
                    let params = params.unwrap_or_else(RawJson::empty_object);
                    let is_forwarded = watch::is_forwarded(&method, &params);
                    is_forwarded.then(|| response::notification(&method, params.as_str()))
                }
                // Progress has a handler of its own. Changes of lists and resources are reported elsewhere.
                _ => None,
            };
            if let Some(message) = message {
                // A client that does not read loses notifications.
                let _ = sender.send(message);
            }
        })
    }

    fn dialog(&self) -> Option<DialogId> {
        self.caller.dialog_id()
    }

    /// Forwards progress under the client's token, if it has one.
    fn progress_handler(&self) -> Option<OnProgress> {
        let token = self.request.meta.progress_token.clone()?;
        let sender = self.caller.sender.clone();
        Some(Arc::new(move |it: Progress| {
            let Progress { progress, total, message } = it;
            let mut params = format!(r#"{{"progressToken":{},"progress":{progress}"#, token.as_str());
            if let Some(total) = total {
                params.push_str(&format!(r#","total":{total}"#));
            }
            if let Some(message) = message {
                params.push_str(&format!(r#","message":{}"#, response::text(&message)));
            }
            params.push('}');
            // A client that does not read loses progress.
            let _ = sender.send(response::notification("notifications/progress", &params));
        }))
    }
}
