//! Sends one request, including retries.
//!
//! A message is serialized once, into the buffer that the transport sends. This module decides whether a request is
//! sent again: always if the server certainly did not run it; if its response was lost, only if the caller allows it.

use std::sync::Arc;

use mcp_host_model::{Era, LogLevel, Method, MethodName, RawJson, RpcError, TraceContext};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::CallError;
use crate::error::Expiry;
use crate::error::request_error::RequestError;
use crate::rpc::deadline::time_after;
use crate::rpc::engine::CallSettings;
use crate::rpc::frame::{self, MessageWriter};
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::progress::OnProgress;
use crate::rpc::request_owner::OwnerHint;
use crate::session::negotiated::Negotiated;
use crate::session::negotiated::client_meta::modern_meta;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::request_params::{self, CallerParams};
use crate::session::requests::response::{CallResponse, RawResponse};
use crate::session::server_error::redacted_error;
use crate::session::state::Session;
use crate::transport::{Epoch, HeaderParam, MessageHead, OutboundMessage, RequestId, StreamError};

/// A request that has no id yet.
#[derive(Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: MethodName,
    pub(crate) params: Params<'a>,
    /// Additional parameters.
    pub(crate) extra_params: &'a str,
    /// The caller's `_meta` members.
    pub(crate) meta: &'a str,
    /// The log level that the caller asks for.
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) server_requests: ServerRequestPermission,
    pub(crate) options: &'a CallOptions,
    /// The start of the call for its caller.
    pub(crate) started_at: Instant,
}

/// Whether a server may send requests because of this request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerRequestPermission {
    /// It may; they go to the owner of the call.
    Granted,
    /// It must not: this is an internal request of the session, or a ping.
    Denied,
}

/// The parameters of a request.
#[derive(Clone, Copy)]
pub(crate) enum Params<'a> {
    /// A name and its arguments (an object).
    Named { name: &'a str, arguments: &'a RawJson },
    /// A URI.
    Uri(&'a str),
    /// JSON members without braces; may be empty. `name` is the tool, prompt or URI that they contain.
    Members { text: &'a str, name: Option<&'a str> },
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: Method, params: Params<'a>, options: &'a CallOptions) -> Request<'a> {
        Request {
            method: method.into(),
            params,
            extra_params: "",
            meta: "",
            log_level: None,
            server_requests: ServerRequestPermission::Denied,
            options,
            started_at: Instant::now(),
        }
    }

    /// A request of a caller, with the caller's additional parameters.
    pub(crate) fn for_caller(
        method: Method,
        params: Params<'a>,
        options: &'a CallOptions,
        caller_params: &'a CallerParams,
    ) -> Request<'a> {
        let CallerParams { meta, extra_params, log_level } = caller_params;
        let server_requests = ServerRequestPermission::Granted;
        Request {
            extra_params,
            meta,
            log_level: *log_level,
            server_requests,
            ..Request::new(method, params, options)
        }
    }

    fn owner_hint(&self) -> OwnerHint {
        match (self.server_requests, &self.options.context.caller) {
            (ServerRequestPermission::Denied, _) => OwnerHint::None,
            (ServerRequestPermission::Granted, None) => OwnerHint::Session,
            (ServerRequestPermission::Granted, Some(caller)) => OwnerHint::Caller(Arc::clone(caller)),
        }
    }

    fn message(
        &self,
        id: RequestId,
        epoch: Epoch,
        negotiated: &Negotiated,
        own_meta: Option<&str>,
        wants_progress: bool,
    ) -> OutboundMessage {
        let own_meta = own_meta.unwrap_or(&negotiated.meta);
        let size = self.params.size() + self.extra_params.len() + self.meta.len() + own_meta.len();
        let mut writer = MessageWriter::request(id, self.method.as_str(), size);
        self.params.write(&mut writer);
        writer.members(self.extra_params);
        let trace = self.options.context.trace.as_ref().map(trace_members).unwrap_or_default();
        // A trace in the caller's own `_meta` takes precedence over that of the options.
        let trace = if trace.is_empty() || !request_params::has_member(self.meta, "traceparent") {
            &*trace
        } else {
            ""
        };
        writer.meta(wants_progress.then_some(id), &[trace, self.meta, own_meta]);
        let is_modern = negotiated.version.era() == Era::Modern;
        let head = MessageHead {
            id: Some(id),
            method: Some(self.method.clone()),
            name: self.params.target_name().filter(|_| is_modern).map(Into::into),
            version: Some(negotiated.version),
            header_params: Vec::new(),
        };
        OutboundMessage { epoch, head, body: writer.finish() }
    }

    /// The header parameters of the tool that is called.
    fn header_params(&self, negotiated: &Negotiated) -> Result<Vec<HeaderParam>, CallError> {
        let Some(tool_headers) = &negotiated.tool_headers else { return Ok(Vec::new()) };
        if self.method != Method::CallTool {
            return Ok(Vec::new());
        }
        match &self.params {
            Params::Named { name, arguments } => {
                tool_headers.for_call(name, arguments).map_err(CallError::InvalidParams)
            }
            Params::Members { text, name: Some(name) } => {
                #[derive(Deserialize)]
                struct Call<'a> {
                    #[serde(borrow)]
                    arguments: Option<&'a RawValue>,
                }
                let members = format!("{{{text}}}");
                let call = serde_json::from_str::<Call<'_>>(&members).ok();
                let arguments = call.and_then(|it| it.arguments).map(RawJson::copy_of);
                let arguments = arguments.unwrap_or_else(RawJson::empty_object);
                tool_headers.for_call(name, &arguments).map_err(CallError::InvalidParams)
            }
            Params::Members { name: None, .. } | Params::Uri(_) => Ok(Vec::new()),
        }
    }
}

/// The `_meta` members of a trace context.
fn trace_members(trace: &TraceContext) -> String {
    let state = trace
        .tracestate()
        .map(|it| format!(",\"tracestate\":{}", frame::json_string(it)))
        .unwrap_or_default();
    format!("\"traceparent\":{}{state}", frame::json_string(trace.traceparent()))
}

impl<'a> Params<'a> {
    /// No parameters.
    pub(crate) const NONE: Params<'static> = Params::Members { text: "", name: None };

    /// JSON members without braces that contain no name.
    pub(crate) fn members(text: &'a str) -> Params<'a> {
        Params::Members { text, name: None }
    }

    fn size(&self) -> usize {
        match self {
            Params::Named { name, arguments } => 32 + name.len() + arguments.as_bytes().len(),
            Params::Uri(uri) => 16 + uri.len(),
            Params::Members { text, name: _ } => text.len(),
        }
    }

    /// Writes the parameters.
    fn write(&self, writer: &mut MessageWriter) {
        match self {
            Params::Named { name, arguments } => {
                writer.string_param("name", name);
                writer.json_param("arguments", arguments.as_str());
            }
            Params::Uri(uri) => writer.string_param("uri", uri),
            Params::Members { text, name: _ } => writer.members(text),
        }
    }

    /// The tool, prompt or URI that they name.
    fn target_name(&self) -> Option<&str> {
        match self {
            Params::Named { name, .. } | Params::Uri(name) => Some(name),
            Params::Members { name, .. } => *name,
        }
    }
}

impl Session {
    /// The progress callback with redaction.
    fn redacted_progress(&self, progress: Option<&OnProgress>) -> Option<OnProgress> {
        let (on_progress, dial) = (Arc::clone(progress?), Arc::clone(&self.dial));
        Some(Arc::new(move |it| on_progress(it.redacted(dial.as_ref()))))
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn request(&self, request: &Request<'_>) -> Result<RawResponse, CallError> {
        let (limit, idle_timeout) = {
            let limits = self.limits();
            (request.options.timeout.unwrap_or(limits.request), request.options.idle_timeout.or(limits.idle))
        };
        let mut reopened = false;
        let mut retried = false;
        loop {
            let negotiated = self.negotiated();
            let header_params = request.header_params(&negotiated)?;
            let epoch = self.epoch();
            let settings = CallSettings {
                timeout: Some(limit),
                started_at: Some(request.started_at),
                idle_timeout,
                progress: self.redacted_progress(request.options.context.progress.as_ref()),
                owner_hint: request.owner_hint(),
                ..CallSettings::default()
            };
            let own_meta = self.request_meta(request, &negotiated);
            let era = negotiated.version.era();
            let wants_progress = settings.progress.is_some() || settings.idle_timeout.is_some();
            let message = move |id| {
                let mut message =
                    request.message(id, epoch, &negotiated, own_meta.as_deref(), wants_progress);
                message.head.header_params = header_params;
                message
            };
            let (id, outcome) = self.connection.engine.call(settings, message).await;
            match outcome {
                RpcOutcome::Response { frame, is_error, payload_start } => {
                    let request_id = id.expect("a request with a response has an id");
                    let response = RawResponse { frame, payload_start, era, request_id };
                    return if is_error { Err(self.rpc_error(&response)) } else { Ok(response) };
                }
                RpcOutcome::Expired(expiry) => return Err(CallError::TimedOut(expiry)),
                RpcOutcome::Closed(ended) if id.is_none() && !retried => {
                    return Err(CallError::NotSent(ended));
                }
                RpcOutcome::Closed(ended) => return Err(CallError::Closed(ended)),
                RpcOutcome::StreamFailed(StreamError::Unreachable(error)) => {
                    return Err(self.noted(CallError::Unreachable(error)));
                }
                RpcOutcome::StreamFailed(StreamError::Refused(error)) => {
                    return Err(CallError::Refused(error));
                }
                RpcOutcome::StreamFailed(StreamError::Lost(error)) => match request.options.retry {
                    RetryPolicy::Once if !retried => retried = true,
                    RetryPolicy::Once | RetryPolicy::Never
                        if request.method.as_known().is_some_and(Method::is_read_only) =>
                    {
                        return Err(self.noted(CallError::ResponseLost(error)));
                    }
                    RetryPolicy::Once | RetryPolicy::Never => {
                        return Err(self.noted(CallError::OutcomeUnknown(error)));
                    }
                },
                RpcOutcome::StreamFailed(StreamError::TooLarge(limit)) => {
                    return Err(CallError::ResponseTooLarge(limit));
                }
                RpcOutcome::StreamFailed(StreamError::NotExecuted(_)) if reopened => {
                    return Err(CallError::Refused(RequestError::SessionLost));
                }
                RpcOutcome::StreamFailed(StreamError::NotExecuted(epoch)) => {
                    let deadline = time_after(request.started_at, limit);
                    // Boxed: it is rare, and every request's future would be four times as large.
                    match tokio::time::timeout_at(deadline, Box::pin(self.reopen(epoch))).await {
                        Ok(Ok(())) => reopened = true,
                        Ok(Err(error)) => return Err(self.noted(CallError::Reopen(error))),
                        Err(_) => return Err(CallError::TimedOut(Expiry::Absolute(limit))),
                    }
                }
            }
        }
    }

    /// Sends a caller's request that may be repeated. The result of some methods may require input.
    pub(crate) async fn repeatable_request(
        &self,
        method: Method,
        params: Params<'_>,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let options = CallOptions { retry: RetryPolicy::Once, ..options };
        let caller_params = CallerParams::of(&options.context)?;
        let request = Request::for_caller(method, params, &options, &caller_params);
        if matches!(method, Method::GetPrompt | Method::ReadResource) {
            self.request_with_input(&request).await?.into_response()
        } else {
            self.request(&request).await?.into_response()
        }
    }

    /// Sends a request of the session itself, which may be repeated.
    pub(crate) async fn own_request(&self, method: Method, params: Params<'_>) -> Result<(), CallError> {
        let options = CallOptions { retry: RetryPolicy::Once, ..CallOptions::default() };
        self.request(&Request::new(method, params, &options)).await.map(drop)
    }

    /// Counts an error that suggests an outage.
    fn noted(&self, error: CallError) -> CallError {
        if error.suggests_outage() {
            self.suspicions.send_modify(|count| *count += 1);
        }
        error
    }

    /// The client information of a modern request, if it differs from the session's.
    fn request_meta(&self, request: &Request<'_>, negotiated: &Negotiated) -> Option<String> {
        if negotiated.version.era() == Era::Legacy {
            return None;
        }
        let (log_level, owner) = (request.log_level, request.owner_hint());
        let is_default = match &owner {
            OwnerHint::None => true,
            OwnerHint::Session => self.options.client_capabilities.is_none(),
            OwnerHint::Caller(_) => false,
        };
        if is_default && log_level.is_none() {
            return None;
        }
        let level = log_level.filter(|_| negotiated.server.capabilities.logging).or(negotiated.log_level);
        let has_tasks = negotiated.server.capabilities.tasks.call;
        Some(modern_meta(negotiated.version, &self.options, &owner, level, has_tasks))
    }

    fn rpc_error(&self, response: &RawResponse) -> CallError {
        match response.read::<RpcError>() {
            Ok(error) => self.redacted_rpc_error(error),
            Err(unreadable) => unreadable,
        }
    }

    pub(crate) fn redacted_rpc_error(&self, error: RpcError) -> CallError {
        CallError::Rpc(redacted_error(error, self.dial.as_ref()))
    }
}
