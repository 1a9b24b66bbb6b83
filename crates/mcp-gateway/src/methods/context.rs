//! The context of a request, which the handlers of all methods share.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use mcp_host_model::{Era, Method, RawJson, RpcError, ServerId, TraceContext, code};
use mcp_host_runtime::{CallRuling, RequestOptions};
use mcp_host_transport::{
    CallContext, Handlers, InputHandling, LogMessage, OnProgress, OnServerEvent, Progress, RawRequestHandler,
    ServerEvent,
};
use tokio::sync::mpsc;

use crate::gateway::GatewayInner;
use crate::lists::listing::Listing;
use crate::lists::resolution::Resolution;
use crate::metrics::call_counters::CallCounters;
use crate::notifications::watch;
use crate::protocol::frame::ClientRequest;
use crate::protocol::message_writer::{json_string, write_notification};
use crate::session::pending_input;
use crate::session::request_client::RequestClient;
use crate::session::request_handlers::{InputRequest, InputRequestHandler, SessionRequestHandler};

/// Maximum length of a client's text in messages and in the audit log, in characters.
pub(super) const MAX_NAME_CHARS: usize = 128;

/// A request with its client and the gateway, and what is found out while it is handled.
pub(crate) struct RequestContext<'a> {
    pub(crate) gateway: &'a GatewayInner,
    pub(crate) client: &'a RequestClient,
    pub(crate) request: &'a ClientRequest,
    /// The queue of server requests that a modern client answers by repeating its call.
    pub(crate) input_requests: Option<mpsc::Sender<InputRequest>>,
    /// What the request refers to. Found once, so that all steps of the request use the same lists.
    pub(super) resolution: OnceLock<Resolution>,
    /// The server, once it is known, if there is an audit log.
    pub(super) server: OnceLock<ServerId>,
    /// The counters of the called tool, once it is known.
    pub(super) tool_counters: OnceLock<Arc<CallCounters>>,
    /// The seconds after which the request can be tried again, if it was refused because of a rate limit.
    pub(super) retry_after: OnceLock<u64>,
    /// The rule that decided about the call, if there is an audit log.
    pub(super) ruling: OnceLock<CallRuling>,
}

impl<'a> RequestContext<'a> {
    /// A context whose server requests are sent to the client's session, if there is one.
    pub(crate) fn new(
        gateway: &'a GatewayInner,
        client: &'a RequestClient,
        request: &'a ClientRequest,
    ) -> RequestContext<'a> {
        RequestContext {
            gateway,
            client,
            request,
            input_requests: None,
            resolution: OnceLock::new(),
            server: OnceLock::new(),
            tool_counters: OnceLock::new(),
            retry_after: OnceLock::new(),
            ruling: OnceLock::new(),
        }
    }

    /// Sets what the request refers to, if that is known.
    pub(crate) fn with_resolution(mut self, resolution: Option<Resolution>) -> RequestContext<'a> {
        self.resolution = resolution.map(OnceLock::from).unwrap_or_default();
        self
    }
}

impl RequestContext<'_> {
    /// Returns a string parameter. Fails if it is missing or of another type.
    pub(super) fn required_text(&self, name: &str) -> Result<Cow<'_, str>, RpcError> {
        self.request.params.text(name).ok_or_else(|| {
            RpcError::new(code::INVALID_PARAMS, format!("the parameter `{name}` must be a string"))
        })
    }

    /// Returns the name and the arguments of a tool or prompt. Arguments default to an empty object.
    pub(super) fn name_and_arguments(&self) -> Result<(Cow<'_, str>, RawJson), RpcError> {
        let name = self.required_text("name")?;
        let arguments = self.request.params.get("arguments").filter(|arguments| arguments.as_str() != "null");
        let arguments = arguments.cloned().unwrap_or_else(RawJson::empty_object);
        if !arguments.is_object() {
            return Err(RpcError::new(code::INVALID_PARAMS, "`arguments` must be a JSON object"));
        }
        Ok((name, arguments))
    }

    /// What the request refers to, resolved at the first use.
    pub(super) fn resolution(&self) -> &Resolution {
        let RequestClient { scope, features, .. } = self.client;
        self.resolution.get_or_init(|| self.gateway.resolve(scope, features.audience, self.request))
    }

    /// The lists of the client.
    pub(super) fn listing(&self) -> &Listing {
        &self.resolution().listing
    }

    /// The lists of the client in the latest snapshot, for the result of a request that may have taken long.
    pub(super) fn latest_listing(&self) -> Arc<Listing> {
        self.gateway.listing(&self.client.scope, self.client.features.audience)
    }

    /// The options of a host request for anything but a tool call. `name` is the name of the prompt or the URI, and
    /// `handled` are the parameters that are not forwarded.
    pub(super) fn request_options(
        &self,
        server: Option<ServerId>,
        name: &str,
        handled: &[&str],
    ) -> Result<RequestOptions, RpcError> {
        let mut options = RequestOptions::default();
        options.dialog = self.client.dialog_id();
        options.context = self.call_context(server.as_ref(), name, handled)?;
        options.server = server;
        Ok(options)
    }

    /// The context of a host request, with the parameters that are forwarded: all but `handled`.
    pub(super) fn call_context(
        &self,
        server: Option<&ServerId>,
        name: &str,
        handled: &[&str],
    ) -> Result<CallContext, RpcError> {
        let mut context = self.base_context();
        context.progress = self.progress_handler();
        context.meta = self.request.meta().forwarded.clone();
        context.extra_params = self.forwarded_params(server, name, handled)?;
        context.input = self.input_handling();
        Ok(context)
    }

    /// The context of a host request without parameters that are forwarded: trace context and caller only.
    pub(super) fn base_context(&self) -> CallContext {
        let mut context = CallContext::default();
        context.trace = self.forwarded_trace();
        context.caller = Some(self.upstream_caller());
        context
    }

    /// The client's trace, for servers. `None` if spans are exported: then servers receive that of the span of the
    /// request to them.
    fn forwarded_trace(&self) -> Option<TraceContext> {
        let trace = self.request.meta().trace.clone();
        #[cfg(feature = "otel")]
        return trace.filter(|_| mcp_host_runtime::otel::current_trace().is_none());
        #[cfg(not(feature = "otel"))]
        trace
    }

    /// The parameters that are forwarded to the server: all but `handled`, `requestState` as the server created it, and
    /// `inputResponses` only if the server may have requested input.
    fn forwarded_params(
        &self,
        server: Option<&ServerId>,
        name: &str,
        handled: &[&str],
    ) -> Result<Option<RawJson>, RpcError> {
        let is_forwarded = |key: &str| key != "_meta" && !handled.contains(&key);
        // Most requests have no other parameters.
        if !self.request.params.iter().any(|(key, _)| is_forwarded(key)) {
            return Ok(None);
        }
        // Only a modern server requests input by its result, and only a modern client answers so.
        let may_respond = self.client.era() == Era::Modern
            && self.may_need_input()
            && server.is_none_or(|server| self.resolution().era(server) != Some(Era::Legacy));
        // In the legacy era the member has no meaning.
        let sealed = self.request.params.get("requestState").filter(|_| self.client.era() == Era::Modern);
        let state = match sealed {
            // A state that the gateway has not issued is refused before anything starts.
            Some(sealed) => {
                let sealed = sealed.to_text().filter(|_| may_respond);
                let state = sealed.and_then(|sealed| self.unseal_state(server, name, &sealed));
                Some(json_string(&state.ok_or_else(pending_input::unknown_state_error)?))
            }
            None => None,
        };
        let has_responses = may_respond && (server.is_some() || state.is_some());
        let mut members = Vec::new();
        for (key, value) in self.request.params.iter() {
            let value = match key {
                key if !is_forwarded(key) => continue,
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

    /// Opens the sealed state that the client sent, and returns the server's state. If the server is not known yet, it
    /// is the one for which the state was sealed.
    fn unseal_state(&self, server: Option<&ServerId>, name: &str, sealed: &str) -> Option<String> {
        let open = |server: &ServerId| {
            self.gateway.state_sealer.open(&self.state_binding(server, name), sealed).map(str::to_owned)
        };
        let snapshot = &self.resolution().snapshot;
        server.map_or_else(|| snapshot.server_ids().find_map(open), open)
    }

    /// How a server's input request is handled. A modern client receives it as the result of its call.
    fn input_handling(&self) -> InputHandling {
        match self.client.era() {
            Era::Legacy => InputHandling::ByHandlers,
            Era::Modern => InputHandling::ReturnToCaller,
        }
    }

    /// The caller of host requests: its handlers pass server requests and notifications to the client.
    fn upstream_caller(&self) -> Arc<mcp_host_transport::Caller> {
        let RequestClient { features, sender, session, caller_id, .. } = self.client;
        let supported = features.supported_requests;
        let timeout = self.gateway.options.bounds.server_request_timeout;
        let dialog = self.client.dialog.as_ref();
        let raw_requests: Option<Arc<dyn RawRequestHandler>> = match (session, &self.input_requests) {
            (Some(session), _) => {
                let (channel, sender) = (Arc::clone(&session.channel), sender.clone());
                let handler: Arc<dyn RawRequestHandler> =
                    Arc::new(SessionRequestHandler { supported, channel, sender, timeout });
                if let Some(dialog) = dialog {
                    dialog.set_latest_call(&handler);
                }
                Some(handler)
            }
            (None, Some(requests)) => {
                let calls = dialog.map(|dialog| Arc::clone(dialog.open_calls())).unwrap_or_default();
                calls.add(requests);
                let requests = requests.clone();
                Some(Arc::new(InputRequestHandler { supported, requests, calls, timeout }))
            }
            (None, None) => None,
        };
        let mut handlers = Handlers::default();
        handlers.raw_requests = raw_requests;
        let mut caller = mcp_host_transport::Caller::new(*caller_id, handlers);
        // The deadline of the call is paused while the client answers a server request.
        caller.max_deadline_pause = timeout;
        caller.on_event = Some(self.event_handler());
        caller.capabilities = features.upstream_capabilities.clone();
        Arc::new(caller)
    }

    /// The handler that forwards log messages and notifications of servers while the request runs.
    fn event_handler(&self) -> OnServerEvent {
        let request_threshold = self.client.log_level(self.request.meta());
        let (sender, session) = (self.client.sender.clone(), self.client.session.clone());
        Arc::new(move |event| {
            let message = match event {
                ServerEvent::Log(LogMessage { level, raw, .. }) => {
                    // A session can change its level while the request runs.
                    let session_threshold = session.as_ref().and_then(|session| session.log_level());
                    session_threshold
                        .or(request_threshold)
                        .is_some_and(|threshold| level.is_none_or(|level| level >= threshold))
                        .then(|| write_notification(Method::LogMessage.as_str(), raw.as_str()))
                }
                ServerEvent::Notification { method, params } => {
                    let params = params.unwrap_or_else(RawJson::empty_object);
                    let is_forwarded = watch::is_forwarded(&method, &params);
                    is_forwarded.then(|| write_notification(method.as_str(), params.as_str()))
                }
                // Progress has a handler of its own. Changes of lists and resources are reported elsewhere.
                _ => None,
            };
            if let Some(message) = message {
                // A client that does not read loses notifications.
                let _ = sender.try_send(message);
            }
        })
    }

    /// The handler that forwards progress under the client's token, if the request has one.
    fn progress_handler(&self) -> Option<OnProgress> {
        let token = self.request.meta().progress_token.clone()?;
        let sender = self.client.sender.clone();
        Some(Arc::new(move |progress: Progress| {
            let Progress { progress, total, message, .. } = progress;
            let total = total.map(|total| format!(r#","total":{total}"#)).unwrap_or_default();
            let message =
                message.map(|message| format!(r#","message":{}"#, json_string(&message))).unwrap_or_default();
            let token = token.as_str();
            let params = format!(r#"{{"progressToken":{token},"progress":{progress}{total}{message}}}"#);
            // A client that does not read loses progress.
            let _ = sender.try_send(write_notification(Method::Progress.as_str(), &params));
        }))
    }
}

/// Shortens a client's text to `max_chars` characters, and removes control characters.
pub(super) fn to_printable(text: &str, max_chars: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(max_chars).collect()
}
