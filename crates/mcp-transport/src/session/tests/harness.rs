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
use super::calls::{CallFuture, CallKind, CallSpec, WakeFlag, make};
use super::model::{Call, REQUEST, RequestOutcome, STARTUP, Stage};
use super::peer::{Peer, ScriptedDial, ShutdownBehavior};
use crate::rpc::handlers::{Handlers, RawRequestHandler, RawServerRequest};
use crate::transport::{Dial, Epoch, MessageClass, Outbound, RequestId, StreamId};

/// Tolerance for deadlines: the resolution of the timer.
const GRAIN: Duration = Duration::from_millis(2);

/// A session with its scripted server.
pub(super) struct Harness {
    pub(super) session: Arc<Session>,
    pub(super) peer: Peer,
    pub(super) calls: Vec<Call>,
    /// Every request that a call has sent, with its call.
    pub(super) requests: Vec<(RequestId, Epoch)>,
    any: Arc<Notify>,
    /// The current epoch of the session.
    epoch: Epoch,
    pub(super) reopening: Option<ReopenAttempt>,
    /// When reopening failed.
    failed: Option<Instant>,
    /// Whether an event ended the connection.
    pub(super) may_end: bool,
    pub(super) closed: bool,
    /// The closing task, and the latest time at which it is done.
    closings: Vec<(CallFuture, Arc<WakeFlag>, Instant)>,
    texts: usize,
    /// The requests with a cancel notice, and those cancelled without one, with the expected values.
    cancelled: [Vec<RequestId>; 2],
    released: [Vec<RequestId>; 2],
    pub(super) list_changes_supported: u64,
    pub(super) noise: u64,
    pub(super) server_requests: Vec<ServerRequest>,
    /// How often each server request was answered.
    responses: HashMap<String, usize>,
    gates: Arc<HandlerGates>,
}

/// An `initialize` that reopens the session.
pub(super) struct ReopenAttempt {
    pub(super) request: RequestId,
    /// The call that needs it.
    call: usize,
    epoch: Epoch,
    due: Instant,
    /// Whether it succeeded.
    pub(super) answer: Option<Result<(), ()>>,
}

/// A server request.
pub(super) struct ServerRequest {
    pub(super) id: String,
    /// Its stream, on which it can also be cancelled.
    pub(super) stream: StreamId,
    /// The requests that it may belong to.
    pub(super) affected: Vec<RequestId>,
    pub(super) is_open: bool,
    /// The expected number of responses; `None` if running is no receiver.
    pub(super) responses: Option<usize>,
}

/// A handler that responds when it is allowed to.
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
    /// A session of this era.
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
        let Some(Outbound::Send(message)) = peer.out.next().await else { panic!("nothing was sent") };
        let id = message.head.id.unwrap();
        peer.sink.deliver(StreamId::Shared, handshake_response(id, era).to_string().into());
        let session = Arc::new(connecting.await.unwrap().unwrap());
        assert_eq!(peer.sent().len(), usize::from(era == Era::Legacy), "it is told that it is initialized");
        // The timer has a resolution of milliseconds, so time starts at a list_deadline one.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Harness {
            session,
            peer,
            calls: Vec::new(),
            requests: Vec::new(),
            any: Arc::default(),
            epoch: Epoch(0),
            reopening: None,
            failed: None,
            may_end: false,
            closed: false,
            closings: Vec::new(),
            texts: 0,
            cancelled: Default::default(),
            released: Default::default(),
            list_changes_supported: 0,
            noise: 0,
            server_requests: Vec::new(),
            responses: HashMap::new(),
            gates,
        }
    }

    /// A unique text.
    pub(super) fn text(&mut self) -> String {
        self.texts += 1;
        format!("answer {}", self.texts)
    }

    pub(super) fn start_call(&mut self, spec: CallSpec) {
        let progress = Arc::new(AtomicUsize::new(0));
        let future = make(&self.session, spec, &progress);
        self.calls.push(Call::new(future, spec, progress, &self.any));
    }

    /// The server sends a frame. Returns whether it was solicited.
    pub(super) fn deliver(&self, stream: StreamId, message: &Value) -> bool {
        self.peer.sink.deliver(stream, Bytes::from(message.to_string())) == MessageClass::Solicited
    }

    /// The call with this request in flight.
    pub(super) fn waiting(&mut self, id: RequestId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|it| it.waits().is_some_and(|it| it.request == id))
    }

    /// A request gets an outcome. Returns whether it was in flight.
    pub(super) fn set_outcome(&mut self, id: RequestId, outcome: RequestOutcome) -> bool {
        let call = self.waiting(id);
        call.map(|it| it.set_outcome(outcome)).is_some()
    }

    pub(super) fn gate(&self, server_request: &str) -> Arc<Notify> {
        self.gates.gate(server_request)
    }

    /// A call is dropped.
    pub(super) fn drop_call(&mut self, at: usize) {
        self.read_sent(None);
        let call = &mut self.calls[at];
        match std::mem::replace(&mut call.stage, Stage::Done) {
            Stage::Waiting(waits) => self.cancelled[1].push(waits.request),
            Stage::ReopeningSession { .. } => self.stop_reopening(at),
            Stage::Sending | Stage::Ending { .. } | Stage::Done => {}
        }
        self.calls[at].future = None;
        self.read_sent(None);
    }

    /// A call no longer reopens the session, if it was doing so.
    fn stop_reopening(&mut self, at: usize) {
        if let Some(reopening) = self.reopening.take_if(|it| it.call == at)
            && reopening.answer.is_none()
        {
            self.released[1].push(reopening.request);
        }
    }

    /// The session is closed.
    pub(super) fn close(&mut self, grace: u64) {
        let grace = Duration::from_millis(grace);
        let session = Arc::clone(&self.session);
        let closing =
            Box::pin(tokio::task::unconstrained(async move { session.close(grace).await.to_string() }));
        let flag = Arc::new(WakeFlag { woken: AtomicBool::new(true), any: Arc::clone(&self.any) });
        self.closings.push((closing, flag, Instant::now() + grace + GRAIN));
        self.may_end = true;
    }

    /// Time passes; woken tasks run at once.
    pub(super) async fn advance(&mut self, millis: u64) {
        let until = Instant::now() + Duration::from_millis(millis);
        let any = Arc::clone(&self.any);
        loop {
            self.update_stages();
            self.poll_woken();
            tokio::select! {
                biased;
                () = any.notified() => {}
                () = tokio::time::sleep_until(until) => break,
            }
        }
        self.settle().await;
    }

    /// Runs all ready tasks, then checks the properties.
    pub(super) async fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 4 {
            tokio::task::yield_now().await;
            self.read_sent(None);
            self.update_stages();
            quiet = if self.poll_woken() { 0 } else { quiet + 1 };
        }
        self.check();
    }

    /// Ends calls whose deadline has passed, and all calls when the connection has ended.
    fn update_stages(&mut self) {
        let is_over = !self.closed && self.session.connection.engine.disconnect().is_some();
        if is_over {
            assert!(self.may_end, "nothing has ended the connection");
            self.closed = true;
        }
        // A close whose grace period ends now may be seen before or after the deadline of a call.
        let close_ends = self.closings.iter().any(|it| it.2 <= Instant::now() + GRAIN);
        for call in &mut self.calls {
            let Some(request) = call.waits().map(|it| it.request) else { continue };
            let mut texts = Vec::new();
            let due = call.due();
            let is_due = due <= Instant::now();
            if is_due {
                texts.extend(call.expiries());
            }
            if is_over || is_due && close_ends {
                texts.push("closed".to_owned());
            }
            if !texts.is_empty() {
                call.stage = Stage::Ending { texts, request, due };
            }
        }
    }

    /// Polls woken calls. Returns whether running were any.
    fn poll_woken(&mut self) -> bool {
        let mut res = false;
        for at in 0..self.calls.len() {
            if self.calls[at].future.is_some() && self.calls[at].flag.woken.swap(false, Ordering::Relaxed) {
                res = true;
                self.poll(at);
            }
        }
        self.closings.retain_mut(|(closing, flag, _)| {
            if !flag.woken.swap(false, Ordering::Relaxed) {
                return true;
            }
            res = true;
            let waker = Waker::from(Arc::clone(flag));
            closing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        });
        res
    }

    /// Polls a call and compares it with the model.
    fn poll(&mut self, at: usize) {
        self.read_sent(None);
        let call = &mut self.calls[at];
        let waker = Waker::from(Arc::clone(&call.flag));
        let polled = call.future.as_mut().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
        let sent = self.read_sent(Some(at));
        let call = &mut self.calls[at];
        match (call.stage.clone(), polled) {
            (Stage::Waiting(_), Poll::Pending) => assert_eq!(sent, None, "it was sent twice"),
            (Stage::Sending, Poll::Pending) => {
                assert!(!self.closed, "the connection is closed");
                let (request, epoch) = sent.expect("it is sent");
                call.sent(request, epoch);
            }
            (Stage::Sending, Poll::Ready(word)) => {
                assert!(self.closed && sent.is_none(), "{word}");
                assert_eq!(word, if call.retried { "closed" } else { "not sent" });
                self.end(at);
            }
            (Stage::Ending { texts, request, due }, Poll::Ready(word)) => {
                assert!(
                    texts.contains(&word) && sent.is_none(),
                    "{word} is none of {texts:?}: {:?}",
                    call.spec
                );
                if is_late(&word) {
                    assert!((due..due + GRAIN).contains(&Instant::now()), "not when its deadline passes");
                    self.cancelled[1].push(request);
                }
                self.end(at);
            }
            (Stage::ReopeningSession { epoch, .. }, Poll::Pending) => {
                if let Some((request, own)) = sent {
                    assert!(own > epoch, "it was sent to the lost session");
                    call.sent(request, own);
                }
            }
            (Stage::ReopeningSession { since, epoch }, Poll::Ready(word)) => {
                assert_eq!(sent, None);
                let own = self.reopening.as_ref().filter(|it| it.call == at);
                if is_late(&word) {
                    assert!(call.expiries().contains(&word) && call.due() <= Instant::now(), "{word}");
                } else if word != "not reopened" {
                    assert!(self.closed && self.epoch > epoch, "{word}");
                    assert_eq!(word, if call.retried { "closed" } else { "not sent" });
                } else {
                    let is_due = |it: &ReopenAttempt| it.answer == Some(Err(())) || it.due <= Instant::now();
                    let has_failed = own.map(is_due);
                    let is_told = has_failed.unwrap_or(self.failed.is_some_and(|it| it >= since));
                    assert!(self.closed || is_told, "nothing failed");
                    if has_failed.is_some() {
                        self.failed = Some(Instant::now());
                    }
                }
                // The end of the connection ends it too.
                if let Some(reopening) = self.reopening.as_mut().filter(|_| self.closed) {
                    reopening.answer.get_or_insert(Err(()));
                }
                self.stop_reopening(at);
                self.end(at);
            }
            (stage, polled) => panic!("{:?} is {stage:?}, and its poll {polled:?}", call.spec),
        }
    }

    fn end(&mut self, at: usize) {
        self.calls[at].stage = Stage::Done;
        self.calls[at].future = None;
    }

    /// Reads what was sent. Only polls of calls send requests; returns the request of this one.
    fn read_sent(&mut self, by: Option<usize>) -> Option<(RequestId, Epoch)> {
        let mut res = None;
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
                    match (message.head.id, message.head.method_name().unwrap_or_default(), by) {
                        (Some(request), "initialize", Some(call)) => {
                            assert!(self.reopening.is_none(), "the session is opened twice at once");
                            assert_eq!(message.epoch, Epoch(self.epoch.0 + 1));
                            let due = Instant::now() + STARTUP;
                            let reopening =
                                ReopenAttempt { request, call, epoch: message.epoch, due, answer: None };
                            self.reopening = Some(reopening);
                        }
                        (None, "notifications/initialized", Some(call)) => {
                            let reopening = self.reopening.take().expect("a session was opened");
                            assert_eq!((reopening.call, reopening.answer), (call, Some(Ok(()))));
                            self.epoch = reopening.epoch;
                            // The server may have been replaced.
                            self.list_changes_supported += 1;
                        }
                        (Some(id), _, Some(_)) => {
                            assert_eq!(message.epoch, self.epoch);
                            assert!(self.requests.iter().all(|it| it.0 != id), "an id is given once");
                            assert!(res.replace((id, message.epoch)).is_none(), "two requests at once");
                            self.requests.push((id, message.epoch));
                        }
                        (None, "", _) => {
                            let answer: Value = serde_json::from_slice(&message.body).unwrap();
                            let id = answer["id"].as_str().unwrap().to_owned();
                            *self.responses.entry(id).or_default() += 1;
                        }
                        other => panic!("unexpected message: {other:?}"),
                    }
                }
            }
        }
        res
    }

    /// The properties that hold when no task is ready.
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
                Stage::Done => call.check_progress(),
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
            (self.list_changes_supported, self.noise)
        );
        assert_eq!(*self.session.state().borrow() == SessionState::Connected, !self.closed);
        assert!(
            self.closings.iter().all(|it| it.2 > Instant::now() && !self.closed),
            "closing takes too long"
        );
    }

    /// The properties that hold after the connection has ended.
    pub(super) fn check_end(&self) {
        assert!(self.closed && self.closings.is_empty());
        assert!(self.calls.iter().all(|it| matches!(it.stage, Stage::Done)));
        assert_eq!(self.session.connection.engine.in_flight(), (0, 0));
        assert!(self.peer.is_dropped());
    }

    /// The requests in flight that a server request on this stream may belong to.
    pub(super) fn affected(&self, stream: StreamId) -> Vec<RequestId> {
        let is_affected = |call: &Call, id| match stream {
            StreamId::Request(own, _) => own == id,
            StreamId::Shared | StreamId::Notifications(_) => call.spec.kind.may_get_server_requests(),
        };
        let waiting = self.calls.iter().filter_map(|it| Some((it, it.waits()?.request)));
        waiting.filter(|(call, id)| is_affected(call, *id)).map(|it| it.1).collect()
    }
}

fn is_late(word: &str) -> bool {
    word.starts_with("Absolute") || word.starts_with("Idle")
}

/// The server's response to the handshake.
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

/// A call without options.
pub(super) fn default_spec(kind: CallKind) -> CallSpec {
    CallSpec { kind, deadline: None, idle: None, retry: super::super::RetryPolicy::Never }
}
