//! A session with a scripted server, and the properties that must hold.
//!
//! No task runs between two events unless [`Harness::settle`] is awaited, so simultaneous events may come in any order.
//! Each poll of a call is compared with the [model](super::model): what it sends and how it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_host_model::{Era, Limits, Method, MethodName, RawJson, RpcError};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::super::{Eras, Session, SessionOptions, SessionState};
use super::calls::{CallFuture, CallKind, CallSpec, WakeFlag, start};
use super::model::{Call, REQUEST, RequestOutcome, STARTUP, Stage};
use super::peer::{Peer, ScriptedDial, ShutdownBehavior};
use crate::rpc::handlers::{Handlers, RawRequestHandler, RawServerRequest};
use crate::transport::{Dial, Epoch, MessageClass, Outbound, RequestId, StreamId};

/// The tolerance for deadlines: the resolution of the timer and one millisecond more.
const TOLERANCE: Duration = Duration::from_millis(2);

/// A session with its scripted server.
pub(super) struct Harness {
    pub(super) session: Arc<Session>,
    pub(super) peer: Peer,
    pub(super) calls: Vec<Call>,
    /// All requests that calls have sent.
    pub(super) requests: Vec<(RequestId, Epoch)>,
    /// Notified when any call is woken.
    any_woken: Arc<Notify>,
    /// The current epoch of the session.
    epoch: Epoch,
    pub(super) reopening: Option<ReopenAttempt>,
    /// When reopening failed last.
    reopen_failed_at: Option<Instant>,
    /// Whether an event has ended the connection, or will end it.
    pub(super) may_end: bool,
    /// Whether the connection has ended.
    pub(super) closed: bool,
    /// The closes in progress: future, flag, and the time by which it must be done.
    closings: Vec<(CallFuture, Arc<WakeFlag>, Instant)>,
    /// The number of texts so far.
    text_count: usize,
    /// The requests that were cancelled with a cancel notice: the actual and the expected ones.
    cancelled: [Vec<RequestId>; 2],
    /// The requests that were cancelled without a cancel notice: the actual and the expected ones.
    released: [Vec<RequestId>; 2],
    /// The expected number of announced changes of the tool list.
    pub(super) list_changes: u64,
    /// The expected number of noise bytes.
    pub(super) noise_bytes: u64,
    pub(super) server_requests: Vec<ServerRequest>,
    /// The number of responses to each server request.
    responses: HashMap<String, usize>,
    gates: Arc<HandlerGates>,
}

/// An attempt to reopen the session with `initialize`.
pub(super) struct ReopenAttempt {
    pub(super) request: RequestId,
    /// The index of the call that reopens the session.
    call: usize,
    epoch: Epoch,
    due: Instant,
    /// Whether the server accepted it; `None` while it is pending.
    pub(super) response: Option<Result<(), ()>>,
}

/// A server request.
pub(super) struct ServerRequest {
    pub(super) id: String,
    /// The stream that it is sent on, and its cancellation too.
    pub(super) stream: StreamId,
    /// The requests that the server request may belong to.
    pub(super) affected: Vec<RequestId>,
    pub(super) is_open: bool,
    /// The expected number of responses; `None` if the connection has ended.
    pub(super) responses: Option<usize>,
}

/// A handler that responds to each request when its gate is notified. The gates are found by the request's id.
#[derive(Default)]
pub(super) struct HandlerGates(Mutex<HashMap<String, Arc<Notify>>>);

impl HandlerGates {
    pub(super) fn gate(&self, id: &str) -> Arc<Notify> {
        Arc::clone(self.0.lock().unwrap().entry(id.to_owned()).or_default())
    }
}

#[async_trait]
impl RawRequestHandler for HandlerGates {
    fn handles(&self, method: &MethodName) -> bool {
        *method == Method::Elicit
    }

    async fn handle(&self, server_request: RawServerRequest) -> Result<RawJson, RpcError> {
        let params: Value = server_request.params.read().unwrap();
        self.gate(params["id"].as_str().unwrap()).notified().await;
        Ok(server_request.params)
    }
}

impl Harness {
    pub(super) async fn open(era: Era, shutdown_behavior: ShutdownBehavior) -> Harness {
        let (peers, mut dialled) = mpsc::unbounded_channel();
        let dial: Arc<dyn Dial> = Arc::new(ScriptedDial { peers, shutdown_behavior });
        let gates = Arc::new(HandlerGates::default());
        let options = SessionOptions {
            eras: match era {
                Era::Legacy => Eras::Legacy,
                Era::Modern => Eras::Modern,
            },
            limits: {
                let mut limits = Limits::default();
                limits.request = REQUEST;
                limits.startup = STARTUP;
                limits
            },
            handlers: Handlers { raw_requests: Some(Arc::clone(&gates) as _), ..Handlers::default() },
            ..SessionOptions::default()
        };
        let connecting = tokio::spawn(Session::connect(dial, options));
        let mut peer: Peer = dialled.recv().await.unwrap();
        let Some(Outbound::Send(message)) = peer.outbound.next().await else { panic!("nothing was sent") };
        let id = message.head.id.unwrap();
        peer.sink.deliver(StreamId::Shared, handshake_response(id, era).to_string().into());
        let session = Arc::new(connecting.await.unwrap().unwrap());
        assert_eq!(peer.sent().len(), usize::from(era == Era::Legacy), "`notifications/initialized` is sent");
        // The timer has a resolution of milliseconds, so the test starts at a whole one.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Harness {
            session,
            peer,
            calls: Vec::new(),
            requests: Vec::new(),
            any_woken: Arc::default(),
            epoch: Epoch(0),
            reopening: None,
            reopen_failed_at: None,
            may_end: false,
            closed: false,
            closings: Vec::new(),
            text_count: 0,
            cancelled: Default::default(),
            released: Default::default(),
            list_changes: 0,
            noise_bytes: 0,
            server_requests: Vec::new(),
            responses: HashMap::new(),
            gates,
        }
    }

    pub(super) fn unique_text(&mut self) -> String {
        self.text_count += 1;
        format!("answer {}", self.text_count)
    }

    pub(super) fn start_call(&mut self, spec: CallSpec) {
        let progress = Arc::new(AtomicUsize::new(0));
        let future = start(&self.session, spec, &progress);
        self.calls.push(Call::new(future, spec, progress, &self.any_woken));
    }

    /// Delivers a frame from the server. Returns whether it was solicited.
    pub(super) fn deliver(&self, stream: StreamId, message: &Value) -> bool {
        self.peer.sink.deliver(stream, Bytes::from(message.to_string())) == MessageClass::Solicited
    }

    /// The call with this request in flight.
    pub(super) fn call_in_flight(&mut self, id: RequestId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.waiting().is_some_and(|waiting| waiting.request == id))
    }

    /// Records the outcome of a request. Returns whether the request was in flight.
    pub(super) fn set_outcome(&mut self, id: RequestId, outcome: RequestOutcome) -> bool {
        self.call_in_flight(id).map(|call| call.set_outcome(outcome)).is_some()
    }

    pub(super) fn gate(&self, server_request: &str) -> Arc<Notify> {
        self.gates.gate(server_request)
    }

    pub(super) fn drop_call(&mut self, index: usize) {
        self.read_sent(None);
        let call = &mut self.calls[index];
        match std::mem::replace(&mut call.stage, Stage::Done) {
            Stage::Waiting(waiting) => self.cancelled[1].push(waiting.request),
            Stage::ReopeningSession { .. } => self.stop_reopening(index),
            Stage::Sending | Stage::Ending { .. } | Stage::Done => {}
        }
        self.calls[index].future = None;
        self.read_sent(None);
    }

    /// Records that a call no longer reopens the session, if it was doing so.
    fn stop_reopening(&mut self, call: usize) {
        if let Some(reopening) = self.reopening.take_if(|it| it.call == call)
            && reopening.response.is_none()
        {
            self.released[1].push(reopening.request);
        }
    }

    /// Starts to close the session, with a grace period in milliseconds.
    pub(super) fn close(&mut self, grace: u64) {
        let grace = Duration::from_millis(grace);
        let session = Arc::clone(&self.session);
        let closing =
            Box::pin(tokio::task::unconstrained(async move { session.close(grace).await.to_string() }));
        let flag =
            Arc::new(WakeFlag { woken: AtomicBool::new(true), any_woken: Arc::clone(&self.any_woken) });
        self.closings.push((closing, flag, Instant::now() + grace + TOLERANCE));
        self.may_end = true;
    }

    pub(super) async fn advance(&mut self, millis: u64) {
        let until = Instant::now() + Duration::from_millis(millis);
        let any_woken = Arc::clone(&self.any_woken);
        loop {
            self.update_stages();
            self.poll_woken();
            tokio::select! {
                biased;
                () = any_woken.notified() => {}
                () = tokio::time::sleep_until(until) => break,
            }
        }
        self.settle().await;
    }

    /// Runs all ready tasks, then checks the properties.
    pub(super) async fn settle(&mut self) {
        // A woken task may wake another one, so several rounds without a woken call are needed.
        let mut idle_rounds = 0;
        while idle_rounds < 4 {
            tokio::task::yield_now().await;
            self.read_sent(None);
            self.update_stages();
            idle_rounds = if self.poll_woken() { 0 } else { idle_rounds + 1 };
        }
        self.check();
    }

    /// Updates the model: ends calls whose deadline has passed, and all calls when the connection has ended.
    fn update_stages(&mut self) {
        let has_just_ended = !self.closed && self.session.connection.engine.disconnect().is_some();
        if has_just_ended {
            assert!(self.may_end, "nothing has ended the connection");
            self.closed = true;
        }
        // A close whose grace period ends now may end a call before or after the deadline of the call.
        let is_close_due = self.closings.iter().any(|it| it.2 <= Instant::now() + TOLERANCE);
        for call in &mut self.calls {
            let Some(request) = call.waiting().map(|it| it.request) else { continue };
            let mut texts = Vec::new();
            let due = call.due();
            let is_due = due <= Instant::now();
            if is_due {
                texts.extend(call.expiries());
            }
            if has_just_ended || is_due && is_close_due {
                texts.push("closed".to_owned());
            }
            if !texts.is_empty() {
                call.stage = Stage::Ending { texts, request, due };
            }
        }
    }

    /// Polls woken calls and closes. Returns whether there were any.
    fn poll_woken(&mut self) -> bool {
        let mut any_woken = false;
        for index in 0..self.calls.len() {
            let call = &self.calls[index];
            if call.future.is_some() && call.flag.woken.swap(false, Ordering::Relaxed) {
                any_woken = true;
                self.poll(index);
            }
        }
        self.closings.retain_mut(|(closing, flag, _)| {
            if !flag.woken.swap(false, Ordering::Relaxed) {
                return true;
            }
            any_woken = true;
            let waker = Waker::from(Arc::clone(flag));
            closing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        });
        any_woken
    }

    fn poll(&mut self, index: usize) {
        self.read_sent(None);
        let call = &mut self.calls[index];
        let waker = Waker::from(Arc::clone(&call.flag));
        let polled = call.future.as_mut().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
        let sent = self.read_sent(Some(index));
        let call = &mut self.calls[index];
        match (call.stage.clone(), polled) {
            (Stage::Waiting(_), Poll::Pending) => assert_eq!(sent, None, "it was sent twice"),
            (Stage::Sending, Poll::Pending) => {
                assert!(!self.closed, "the connection is closed");
                let (request, epoch) = sent.expect("it is sent");
                call.record_sent(request, epoch);
            }
            (Stage::Sending, Poll::Ready(text)) => {
                assert!(self.closed && sent.is_none(), "{text}");
                assert_eq!(text, if call.retried { "closed" } else { "not sent" });
                self.end(index);
            }
            (Stage::Ending { texts, request, due }, Poll::Ready(text)) => {
                assert!(
                    texts.contains(&text) && sent.is_none(),
                    "{text} is none of {texts:?}: {:?}",
                    call.spec
                );
                if call.is_expiry(&text) {
                    assert!((due..due + TOLERANCE).contains(&Instant::now()), "not when its deadline passes");
                    self.cancelled[1].push(request);
                }
                self.end(index);
            }
            (Stage::ReopeningSession { epoch, .. }, Poll::Pending) => {
                if let Some((request, request_epoch)) = sent {
                    assert!(request_epoch > epoch, "it was sent to the lost session");
                    call.record_sent(request, request_epoch);
                }
            }
            (Stage::ReopeningSession { since, epoch }, Poll::Ready(text)) => {
                assert_eq!(sent, None);
                let own_attempt = self.reopening.as_ref().filter(|it| it.call == index);
                if call.is_expiry(&text) {
                    assert!(call.expiries().contains(&text) && call.due() <= Instant::now(), "{text}");
                } else if text != "not reopened" {
                    assert!(self.closed && self.epoch > epoch, "{text}");
                    assert_eq!(text, if call.retried { "closed" } else { "not sent" });
                } else {
                    let has_failed = match own_attempt {
                        Some(attempt) => attempt.response == Some(Err(())) || attempt.due <= Instant::now(),
                        None => self.reopen_failed_at.is_some_and(|it| it >= since),
                    };
                    assert!(self.closed || has_failed, "nothing failed");
                    if own_attempt.is_some() {
                        self.reopen_failed_at = Some(Instant::now());
                    }
                }
                // The end of the connection ends the attempt too.
                if let Some(reopening) = self.reopening.as_mut().filter(|_| self.closed) {
                    reopening.response.get_or_insert(Err(()));
                }
                self.stop_reopening(index);
                self.end(index);
            }
            (stage, polled) => panic!("{:?} is {stage:?}, and its poll {polled:?}", call.spec),
        }
    }

    fn end(&mut self, index: usize) {
        self.calls[index].stage = Stage::Done;
        self.calls[index].future = None;
    }

    /// Reads what was sent, and returns the request that `polled_call` has sent. Only polls of calls send requests.
    fn read_sent(&mut self, polled_call: Option<usize>) -> Option<(RequestId, Epoch)> {
        let mut sent_request = None;
        for out in self.peer.sent() {
            match out {
                Outbound::Cancel { id, notice: Some(notice) } => {
                    let notice: Value = serde_json::from_slice(&notice).unwrap();
                    assert_eq!(notice["method"], "notifications/cancelled");
                    assert_eq!(notice["params"]["requestId"], id);
                    self.cancelled[0].push(id);
                }
                Outbound::Cancel { id, notice: None } => self.released[0].push(id),
                Outbound::Send(message) => {
                    match (message.head.id, message.head.method_name().unwrap_or_default(), polled_call) {
                        (Some(request), "initialize", Some(call)) => {
                            assert!(self.reopening.is_none(), "the session is opened twice at once");
                            assert_eq!(message.epoch, Epoch(self.epoch.0 + 1));
                            let due = Instant::now() + STARTUP;
                            let reopening =
                                ReopenAttempt { request, call, epoch: message.epoch, due, response: None };
                            self.reopening = Some(reopening);
                        }
                        (None, "notifications/initialized", Some(call)) => {
                            let reopening = self.reopening.take().expect("a session was opened");
                            assert_eq!((reopening.call, reopening.response), (call, Some(Ok(()))));
                            self.epoch = reopening.epoch;
                            self.list_changes += 1;
                        }
                        (Some(id), _, Some(_)) => {
                            assert_eq!(message.epoch, self.epoch);
                            assert!(self.requests.iter().all(|it| it.0 != id), "an id is given once");
                            assert!(
                                sent_request.replace((id, message.epoch)).is_none(),
                                "two requests at once"
                            );
                            self.requests.push((id, message.epoch));
                        }
                        (None, "", _) => {
                            let response: Value = serde_json::from_slice(&message.body).unwrap();
                            let id = response["id"].as_str().unwrap().to_owned();
                            *self.responses.entry(id).or_default() += 1;
                        }
                        other => panic!("unexpected message: {other:?}"),
                    }
                }
            }
        }
        sent_request
    }

    /// Checks the properties that hold when no task is ready.
    fn check(&self) {
        let mut in_flight = usize::from(self.reopening.is_some());
        for call in &self.calls {
            match &call.stage {
                Stage::Waiting(_) => {
                    assert!(!self.closed && call.due() > Instant::now(), "{:?} is stranded", call.spec);
                    in_flight += 1;
                }
                Stage::ReopeningSession { .. } => {
                    assert!(self.reopening.is_some(), "no call reopens the session for {:?}", call.spec);
                    assert!(!self.closed && call.due() > Instant::now(), "{:?} is stranded", call.spec);
                }
                Stage::Done => {}
                stage @ (Stage::Sending | Stage::Ending { .. }) => {
                    panic!("{:?} was never woken: {stage:?}", call.spec)
                }
            }
            call.check_progress();
        }
        assert_eq!(self.session.connection.engine.in_flight(), (in_flight, in_flight), "calls and permits");
        for [got, want] in [&self.cancelled, &self.released] {
            let [mut got, mut want] = [got.clone(), want.clone()];
            got.sort_unstable();
            want.sort_unstable();
            assert_eq!(got, want, "the cancelled requests");
        }
        for ServerRequest { id, responses, .. } in &self.server_requests {
            let got = self.responses.get(id).copied().unwrap_or(0);
            assert!(responses.is_none_or(|it| it == got), "{id} was answered {got} times, not {responses:?}");
        }
        assert_eq!(
            (self.session.list_changes().borrow().tools, self.session.counters().noise_bytes),
            (self.list_changes, self.noise_bytes)
        );
        assert_eq!(*self.session.state().borrow() == SessionState::Connected, !self.closed);
        assert!(
            self.closings.iter().all(|it| it.2 > Instant::now() && !self.closed),
            "closing takes too long"
        );
    }

    pub(super) fn check_end(&self) {
        assert!(self.closed && self.closings.is_empty());
        assert!(self.calls.iter().all(|it| matches!(it.stage, Stage::Done)));
        assert_eq!(self.session.connection.engine.in_flight(), (0, 0));
        assert!(self.peer.is_dropped());
    }

    /// The requests in flight that a server request on this stream may belong to.
    pub(super) fn affected(&self, stream: StreamId) -> Vec<RequestId> {
        let is_affected = |call: &Call, id| match stream {
            StreamId::Request(request, _) => request == id,
            StreamId::Shared | StreamId::Notifications(_) => call.spec.kind.may_get_server_requests(),
        };
        let in_flight = self.calls.iter().filter_map(|it| Some((it, it.waiting()?.request)));
        in_flight.filter(|(call, id)| is_affected(call, *id)).map(|it| it.1).collect()
    }
}

pub(super) fn handshake_response(id: RequestId, era: Era) -> Value {
    let capabilities = json!({"tools": {}, "prompts": {}, "resources": {}});
    let result = match era {
        Era::Legacy => json!({"protocolVersion": "2025-11-25", "capabilities": capabilities}),
        Era::Modern => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0,
        }),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(super) fn default_spec(kind: CallKind) -> CallSpec {
    CallSpec { kind, deadline: None, idle: None, retry: super::super::RetryPolicy::Never }
}
