//! Sends one request, including retries.
//!
//! A message is serialized once, into the buffer that the transport sends. A request that the server certainly did not
//! run is sent again. One whose response was lost is sent again only if the caller allows it.

use std::sync::Arc;

use mcp_host_model::{Era, Method, MethodName, RawJson, RpcError, TraceContext};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::CallError;
use crate::error::request_error::RequestError;
use crate::rpc::deadline::time_after;
use crate::rpc::engine::CallSettings;
use crate::rpc::frame::{self, MessageWriter};
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::progress::OnProgress;
use crate::rpc::request_owner::CallOwner;
use crate::session::forwarded_meta::{ForwardedMeta, NO_META};
use crate::session::negotiated::NegotiatedSession;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::request_params;
use crate::session::requests::response::{CallResponse, RawResponse};
use crate::session::server_error::redact_error;
use crate::session::session_trust::SuspectedLoss;
use crate::session::state::Session;
use crate::transport::{Epoch, HeaderParam, MessageHead, OutboundMessage, RequestId, StreamError};

/// A request to send. The engine assigns its id.
#[derive(Clone)]
pub(crate) struct OutboundRequest<'a> {
    pub(crate) method: MethodName,
    pub(crate) params: RequestParams<'a>,
    /// Additional parameters, as JSON members without braces; may be empty.
    pub(crate) extra_params: &'a str,
    /// The caller's `_meta`.
    pub(crate) meta: &'a ForwardedMeta,
    pub(crate) server_requests: ServerRequestPermission,
    pub(crate) options: &'a CallOptions,
    /// The start of the call for its caller.
    pub(crate) started_at: Instant,
}

/// Whether a server may send requests because of this request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerRequestPermission {
    /// It may send requests, for the owner of the call.
    Granted,
    /// It must not send requests, because this is a request of the session itself, or a ping.
    Denied,
}

/// The parameters of a request.
#[derive(Clone, Copy)]
pub(crate) enum RequestParams<'a> {
    /// A name and its arguments (an object).
    Named { name: &'a str, arguments: &'a RawJson },
    /// A URI.
    Uri(&'a str),
    /// JSON members without braces; may be empty. `name` is the tool, prompt or URI that they contain.
    Members { text: &'a str, name: Option<&'a str> },
}

impl<'a> OutboundRequest<'a> {
    /// A request of the session itself: without the caller's additions, and without permission for server requests.
    pub(crate) fn new(
        method: Method,
        params: RequestParams<'a>,
        options: &'a CallOptions,
    ) -> OutboundRequest<'a> {
        OutboundRequest {
            method: method.into(),
            params,
            extra_params: "",
            meta: &NO_META,
            server_requests: ServerRequestPermission::Denied,
            options,
            started_at: Instant::now(),
        }
    }

    /// A request of a caller, with the caller's `_meta` and additional parameters.
    pub(crate) fn for_caller(
        method: Method,
        params: RequestParams<'a>,
        options: &'a CallOptions,
        extra_params: &'a str,
    ) -> OutboundRequest<'a> {
        OutboundRequest {
            extra_params,
            meta: &options.context.meta,
            server_requests: ServerRequestPermission::Granted,
            ..OutboundRequest::new(method, params, options)
        }
    }

    /// The owner of the server requests that this request may cause.
    fn owner(&self) -> CallOwner {
        match (self.server_requests, &self.options.context.caller) {
            (ServerRequestPermission::Denied, _) => CallOwner::None,
            (ServerRequestPermission::Granted, None) => CallOwner::Session,
            (ServerRequestPermission::Granted, Some(caller)) => CallOwner::Caller(Arc::clone(caller)),
        }
    }

    /// Serializes the request. `own_meta` replaces the `_meta` members of the session.
    fn message(
        &self,
        id: RequestId,
        epoch: Epoch,
        negotiated: &NegotiatedSession,
        own_meta: Option<&str>,
        wants_progress: bool,
    ) -> OutboundMessage {
        let own_meta = own_meta.unwrap_or(&negotiated.meta);
        let meta = self.meta.members();
        let size = self.params.approximate_size() + self.extra_params.len() + meta.len() + own_meta.len();
        let mut writer = MessageWriter::request(id, self.method.as_str(), size);
        self.params.write(&mut writer);
        writer.write_params(self.extra_params);
        // A trace in the caller's own `_meta` takes precedence over that of the options.
        let trace = self.options.context.trace.as_ref().filter(|_| !self.meta.has_trace());
        let trace = trace.map(trace_members).unwrap_or_default();
        writer.write_meta(wants_progress.then_some(id), &[&trace, meta, own_meta]);
        let is_modern = negotiated.version.era() == Era::Modern;
        let head = MessageHead {
            id: Some(id),
            method: Some(self.method.clone()),
            name: self.params.target_name().filter(|_| is_modern).map(Into::into),
            version: Some(negotiated.version),
            header_params: Vec::new(),
            in_established_session: false,
        };
        OutboundMessage { epoch, head, body: writer.finish() }
    }

    /// The header parameters of the tool that is called.
    fn header_params(&self, negotiated: &NegotiatedSession) -> Result<Vec<HeaderParam>, CallError> {
        let Some(tool_headers) = &negotiated.tool_headers else { return Ok(Vec::new()) };
        if self.method != Method::CallTool {
            return Ok(Vec::new());
        }
        match &self.params {
            RequestParams::Named { name, arguments } => {
                tool_headers.for_call(name, arguments).map_err(CallError::InvalidParams)
            }
            RequestParams::Members { text, name: Some(name) } => {
                #[derive(Deserialize)]
                struct CallParams<'a> {
                    #[serde(borrow)]
                    arguments: Option<&'a RawValue>,
                }
                let members = format!("{{{text}}}");
                let call = serde_json::from_str::<CallParams<'_>>(&members).ok();
                let arguments = call.and_then(|it| it.arguments).map(RawJson::copy_of);
                let arguments = arguments.unwrap_or_else(RawJson::empty_object);
                tool_headers.for_call(name, &arguments).map_err(CallError::InvalidParams)
            }
            RequestParams::Members { name: None, .. } | RequestParams::Uri(_) => Ok(Vec::new()),
        }
    }
}

/// The `_meta` members of a trace context, as JSON text.
fn trace_members(trace: &TraceContext) -> String {
    let state = trace
        .tracestate()
        .map(|it| format!(",\"tracestate\":{}", frame::json_string(it)))
        .unwrap_or_default();
    format!("\"traceparent\":{}{state}", frame::json_string(trace.traceparent()))
}

impl<'a> RequestParams<'a> {
    /// No parameters.
    pub(crate) const NONE: RequestParams<'static> = RequestParams::Members { text: "", name: None };

    /// JSON members without braces that contain no name.
    pub(crate) fn members(text: &'a str) -> RequestParams<'a> {
        RequestParams::Members { text, name: None }
    }

    /// About the number of bytes that the parameters take in a message.
    fn approximate_size(&self) -> usize {
        match self {
            RequestParams::Named { name, arguments } => 32 + name.len() + arguments.as_bytes().len(),
            RequestParams::Uri(uri) => 16 + uri.len(),
            RequestParams::Members { text, name: _ } => text.len(),
        }
    }

    fn write(&self, writer: &mut MessageWriter) {
        match self {
            RequestParams::Named { name, arguments } => {
                writer.write_string_param("name", name);
                writer.write_json_param("arguments", arguments.as_str());
            }
            RequestParams::Uri(uri) => writer.write_string_param("uri", uri),
            RequestParams::Members { text, name: _ } => writer.write_params(text),
        }
    }

    /// The tool, prompt or URI that the parameters name.
    fn target_name(&self) -> Option<&str> {
        match self {
            RequestParams::Named { name, .. } | RequestParams::Uri(name) => Some(name),
            RequestParams::Members { name, .. } => *name,
        }
    }
}

impl Session {
    /// A progress callback that redacts secrets and then calls `progress`.
    fn redacting_progress(&self, progress: Option<&OnProgress>) -> Option<OnProgress> {
        let (on_progress, dial) = (Arc::clone(progress?), Arc::clone(&self.dial));
        Some(Arc::new(move |it| on_progress(it.redact(dial.as_ref()))))
    }

    /// Sends a request and waits for its response. Reopens a lost session and repeats the request, each at most once.
    pub(crate) async fn request(&self, request: &OutboundRequest<'_>) -> Result<RawResponse, CallError> {
        let (limit, idle_timeout) = {
            let limits = self.limits();
            (request.options.timeout.unwrap_or(limits.request), request.options.idle_timeout.or(limits.idle))
        };
        let mut reopened = false;
        let mut retried = false;
        let mut has_waited = false;
        let mut suspected_loss: Option<SuspectedLoss> = None;
        loop {
            let negotiated = self.negotiated();
            let header_params = request.header_params(&negotiated)?;
            let epoch = self.epoch();
            let settings = CallSettings {
                timeout: Some(limit),
                started_at: Some(request.started_at),
                idle_timeout,
                progress: self.redacting_progress(request.options.context.progress.as_ref()),
                owner: request.owner(),
                ..CallSettings::default()
            };
            let own_meta = self.own_meta(request, &negotiated);
            let era = negotiated.version.era();
            let is_established = self.trust.is_established(epoch);
            let wants_progress = settings.progress.is_some() || settings.idle_timeout.is_some();
            let message = move |id| {
                let mut message =
                    request.message(id, epoch, &negotiated, own_meta.as_deref(), wants_progress);
                message.head.header_params = header_params;
                message.head.in_established_session = is_established;
                message
            };
            let (id, outcome) = self.connection.engine.call(settings, message).await;
            let deadline = time_after(request.started_at, limit);
            let error = match outcome {
                RpcOutcome::Response { frame, is_error, payload_start } => {
                    let request_id = id.expect("a request with a response has an id");
                    let response = RawResponse { frame, payload_start, era, request_id };
                    if !is_error {
                        self.trust.establish(epoch);
                        return Ok(response);
                    }
                    self.read_rpc_error(&response)
                }
                RpcOutcome::Expired(expiry) => {
                    match self.connection.engine.unmatched_since(request.started_at) {
                        Some(output) => CallError::TimedOutUnmatched { expiry, output },
                        None => CallError::TimedOut(expiry),
                    }
                }
                RpcOutcome::Closed(ended) if id.is_none() && !retried => CallError::NotSent(ended),
                RpcOutcome::Closed(ended) => CallError::Closed(ended),
                RpcOutcome::StreamFailed(StreamError::Unreachable(error)) => CallError::Unreachable(error),
                RpcOutcome::StreamFailed(StreamError::Refused(error)) => {
                    if let Some(end) = error.end_of_requested_wait(deadline).filter(|_| !has_waited) {
                        has_waited = true;
                        Box::pin(tokio::time::sleep_until(end)).await;
                        continue;
                    }
                    CallError::Refused(error)
                }
                RpcOutcome::StreamFailed(StreamError::Lost(error)) => match request.options.retry {
                    RetryPolicy::Once
                        if !retried
                            && (error.retry_after().is_none()
                                || error.end_of_requested_wait(deadline).is_some()) =>
                    {
                        retried = true;
                        if let Some(end) = error.end_of_requested_wait(deadline) {
                            Box::pin(tokio::time::sleep_until(end)).await;
                        }
                        continue;
                    }
                    RetryPolicy::Once | RetryPolicy::Never
                        if request.method.as_known().is_some_and(Method::is_read_only) =>
                    {
                        CallError::ResponseLost(error)
                    }
                    RetryPolicy::Once | RetryPolicy::Never => CallError::OutcomeUnknown(error),
                },
                RpcOutcome::StreamFailed(StreamError::TooLarge(limit)) => CallError::ResponseTooLarge(limit),
                RpcOutcome::StreamFailed(StreamError::NotExecuted(_)) if reopened => {
                    CallError::Refused(RequestError::SessionLost)
                }
                RpcOutcome::StreamFailed(StreamError::NotExecuted(epoch)) => {
                    // Boxed: it is rare, and every request's future would be four times as large.
                    match Box::pin(self.reopen_before(epoch, deadline, limit)).await {
                        Ok(()) => {
                            reopened = true;
                            continue;
                        }
                        Err(error) => error,
                    }
                }
            };
            if let Some(loss) = suspected_loss.take()
                && SuspectedLoss::from_error(&error).as_ref() == Some(&loss)
            {
                self.trust.add_unrelated(loss);
            }
            if reopened || !is_established {
                return Err(self.count_suspected_outage(error));
            }
            // Boxed, as above.
            match Box::pin(self.recover_session(error, epoch, deadline)).await {
                Ok(loss) => (reopened, suspected_loss) = (true, Some(loss)),
                Err(error) => return Err(self.count_suspected_outage(error)),
            }
        }
    }

    /// Sends a caller's request that may be repeated if its response was lost, and provides input if the result
    /// requires it.
    pub(crate) async fn send_repeatable_request(
        &self,
        method: Method,
        params: RequestParams<'_>,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let options = CallOptions { retry: RetryPolicy::Once, ..options };
        let extra_params = request_params::extra_params(&options.context)?;
        let request = OutboundRequest::for_caller(method, params, &options, &extra_params);
        let response = if matches!(method, Method::GetPrompt | Method::ReadResource) {
            self.request_with_input(&request).await?.into_response()?
        } else {
            self.request(&request).await?.into_response(self.dial.as_ref())?
        };
        Ok(response.map(RawJson::without_unpaired_surrogates))
    }

    /// Sends a request of the session itself, which may be repeated if its response was lost.
    pub(crate) async fn send_own_request(
        &self,
        method: Method,
        params: RequestParams<'_>,
    ) -> Result<(), CallError> {
        let options = CallOptions { retry: RetryPolicy::Once, ..CallOptions::default() };
        self.request(&OutboundRequest::new(method, params, &options)).await.map(drop)
    }

    /// Counts an error that suggests an outage, and returns it.
    fn count_suspected_outage(&self, error: CallError) -> CallError {
        if error.suggests_outage() {
            self.suspected_outages.send_modify(|count| *count += 1);
        }
        error
    }

    /// The `_meta` members of a modern request with the client's name, capabilities and log level; `None` if they are
    /// those of the session.
    fn own_meta(&self, request: &OutboundRequest<'_>, negotiated: &NegotiatedSession) -> Option<Arc<str>> {
        if negotiated.version.era() == Era::Legacy {
            return None;
        }
        let (log_level, owner) = (request.meta.log_level(), request.owner());
        let is_default = match &owner {
            CallOwner::None => true,
            CallOwner::Session => self.options.client_capabilities.is_none(),
            CallOwner::Caller(_) => false,
        };
        if is_default && log_level.is_none() {
            return None;
        }
        let level = log_level.filter(|_| negotiated.server.capabilities.logging).or(negotiated.log_level);
        Some(negotiated.meta_of(&self.options, &owner, level))
    }

    fn read_rpc_error(&self, response: &RawResponse) -> CallError {
        match response.read::<RpcError>() {
            Ok(error) => self.redact_rpc_error(error),
            Err(unreadable) => unreadable,
        }
    }

    pub(crate) fn redact_rpc_error(&self, error: RpcError) -> CallError {
        CallError::Rpc(redact_error(error, self.dial.as_ref()))
    }
}
