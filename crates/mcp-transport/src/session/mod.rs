//! One connection to one server, with its handshake done: what a host holds.
//!
//! A session lives from [`Session::connect`] to its end and is never revived; a supervisor makes a new one. All its
//! methods may be called at once from many tasks, all calls end, and dropping a call's future cancels it on the wire.

mod dispatch;
mod handshake;
mod listen;
mod lists;
mod options;
mod params;
mod server;
mod wire;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mcp_model::{Era, Limits, ProtocolVersion, RawJson, RpcError, ToolResult};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine::CallTerms;
use crate::pending::Outcome;
use crate::{CallError, ConnectError, Dial, Ended, Epoch, Expiry, Head, LaneEnd, Outgoing, RequestId};
use handshake::Negotiated;
use wire::Wire;

pub use dispatch::{Changes, Handler, Unattended};
pub use lists::Listing;
pub use options::{CallOptions, ClientInfo, Eras, Replay, SessionOptions};
pub use server::{ServerCapabilities, ServerInfo};

/// The state of a connection (HD-082 to HD-084).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing was done yet.
    Created,
    /// The server is being started or reached, and the handshake is under way.
    Connecting,
    /// Calls can be made.
    Connected,
    /// It is over, and that was wanted.
    Disconnected,
    /// It is over, and that was not wanted; or it never began. The reason in words.
    Error(String),
}

/// A connection to a server. See the module's page.
pub struct Session {
    wire: Wire,
    dial: Arc<dyn Dial>,
    options: SessionOptions,
    epoch: AtomicU32,
    negotiated: RwLock<Arc<Negotiated>>,
    limits: RwLock<Arc<Limits>>,
    /// The last time that it failed, so that those who waited for it need not each try again.
    reopening: tokio::sync::Mutex<Option<(Instant, Arc<ConnectError>)>>,
}

/// A connection that is being made. Dropped in the middle of it, it never was.
struct Connecting<'a>(&'a watch::Sender<State>);

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        self.0.send_replace(State::Error("connecting was given up".to_owned()));
    }
}

/// An answer, with the id of the request that brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<T> {
    /// The result.
    pub value: T,
    /// The JSON-RPC id of the request.
    pub request_id: RequestId,
}

impl Session {
    /// Starts or reaches the server and does the handshake of its era, within `options.limits.startup`. A failure
    /// leaves nothing behind: no process, no connection. Cancel-safe: dropping the future ends what was begun.
    pub async fn connect(dial: Arc<dyn Dial>, options: SessionOptions) -> Result<Session, ConnectError> {
        options.state.send_replace(State::Connecting);
        let connecting = Connecting(&options.state);
        let outcome = handshake::open(&dial, &options).await;
        std::mem::forget(connecting);
        match outcome {
            Ok((wire, negotiated)) => {
                wire.connected();
                let negotiated = Arc::new(negotiated);
                wire.listen(&negotiated);
                let limits = RwLock::new(Arc::new(options.limits.clone()));
                Ok(Session {
                    wire,
                    dial,
                    limits,
                    options,
                    epoch: AtomicU32::new(0),
                    negotiated: RwLock::new(negotiated),
                    reopening: tokio::sync::Mutex::new(None),
                })
            }
            Err(error) => {
                options.state.send_replace(State::Error(error.to_string()));
                Err(error)
            }
        }
    }

    /// What the server said about itself.
    pub fn server(&self) -> ServerInfo {
        self.negotiated().server.clone()
    }

    /// The negotiated version.
    pub fn version(&self) -> ProtocolVersion {
        self.negotiated().version
    }

    /// The era of that version.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// The state, to be watched.
    pub fn state(&self) -> watch::Receiver<State> {
        self.options.state.subscribe()
    }

    /// Counts the server's announcements that its lists have changed.
    pub fn changes(&self) -> watch::Receiver<Changes> {
        self.wire.changes()
    }

    /// Keeps other limits from the next request on: those of requests, of silence and of lists. What only a wire
    /// keeps (connecting, the size of a message, the silence of a stream) stays as it was dialled.
    pub fn set_limits(&self, limits: Limits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    /// Resolves when the connection is over. Cancel-safe.
    pub async fn closed(&self) -> Arc<Ended> {
        self.wire.ended().await
    }

    /// Calls a tool. `arguments` is a JSON object.
    ///
    /// The deadline is that of `options`, else the session's `limits.request`. Whoever wants a lost answer to be asked
    /// for again says with [`CallOptions::replay`] that this is safe.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<Answer<ToolResult>, CallError> {
        let mut params = String::with_capacity(32 + name.len() + arguments.as_bytes().len());
        params.push_str("\"name\":");
        push_json(&mut params, name);
        write!(params, ",\"arguments\":{}", arguments.as_str()).expect("writing to a string cannot fail");
        if !arguments.is_object() {
            return Err(CallError::InvalidParams("a tool's arguments are a JSON object".to_owned()));
        }
        let request =
            Request { method: "tools/call", name: Some(name), params: &params, meta: "", options: &options };
        let answer = self.request(request).await?;
        // Only the era that can ask for input says what kind of result it is.
        if self.era() == Era::Modern && answer.asks_for_input() {
            return Err(CallError::InputRequired);
        }
        Ok(Answer { value: answer.read()?, request_id: answer.request_id })
    }

    /// Sends a request of any method and gives its result as it came. `params` is a JSON object; `name` is the tool,
    /// prompt or URI that it names, which Streamable HTTP repeats in a header.
    pub async fn request_raw(
        &self,
        method: &str,
        name: Option<&str>,
        params: &RawJson,
        options: CallOptions,
    ) -> Result<Answer<RawJson>, CallError> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "/_-.$".contains(it);
        if method.is_empty() || !method.chars().all(is_plain) {
            return Err(CallError::InvalidParams("this is no name of a method".to_owned()));
        }
        let (params, meta) = params::split(params).map_err(CallError::InvalidParams)?;
        let answer =
            self.request(Request { method, name, params: &params, meta: &meta, options: &options }).await?;
        Ok(Answer { value: answer.raw()?, request_id: answer.request_id })
    }

    /// Ends the connection: politely within `grace`, then by force. Calls in flight end with [`CallError::Closed`].
    /// Returns when the server is gone, or cut off.
    pub async fn close(&self, grace: Duration) -> Arc<Ended> {
        self.wire.stop(grace).await
    }

    /// Bytes that were no protocol, and messages dropped because the server sent too many.
    pub fn counters(&self) -> (u64, u64) {
        self.wire.engine().counters()
    }

    fn negotiated(&self) -> Arc<Negotiated> {
        Arc::clone(&self.negotiated.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn rpc_error(&self, answer: &RawAnswer) -> CallError {
        match answer.read::<RpcError>() {
            Ok(error) => CallError::Rpc(handshake::cleaned(error, self.dial.as_ref())),
            Err(unreadable) => unreadable,
        }
    }

    async fn request(&self, request: Request<'_>) -> Result<RawAnswer, CallError> {
        let limits = self.limits();
        let begun = Instant::now();
        let limit = request.options.deadline.unwrap_or(limits.request);
        let mut reopened = false;
        let mut repeated = false;
        loop {
            let negotiated = self.negotiated();
            let epoch = Epoch(self.epoch.load(Ordering::Acquire));
            let terms = CallTerms {
                deadline: Some(limit),
                begun: Some(begun),
                idle: request.options.idle.or(limits.idle),
                progress: request.options.progress.clone(),
                ..CallTerms::default()
            };
            let wants_progress = terms.progress.is_some() || terms.idle.is_some();
            let (id, outcome) = self
                .wire
                .engine()
                .call(terms, |id| request.outgoing(id, epoch, &negotiated, wants_progress))
                .await;
            match outcome {
                Outcome::Answer { frame, is_error, payload } => {
                    let request_id = id.expect("a request that was answered was sent");
                    let answer = RawAnswer { frame, payload, request_id };
                    return if is_error { Err(self.rpc_error(&answer)) } else { Ok(answer) };
                }
                Outcome::Expired(expiry) => return Err(CallError::TimedOut(expiry)),
                Outcome::Closed(ended) if id.is_none() && !repeated => return Err(CallError::NotSent(ended)),
                Outcome::Closed(ended) => return Err(CallError::Closed(ended)),
                Outcome::LaneEnded(LaneEnd::Refused(fault)) => return Err(CallError::Refused(fault)),
                Outcome::LaneEnded(LaneEnd::Lost(fault)) => match request.options.replay {
                    Replay::Allowed if !repeated => repeated = true,
                    Replay::Allowed | Replay::Forbidden => return Err(CallError::OutcomeUnknown(fault)),
                },
                Outcome::LaneEnded(LaneEnd::NotExecuted(_)) if reopened => {
                    return Err(CallError::Refused(crate::Fault {
                        status: None,
                        message: "the server forgets the session as soon as it is opened".to_owned(),
                        error: None,
                    }));
                }
                Outcome::LaneEnded(LaneEnd::NotExecuted(epoch)) => {
                    let deadline = begun.checked_add(limit).unwrap_or_else(far_away);
                    match tokio::time::timeout_at(deadline, self.reopen(epoch)).await {
                        Ok(Ok(())) => reopened = true,
                        Ok(Err(error)) => return Err(CallError::Reopen(error)),
                        Err(_) => return Err(CallError::TimedOut(Expiry::Absolute(limit))),
                    }
                }
            }
        }
    }

    /// Does the handshake again after the server has forgotten the session of `epoch`. Many callers may find out at
    /// once: the first opens, the others wait for it.
    async fn reopen(&self, epoch: Epoch) -> Result<(), Arc<ConnectError>> {
        let asked = Instant::now();
        let mut last_failure = self.reopening.lock().await;
        if self.epoch.load(Ordering::Acquire) != epoch.0 {
            return Ok(());
        }
        if let Some((at, error)) = &*last_failure
            && *at >= asked
        {
            return Err(Arc::clone(error));
        }
        let next = Epoch(epoch.0 + 1);
        let negotiated = match handshake::reopen(self.dial.as_ref(), &self.wire, &self.options, next).await {
            Ok(negotiated) => negotiated,
            Err(error) => {
                let error = Arc::new(error);
                *last_failure = Some((Instant::now(), Arc::clone(&error)));
                return Err(error);
            }
        };
        *self.negotiated.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(negotiated);
        self.epoch.store(next.0, Ordering::Release);
        // A server that forgot the session may be another one by now.
        self.wire.lists_are_old();
        Ok(())
    }
}

/// A moment that never comes: for limits that the clock cannot count to.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(60 * 60 * 24 * 365)
}

/// A request before it has an id.
struct Request<'a> {
    method: &'a str,
    name: Option<&'a str>,
    /// The members of its parameters, but for `_meta`.
    params: &'a str,
    /// The members of `_meta` that its caller gave.
    meta: &'a str,
    options: &'a CallOptions,
}

impl Request<'_> {
    fn outgoing(
        &self,
        id: RequestId,
        epoch: Epoch,
        negotiated: &Negotiated,
        wants_progress: bool,
    ) -> Outgoing {
        let body = if wants_progress || !self.meta.is_empty() {
            let progress = if wants_progress { format!("\"progressToken\":{id}") } else { String::new() };
            let parts = [progress.as_str(), self.meta, &negotiated.meta];
            let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
            crate::frame::request(id, self.method, self.params, &parts.join(","))
        } else {
            crate::frame::request(id, self.method, self.params, &negotiated.meta)
        };
        let head = Head {
            id: Some(id),
            method: method_text(self.method),
            name: self.name.map(Into::into),
            version: Some(negotiated.version),
        };
        Outgoing { epoch, head, body }
    }
}

/// The methods we send ourselves need no copy of their name.
fn method_text(method: &str) -> Cow<'static, str> {
    const OURS: [&str; 5] = ["tools/call", "tools/list", "prompts/list", "resources/list", "initialize"];
    match OURS.iter().find(|it| **it == method) {
        Some(ours) => Cow::Borrowed(ours),
        None => Cow::Owned(method.to_owned()),
    }
}

struct RawAnswer {
    frame: bytes::Bytes,
    payload: usize,
    request_id: RequestId,
}

impl RawAnswer {
    fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        T::deserialize(&mut serde_json::Deserializer::from_slice(&self.frame[self.payload..]))
            .map_err(|it| CallError::Unreadable(it.to_string()))
    }

    fn raw(&self) -> Result<RawJson, CallError> {
        use serde::Deserialize as _;
        let mut deserializer = serde_json::Deserializer::from_slice(&self.frame[self.payload..]);
        let value = <&serde_json::value::RawValue>::deserialize(&mut deserializer)
            .map_err(|it| CallError::Unreadable(it.to_string()))?;
        Ok(RawJson::within(&self.frame, value))
    }

    fn asks_for_input(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct Typed {
            #[serde(rename = "resultType")]
            result_type: Option<String>,
        }
        memchr::memmem::find(&self.frame[self.payload..], b"\"input_required\"").is_some()
            && self.read::<Typed>().is_ok_and(|it| it.result_type.as_deref() == Some("input_required"))
    }
}

/// Writes a JSON string.
fn push_json(into: &mut String, text: &str) {
    into.push_str(&serde_json::to_string(text).expect("a string is JSON"));
}
