//! Handles requests: one file for each family of methods, independent of the transport.

pub(crate) mod call_record;
mod completion;
pub(crate) mod initialize;
mod lists;
mod prompts;
mod resources;
mod server_result;
mod skills;
pub(crate) mod subscriptions;
mod task_watch;
mod tasks;
mod tools;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use call_record::CallRecord;
use mcp_host_model::{Era, RawJson, RpcError, ServerId, code};
use mcp_host_runtime::{RequestOptions, TaskMethod};
use mcp_host_transport::{
    Handlers, InputHandling, LogMessage, OnProgress, OnServerEvent, Progress, RawRequestHandler, ServerEvent,
    SkillMethod,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::gateway::GatewayInner;
use crate::lists::definitions::ListKind;
use crate::lists::listing::Listing;
use crate::metrics::call_counters::CallCounters;
use crate::notifications::watch;
use crate::protocol::frame::{Notification, Request};
use crate::protocol::json_splice;
use crate::protocol::message_writer::{json_string, notification};
use crate::protocol::params::Params;
use crate::session::caller::Caller;
use crate::session::pending_input::{self, PendingInputs, RunningCall};
use crate::session::request_handlers::{InputRequest, InputRequestHandler, SessionRequestHandler};
use crate::session::supported_requests::SupportedRequests;

/// How long a client may cache a list, in milliseconds. A subscription reports changes sooner.
const LIST_TTL_MS: u32 = 5000;

/// A request that is being handled.
pub(crate) type RequestFuture<'a> = Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send + 'a>>;

/// A request with its context.
pub(crate) struct RequestContext<'a> {
    pub(crate) gateway: &'a GatewayInner,
    pub(crate) caller: &'a Caller,
    pub(crate) request: &'a Request,
    /// The queue of server requests that a modern client answers by repeating its call.
    pub(crate) input_requests: Option<mpsc::Sender<InputRequest>>,
    /// The server, once it is known, if there is an audit log.
    server: OnceLock<ServerId>,
    /// The counters of the called tool, once it is known.
    tool_counters: OnceLock<Arc<CallCounters>>,
    /// Whether the request was refused because of a rate limit.
    is_limited: AtomicBool,
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
        if !may_need_input(&request.method) {
            return self.handle_boxed(&caller, &request).await;
        }
        let principal = caller.principal.clone();
        let state = request.params.text("requestState").filter(|state| PendingInputs::is_ours(state));
        let state = state.map(Cow::into_owned);
        let call = if let Some(state) = state {
            let responses = request.params.get("inputResponses");
            self.pending_inputs.take(&state, &principal, responses, Instant::now())?
        } else if caller.features.supported_requests() == SupportedRequests::default() {
            return self.handle_boxed(&caller, &request).await;
        } else {
            let gateway = Arc::clone(self);
            RunningCall::start(|input_requests| async move {
                let context = RequestContext::new(&gateway, &caller, &request);
                let context = RequestContext { input_requests: Some(input_requests), ..context };
                gateway.handle(context).await
            })
        };
        self.pending_inputs.advance(call, &principal, self.options.bounds.server_request_timeout).await
    }

    /// Handles a request without boxing the future.
    pub(crate) async fn handle(&self, context: RequestContext<'_>) -> Result<Bytes, RpcError> {
        let record = CallRecord::start(&context);
        let result = self.dispatch(&context).await;
        record.end(&result);
        result
    }

    async fn dispatch(&self, context: &RequestContext<'_>) -> Result<Bytes, RpcError> {
        context.admit_client()?;
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
            ("skills/list", _) => context.list_skills().await?,
            ("skills/get", _) => context.skill_request(SkillMethod::Get).await?,
            ("resources/directory/read", _) => context.skill_request(SkillMethod::ReadDirectory).await?,
            ("tasks/get", _) => context.task_request(TaskMethod::Get).await?,
            ("tasks/cancel", _) => context.task_request(TaskMethod::Cancel).await?,
            ("tasks/update", Era::Modern) => context.task_request(TaskMethod::Update).await?,
            ("tasks/result", Era::Legacy) => context.task_request(TaskMethod::Result).await?,
            ("ping", Era::Legacy) => RawJson::empty_object(),
            ("logging/setLevel", Era::Legacy) => context.set_log_level().await?,
            ("resources/subscribe", Era::Legacy) => context.subscribe().await?,
            ("resources/unsubscribe", Era::Legacy) => context.unsubscribe().await?,
            _ => return Err(unknown_method(method)),
        };
        if era == Era::Legacy {
            return Ok(result.into_bytes());
        }
        let mut defaults = vec![("resultType", r#""complete""#)];
        if has_cache_members(method) && !is_input_required(&result) {
            defaults.extend([("ttlMs", "0"), ("cacheScope", r#""private""#)]);
        }
        Ok(json_splice::with_defaults(&result, &defaults))
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
            "notifications/roots/list_changed" => self.host.roots_changed(session.dialog.id()),
            _ => tracing::debug!(method = &*notification.method, "ignoring a notification of a client"),
        }
    }
}

/// Whether the result of this method says in the modern era how long it may be cached.
fn has_cache_members(method: &str) -> bool {
    matches!(method, "resources/read" | "skills/list" | "skills/get" | "resources/directory/read")
}

/// Whether a server may request input before it returns the result of this method.
fn may_need_input(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// The id of the request that a `notifications/cancelled` cancels.
pub(crate) fn cancelled_id(params: &Params) -> Option<&RawJson> {
    params.get("requestId")
}

/// The error for an unknown method.
fn unknown_method(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("Method not found: {}", printable(method, 80)))
}

/// The start of a client's text, for messages: at most `max_chars` characters, without control characters.
fn printable(text: &str, max_chars: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(max_chars).collect()
}

fn is_input_required(result: &RawJson) -> bool {
    memchr::memmem::find(result.as_bytes(), b"input_required").is_some()
        && json_splice::member(result, "resultType")
            .is_some_and(|kind| kind.to_text().as_deref() == Some("input_required"))
}

impl<'a> RequestContext<'a> {
    /// A context whose server requests go to the client's session, if any.
    pub(crate) fn new(
        gateway: &'a GatewayInner,
        caller: &'a Caller,
        request: &'a Request,
    ) -> RequestContext<'a> {
        RequestContext {
            gateway,
            caller,
            request,
            input_requests: None,
            server: OnceLock::new(),
            tool_counters: OnceLock::new(),
            is_limited: AtomicBool::new(false),
        }
    }
}

impl RequestContext<'_> {
    /// A required string parameter.
    fn text(&self, name: &str) -> Result<Cow<'_, str>, RpcError> {
        self.request.params.text(name).ok_or_else(|| {
            RpcError::new(code::INVALID_PARAMS, format!("the parameter `{name}` must be a string"))
        })
    }

    /// The name and the arguments of a tool or prompt. Arguments default to an empty object.
    fn name_and_arguments(&self) -> Result<(Cow<'_, str>, RawJson), RpcError> {
        let name = self.text("name")?;
        let arguments = self.request.params.get("arguments").filter(|arguments| arguments.as_str() != "null");
        let arguments = arguments.cloned().unwrap_or_else(RawJson::empty_object);
        if !arguments.is_object() {
            return Err(RpcError::new(code::INVALID_PARAMS, "`arguments` must be a JSON object"));
        }
        Ok((name, arguments))
    }

    /// The lists that the client sees.
    fn listing(&self) -> Arc<Listing> {
        self.gateway.listing(&self.caller.scope, self.caller.features.audience())
    }

    /// Options of a host request for anything but a tool, with the parameters that are forwarded.
    fn request_options(
        &self,
        server: Option<ServerId>,
        name: &str,
        handled: &[&str],
    ) -> Result<RequestOptions, RpcError> {
        Ok({
            let mut options = RequestOptions::default();
            options.dialog = self.caller.dialog_id();
            options.context.progress = self.progress_handler();
            options.context.trace = self.request.meta.trace.clone();
            options.context.caller = Some(self.upstream_caller());
            options.context.meta = self.request.meta.raw.clone();
            options.context.extra_params = self.extra_params(server.as_ref(), name, handled)?;
            options.context.input = self.input_handling();
            options.server = server;
            options
        })
    }

    /// The parameters that are forwarded to the server: all but those that the gateway has `handled`, and
    /// `inputResponses` only if the server requested input.
    fn extra_params(
        &self,
        server: Option<&ServerId>,
        name: &str,
        handled: &[&str],
    ) -> Result<Option<RawJson>, RpcError> {
        // Only a modern server requests input by its result, and only a modern client answers so.
        let may_respond = self.caller.era() == Era::Modern
            && self.may_need_input()
            && server.is_none_or(|server| self.gateway.era(server) != Some(Era::Legacy));
        // In the legacy era the member has no meaning.
        let sealed = self.request.params.get("requestState").filter(|_| self.caller.era() == Era::Modern);
        let state = match sealed {
            // A state that the gateway has not issued is refused before anything starts.
            Some(sealed) => {
                let sealed = sealed.to_text().filter(|_| may_respond);
                let state = sealed.and_then(|sealed| self.unseal(server, name, &sealed));
                Some(json_string(&state.ok_or_else(pending_input::unknown_state)?))
            }
            None => None,
        };
        let has_responses = may_respond && (server.is_some() || state.is_some());
        let mut members = Vec::new();
        for (key, value) in self.request.params.iter() {
            let value = match key {
                "_meta" => continue,
                key if handled.contains(&key) => continue,
                "requestState" => match &state {
                    Some(state) => state,
                    None => continue,
                },
                "inputResponses" if !has_responses => continue,
                _ => value.as_str(),
            };
            members.push(format!("{}:{value}", json_string(key)));
        }
        if members.is_empty() {
            return Ok(None);
        }
        let object = format!("{{{}}}", members.join(","));
        Ok(Some(RawJson::parse(object.into()).expect("members make an object")))
    }

    /// The server's state, from the sealed state that the client sent. If the host has yet to find the server, it is
    /// one that issued the state.
    fn unseal(&self, server: Option<&ServerId>, name: &str, sealed: &str) -> Option<String> {
        let open = |server: &ServerId| {
            self.gateway.sealer.open(&self.state_binding(server, name), sealed).map(str::to_owned)
        };
        let snapshot = self.gateway.snapshot();
        let mut servers = snapshot.servers.iter().filter_map(|status| ServerId::parse(&status.id).ok());
        server.map_or_else(|| servers.find_map(|server| open(&server)), open)
    }

    /// How a server's input request is handled. A modern client receives it as the result of its call.
    fn input_handling(&self) -> InputHandling {
        match self.caller.era() {
            Era::Legacy => InputHandling::ByHandlers,
            Era::Modern => InputHandling::ReturnToCaller,
        }
    }

    /// The caller as the host sees it.
    fn upstream_caller(&self) -> Arc<mcp_host_transport::Caller> {
        let Caller { features, sender, session, owner, .. } = self.caller;
        let supported = features.supported_requests();
        let limit = self.gateway.options.bounds.server_request_timeout;
        let dialog = self.caller.dialog.as_ref();
        let raw_requests: Option<Arc<dyn RawRequestHandler>> = match (session, &self.input_requests) {
            (Some(session), _) => {
                let (port, sender) = (Arc::clone(&session.port), sender.clone());
                let handler: Arc<dyn RawRequestHandler> =
                    Arc::new(SessionRequestHandler { supported, port, sender, limit });
                if let Some(dialog) = dialog {
                    dialog.set_latest(&handler);
                }
                Some(handler)
            }
            (None, Some(requests)) => {
                let calls = dialog.map(|dialog| Arc::clone(dialog.calls())).unwrap_or_default();
                calls.add(requests);
                let requests = requests.clone();
                Some(Arc::new(InputRequestHandler { supported, requests, calls, limit }))
            }
            (None, None) => None,
        };
        let mut handlers = Handlers::default();
        handlers.raw_requests = raw_requests;
        let mut caller = mcp_host_transport::Caller::new(*owner, handlers);
        caller.max_deadline_pause = limit;
        caller.on_event = Some(self.event_handler());
        caller.capabilities = features.upstream_capabilities();
        Arc::new(caller)
    }

    /// Forwards log messages and notifications of servers while the request runs.
    fn event_handler(&self) -> OnServerEvent {
        let request_threshold = self.caller.log_level(&self.request.meta);
        let (sender, session) = (self.caller.sender.clone(), self.caller.session.clone());
        Arc::new(move |event| {
            let message = match event {
                ServerEvent::Log(LogMessage { level, raw, .. }) => {
                    // A session can change its level while the request runs.
                    let session_threshold = session.as_ref().and_then(|session| session.log_level());
                    session_threshold
                        .or(request_threshold)
                        .is_some_and(|threshold| level.is_none_or(|level| level >= threshold))
                        .then(|| notification("notifications/message", raw.as_str()))
                }
                ServerEvent::Notification { method, params } => {
                    let params = params.unwrap_or_else(RawJson::empty_object);
                    let is_forwarded = watch::is_forwarded(&method, &params);
                    is_forwarded.then(|| notification(&method, params.as_str()))
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

    /// Forwards progress under the client's token, if it has one.
    fn progress_handler(&self) -> Option<OnProgress> {
        let token = self.request.meta.progress_token.clone()?;
        let sender = self.caller.sender.clone();
        Some(Arc::new(move |progress: Progress| {
            let Progress { progress, total, message, .. } = progress;
            let total = total.map(|total| format!(r#","total":{total}"#)).unwrap_or_default();
            let message =
                message.map(|message| format!(r#","message":{}"#, json_string(&message))).unwrap_or_default();
            let token = token.as_str();
            let params = format!(r#"{{"progressToken":{token},"progress":{progress}{total}{message}}}"#);
            // A client that does not read loses progress.
            let _ = sender.send(notification("notifications/progress", &params));
        }))
    }
}
