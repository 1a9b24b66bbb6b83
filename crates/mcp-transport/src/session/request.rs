//! One request from its parameters to its answer, whatever happens on the way.
//!
//! A message is written once, into the buffer that the wire sends. What may be sent again is decided here: a request
//! that the server certainly did not run is, whatever it is; one whose answer was lost only where its caller says that
//! twice is as good as once.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_model::{Era, LogLevel, RawJson, RpcError, ToolResult, TraceContext};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Session;
use super::client_meta::{For, modern_meta};
use super::handshake::{self, Negotiated};
use super::params::{self, Given};
use crate::error::CallError;
use crate::error::NOT_UTF8;
use crate::error::end::RequestError;
use crate::rpc::deadline::Expiry;
use crate::rpc::engine::CallTerms;
use crate::rpc::frame::{self, Writer};
use crate::rpc::pending::Outcome;
use crate::rpc::progress::OnProgress;
use crate::rpc::request_owner::Stake;
use crate::session::{CallOptions, RetryPolicy};
use crate::transport::{
    Epoch, HeaderParam, MessageHead, OutboundMessage, RequestId, StreamError, TargetName,
};

/// A request before it has an id.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) method: Method<'a>,
    pub(super) params: Params<'a>,
    /// More members of the parameters.
    pub(super) more: &'a str,
    /// The members of `_meta` that its caller gave.
    pub(super) meta: &'a str,
    /// From which level on its caller wants log messages, where he says so.
    pub(super) log_level: Option<LogLevel>,
    /// Who has a stake in it: a caller, or whoever has the session, where it may be asked about.
    pub(super) stake: StakeOf,
    pub(super) options: &'a CallOptions,
    /// When it began for its caller.
    pub(super) begun: Instant,
}

/// Whether a server may ask something because of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StakeOf {
    /// It may, and asks whoever the request is made for.
    Options,
    /// It is the session's own business.
    Nobody,
}

/// A method. Ours needs no copy of its name.
#[derive(Clone, Copy)]
pub(super) enum Method<'a> {
    Ours(&'static str),
    Given(&'a str),
}

/// The parameters of a request.
#[derive(Clone, Copy)]
pub(super) enum Params<'a> {
    /// A name, and arguments for it: an object.
    Named { name: &'a str, arguments: &'a RawJson },
    /// A URI.
    Uri(&'a str),
    /// Members, as they stand between braces; may be empty. The name is what they name.
    Members { text: &'a str, name: Option<&'a str> },
}

impl<'a> Request<'a> {
    pub(super) fn new(method: &'static str, params: Params<'a>, options: &'a CallOptions) -> Request<'a> {
        Request {
            method: Method::Ours(method),
            params,
            more: "",
            meta: "",
            log_level: None,
            stake: StakeOf::Nobody,
            options,
            begun: Instant::now(),
        }
    }

    /// A request that is made for a caller, with what he gives beside its parameters.
    pub(super) fn given(
        method: &'static str,
        params: Params<'a>,
        options: &'a CallOptions,
        given: &'a Given,
    ) -> Request<'a> {
        let Given { meta, more, log_level } = given;
        let stake = StakeOf::Options;
        Request { more, meta, log_level: *log_level, stake, ..Request::new(method, params, options) }
    }

    fn stake(&self) -> Stake {
        match (self.stake, &self.options.caller) {
            (StakeOf::Nobody, _) => Stake::None,
            (StakeOf::Options, None) => Stake::Session,
            (StakeOf::Options, Some(caller)) => Stake::Caller(Arc::clone(caller)),
        }
    }

    fn outgoing(
        &self,
        id: RequestId,
        epoch: Epoch,
        negotiated: &Negotiated,
        own_meta: Option<&str>,
        wants_progress: bool,
    ) -> OutboundMessage {
        let own_meta = own_meta.unwrap_or(&negotiated.meta);
        let size = self.params.size() + self.more.len() + self.meta.len() + own_meta.len();
        let mut writer = Writer::request(id, self.method.as_str(), size);
        let name = self.params.write(&mut writer);
        writer.members(self.more);
        let progress = if wants_progress { format!("\"progressToken\":{id}") } else { String::new() };
        let trace = self.options.trace.as_ref().map(members).unwrap_or_default();
        // A trace that the caller's own `_meta` names stands before that of the options.
        let trace = if trace.is_empty() || !params::holds(self.meta, "traceparent") { &*trace } else { "" };
        writer.meta(&[&progress, trace, self.meta, own_meta]);
        let head = MessageHead {
            id: Some(id),
            method: match self.method {
                Method::Ours(name) => Cow::Borrowed(name),
                Method::Given(name) => Cow::Owned(name.to_owned()),
            },
            name,
            version: Some(negotiated.version),
            header_params: Vec::new(),
        };
        OutboundMessage { epoch, head, body: writer.finish() }
    }

    /// What the tool that it calls wants to see as headers.
    fn mirrored(&self, negotiated: &Negotiated) -> Result<Vec<HeaderParam>, CallError> {
        let Some(mirrors) = &negotiated.mirrors else { return Ok(Vec::new()) };
        match (self.method.as_str(), &self.params) {
            ("tools/call", Params::Named { name, arguments }) => {
                mirrors.of(name, arguments).map_err(CallError::InvalidParams)
            }
            ("tools/call", Params::Members { text, name: Some(name) }) => {
                #[derive(serde::Deserialize)]
                struct Call<'a> {
                    #[serde(borrow)]
                    arguments: Option<&'a serde_json::value::RawValue>,
                }
                let members = format!("{{{text}}}");
                let call = serde_json::from_str::<Call<'_>>(&members).ok();
                let arguments = call.and_then(|it| it.arguments).map(RawJson::copy_of);
                let arguments = arguments.unwrap_or_else(RawJson::empty_object);
                mirrors.of(name, &arguments).map_err(CallError::InvalidParams)
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// The members of `_meta` that say which trace a request belongs to.
fn members(trace: &TraceContext) -> String {
    let state = trace.state().map(|it| format!(",\"tracestate\":{}", frame::text(it))).unwrap_or_default();
    format!("\"traceparent\":{}{state}", frame::text(trace.parent()))
}

impl Method<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Method::Ours(name) => name,
            Method::Given(name) => name,
        }
    }

    /// Does the server do nothing because of it but answer? Of what we do not know, nobody can say.
    fn reads(&self) -> bool {
        matches!(
            self.as_str(),
            "ping"
                | "server/discover"
                | "tools/list"
                | "prompts/list"
                | "prompts/get"
                | "resources/list"
                | "resources/templates/list"
                | "resources/read"
                | "completion/complete"
        )
    }
}

impl Params<'_> {
    fn size(&self) -> usize {
        match self {
            Params::Named { name, arguments } => 32 + name.len() + arguments.as_bytes().len(),
            Params::Uri(uri) => 16 + uri.len(),
            Params::Members { text, name: _ } => text.len(),
        }
    }

    fn write(&self, writer: &mut Writer) -> Option<TargetName> {
        match self {
            Params::Named { name, arguments } => {
                let name = writer.text("name", name);
                writer.raw("arguments", arguments.as_str());
                Some(TargetName::InBody(name))
            }
            Params::Uri(uri) => Some(TargetName::InBody(writer.text("uri", uri))),
            Params::Members { text, name } => {
                writer.members(text);
                name.map(|it| TargetName::Text(it.into()))
            }
        }
    }
}

impl Session {
    /// The same listener, who hears nothing of what the server was given in confidence.
    fn clean(&self, progress: Option<&OnProgress>) -> Option<OnProgress> {
        let (tell, dial) = (Arc::clone(progress?), Arc::clone(&self.dial));
        Some(Arc::new(move |it| tell(it.cleaned(dial.as_ref()))))
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn request(&self, request: &Request<'_>) -> Result<RawAnswer, CallError> {
        let (limit, idle) = {
            let limits = self.limits();
            (request.options.timeout.unwrap_or(limits.request), request.options.idle_timeout.or(limits.idle))
        };
        let mut reopened = false;
        let mut repeated = false;
        loop {
            let negotiated = self.negotiated();
            let mirrored = request.mirrored(&negotiated)?;
            let epoch = self.epoch();
            let terms = CallTerms {
                deadline: Some(limit),
                begun: Some(request.begun),
                idle,
                progress: self.clean(request.options.progress.as_ref()),
                stake: request.stake(),
                ..CallTerms::default()
            };
            let own_meta = self.own_meta(request, &negotiated);
            let wants_progress = terms.progress.is_some() || terms.idle.is_some();
            let message = move |id| {
                let mut message =
                    request.outgoing(id, epoch, &negotiated, own_meta.as_deref(), wants_progress);
                message.head.header_params = mirrored;
                message
            };
            let (id, outcome) = self.wire.engine().call(terms, message).await;
            match outcome {
                Outcome::Answer { frame, is_error, payload } => {
                    let request_id = id.expect("a request that was answered was sent");
                    let answer = RawAnswer { frame, payload, request_id };
                    return if is_error { Err(self.rpc_error(&answer)) } else { Ok(answer) };
                }
                Outcome::Expired(expiry) => return Err(CallError::TimedOut(expiry)),
                Outcome::Closed(ended) if id.is_none() && !repeated => return Err(CallError::NotSent(ended)),
                Outcome::Closed(ended) => return Err(CallError::Closed(ended)),
                Outcome::LaneEnded(StreamError::Refused(fault)) => return Err(CallError::Refused(fault)),
                Outcome::LaneEnded(StreamError::Lost(fault)) => match request.options.retry {
                    RetryPolicy::Once if !repeated => repeated = true,
                    RetryPolicy::Once | RetryPolicy::Never if request.method.reads() => {
                        return Err(CallError::ResponseLost(fault));
                    }
                    RetryPolicy::Once | RetryPolicy::Never => return Err(CallError::OutcomeUnknown(fault)),
                },
                Outcome::LaneEnded(StreamError::TooLarge(limit)) => {
                    return Err(CallError::ResponseTooLarge(limit));
                }
                Outcome::LaneEnded(StreamError::NotExecuted(_)) if reopened => {
                    let message = "the server forgets the session as soon as it is opened".to_owned();
                    return Err(CallError::Refused(RequestError { status: None, message, error: None }));
                }
                Outcome::LaneEnded(StreamError::NotExecuted(epoch)) => {
                    let deadline = request.begun.checked_add(limit).unwrap_or_else(super::far_away);
                    // Boxed, for it is rare, and every request's future would be four times as large.
                    match tokio::time::timeout_at(deadline, Box::pin(self.reopen(epoch))).await {
                        Ok(Ok(())) => reopened = true,
                        Ok(Err(error)) => return Err(CallError::Reopen(error)),
                        Err(_) => return Err(CallError::TimedOut(Expiry::Absolute(limit))),
                    }
                }
            }
        }
    }

    /// What a modern request says of us, where it is not what all of the session say.
    fn own_meta(&self, request: &Request<'_>, negotiated: &Negotiated) -> Option<String> {
        let Request { log_level, stake, options: CallOptions { caller, .. }, .. } = request;
        let whom = match (stake, caller) {
            (StakeOf::Nobody, _) => For::Anybody,
            (StakeOf::Options, None) => For::Session,
            (StakeOf::Options, Some(caller)) => For::Caller(caller),
        };
        let is_usual = match whom {
            For::Anybody => true,
            For::Session => self.options.client_capabilities.is_none(),
            For::Caller(_) => false,
        };
        if negotiated.version.era() == Era::Legacy || (is_usual && log_level.is_none()) {
            return None;
        }
        let level = log_level.filter(|_| negotiated.server.capabilities.logging).or(negotiated.log_level);
        Some(modern_meta(negotiated.version, &self.options, whom, level))
    }

    fn rpc_error(&self, answer: &RawAnswer) -> CallError {
        match answer.read::<RpcError>() {
            Ok(error) => CallError::Rpc(handshake::cleaned(error, self.dial.as_ref())),
            Err(unreadable) => unreadable,
        }
    }
}

/// An answer before it is read.
pub(super) struct RawAnswer {
    frame: bytes::Bytes,
    payload: usize,
    pub(super) request_id: RequestId,
}

impl RawAnswer {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        T::deserialize(&mut serde_json::Deserializer::from_slice(self.payload()))
            .map_err(|it| self.unreadable(&it))
    }

    /// What `read` finds in it. The result is followed by the rest of its message.
    pub(super) fn read_by<T>(&self, read: fn(&[u8]) -> Result<T, serde_json::Error>) -> Result<T, CallError> {
        read(self.payload()).map_err(|it| self.unreadable(&it))
    }

    /// The result of a tool: at once where it is as most are.
    pub(super) fn result(&self) -> Result<ToolResult, CallError> {
        match str::from_utf8(self.payload()).ok().and_then(ToolResult::parse_known_blocks) {
            Some(result) => Ok(result),
            None => self.read(),
        }
    }

    /// The result as it came.
    pub(super) fn raw(&self) -> Result<RawJson, CallError> {
        RawJson::parse_prefix(self.frame.slice(self.payload..)).map_err(|it| self.unreadable(&it))
    }

    /// Why it cannot be read. Another encoding is told apart, for something can be done about it.
    fn unreadable(&self, error: &serde_json::Error) -> CallError {
        CallError::InvalidResponse(match std::str::from_utf8(self.payload()) {
            Err(bad) => format!("{} (byte {} of the answer)", NOT_UTF8, bad.valid_up_to() + 1),
            Ok(_) => error.to_string(),
        })
    }

    /// Whether the server asks for something before it answers.
    pub(super) fn asks_for_input(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct Typed {
            #[serde(rename = "resultType")]
            result_type: Option<String>,
        }
        memchr::memmem::find(self.payload(), b"\"input_required\"").is_some()
            && self.read::<Typed>().is_ok_and(|it| it.result_type.as_deref() == Some("input_required"))
    }

    /// Its bytes, and what follows them in the message.
    pub(super) fn payload(&self) -> &[u8] {
        &self.frame[self.payload..]
    }
}
