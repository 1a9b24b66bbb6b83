//! A request with its context: what the handlers of all methods share.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use mcp_host_model::{Era, Method, RawJson, RpcError, ServerId, code};
use mcp_host_runtime::RequestOptions;
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
use crate::protocol::frame::Request;
use crate::protocol::message_writer::{json_string, notification};
use crate::session::pending_input;
use crate::session::request_client::RequestClient;
use crate::session::request_handlers::{InputRequest, InputRequestHandler, SessionRequestHandler};

/// A request with its context.
pub(crate) struct RequestContext<'a> {
    pub(crate) gateway: &'a GatewayInner,
    pub(crate) caller: &'a RequestClient,
    pub(crate) request: &'a Request,
    /// The queue of server requests that a modern client answers by repeating its call.
    pub(crate) input_requests: Option<mpsc::Sender<InputRequest>>,
    /// What it refers to. Found once, so that all steps of the request have the same lists.
    pub(super) resolution: OnceLock<Resolution>,
    /// The server, once it is known, if there is an audit log.
    pub(super) server: OnceLock<ServerId>,
    /// The counters of the called tool, once it is known.
    pub(super) tool_counters: OnceLock<Arc<CallCounters>>,
    /// Whether the request was refused because of a rate limit.
    pub(super) is_limited: AtomicBool,
}

impl<'a> RequestContext<'a> {
    /// A context whose server requests go to the client's session, if any.
    pub(crate) fn new(
        gateway: &'a GatewayInner,
        caller: &'a RequestClient,
        request: &'a Request,
    ) -> RequestContext<'a> {
        RequestContext {
            gateway,
            caller,
            request,
            input_requests: None,
            resolution: OnceLock::new(),
            server: OnceLock::new(),
            tool_counters: OnceLock::new(),
            is_limited: AtomicBool::new(false),
        }
    }

    /// The same context with what the request refers to, if that is known.
    pub(super) fn with_resolution(mut self, resolution: Option<Resolution>) -> RequestContext<'a> {
        self.resolution = resolution.map(OnceLock::from).unwrap_or_default();
        self
    }
}

impl RequestContext<'_> {
    /// A required string parameter.
    pub(super) fn text(&self, name: &str) -> Result<Cow<'_, str>, RpcError> {
        self.request.params.text(name).ok_or_else(|| {
            RpcError::new(code::INVALID_PARAMS, format!("the parameter `{name}` must be a string"))
        })
    }

    /// The name and the arguments of a tool or prompt. Arguments default to an empty object.
    pub(super) fn name_and_arguments(&self) -> Result<(Cow<'_, str>, RawJson), RpcError> {
        let name = self.text("name")?;
        let arguments = self.request.params.get("arguments").filter(|arguments| arguments.as_str() != "null");
        let arguments = arguments.cloned().unwrap_or_else(RawJson::empty_object);
        if !arguments.is_object() {
            return Err(RpcError::new(code::INVALID_PARAMS, "`arguments` must be a JSON object"));
        }
        Ok((name, arguments))
    }

    /// What the request refers to.
    pub(super) fn resolution(&self) -> &Resolution {
        let RequestClient { scope, features, .. } = self.caller;
        self.resolution.get_or_init(|| self.gateway.resolve(scope, features.audience, self.request))
    }

    /// The lists that the client sees.
    pub(super) fn listing(&self) -> &Listing {
        &self.resolution().listing
    }

    /// The lists that the client sees now, for the result of a request that may have taken long.
    pub(super) fn latest_listing(&self) -> Arc<Listing> {
        self.gateway.listing(&self.caller.scope, self.caller.features.audience)
    }

    /// Options of a host request for anything but a tool, with the parameters that are forwarded.
    pub(super) fn request_options(
        &self,
        server: Option<ServerId>,
        name: &str,
        handled: &[&str],
    ) -> Result<RequestOptions, RpcError> {
        let mut options = RequestOptions::default();
        options.dialog = self.caller.dialog_id();
        options.context = self.call_context(server.as_ref(), name, handled)?;
        options.server = server;
        Ok(options)
    }

    /// The context of a host request, with the parameters that are forwarded.
    pub(super) fn call_context(
        &self,
        server: Option<&ServerId>,
        name: &str,
        handled: &[&str],
    ) -> Result<CallContext, RpcError> {
        let mut context = self.task_context();
        context.progress = self.progress_handler();
        context.meta = self.request.meta().forwarded.clone();
        context.extra_params = self.extra_params(server, name, handled)?;
        context.input = self.input_handling();
        Ok(context)
    }

    /// The context of a host request that forwards nothing of the client's parameters.
    pub(super) fn task_context(&self) -> CallContext {
        let mut context = CallContext::default();
        context.trace = self.request.meta().trace.clone();
        context.caller = Some(self.upstream_caller());
        context
    }

    /// The parameters that are forwarded to the server: all but those that the gateway has `handled`, and
    /// `inputResponses` only if the server requested input.
    fn extra_params(
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
        let may_respond = self.caller.era() == Era::Modern
            && self.may_need_input()
            && server.is_none_or(|server| self.resolution().era(server) != Some(Era::Legacy));
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

    /// The server's state, from the sealed state that the client sent. If the host has yet to find the server, it is
    /// one that issued the state.
    fn unseal(&self, server: Option<&ServerId>, name: &str, sealed: &str) -> Option<String> {
        let open = |server: &ServerId| {
            self.gateway.sealer.open(&self.state_binding(server, name), sealed).map(str::to_owned)
        };
        let snapshot = &self.resolution().snapshot;
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
        let RequestClient { features, sender, session, owner, .. } = self.caller;
        let supported = features.supported_requests;
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
        caller.capabilities = features.upstream_capabilities.clone();
        Arc::new(caller)
    }

    /// Forwards log messages and notifications of servers while the request runs.
    fn event_handler(&self) -> OnServerEvent {
        let request_threshold = self.caller.log_level(self.request.meta());
        let (sender, session) = (self.caller.sender.clone(), self.caller.session.clone());
        Arc::new(move |event| {
            let message = match event {
                ServerEvent::Log(LogMessage { level, raw, .. }) => {
                    // A session can change its level while the request runs.
                    let session_threshold = session.as_ref().and_then(|session| session.log_level());
                    session_threshold
                        .or(request_threshold)
                        .is_some_and(|threshold| level.is_none_or(|level| level >= threshold))
                        .then(|| notification(Method::LogMessage.as_str(), raw.as_str()))
                }
                ServerEvent::Notification { method, params } => {
                    let params = params.unwrap_or_else(RawJson::empty_object);
                    let is_forwarded = watch::is_forwarded(&method, &params);
                    is_forwarded.then(|| notification(method.as_str(), params.as_str()))
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
        let token = self.request.meta().progress_token.clone()?;
        let sender = self.caller.sender.clone();
        Some(Arc::new(move |progress: Progress| {
            let Progress { progress, total, message, .. } = progress;
            let total = total.map(|total| format!(r#","total":{total}"#)).unwrap_or_default();
            let message =
                message.map(|message| format!(r#","message":{}"#, json_string(&message))).unwrap_or_default();
            let token = token.as_str();
            let params = format!(r#"{{"progressToken":{token},"progress":{progress}{total}{message}}}"#);
            // A client that does not read loses progress.
            let _ = sender.send(notification(Method::Progress.as_str(), &params));
        }))
    }
}

/// The start of a client's text, for messages: at most `max_chars` characters, without control characters.
pub(super) fn printable(text: &str, max_chars: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(max_chars).collect()
}
