//! A session with a scripted server, and the properties that must hold.
//!
//! No task runs between two events unless [`World::settle`] is awaited, so simultaneous events may come in any order.
//! Each poll of a call is compared with the [model](super::model): what it sends and how it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_model::{Era, Limits, RawJson, RpcError};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::super::{Eras, Session, SessionOptions, SessionState};
use super::calls::{Flag, Kind, Making, Terms, make};
use super::model::{Call, REQUEST, STARTUP, Stage, Told};
use super::peer::{Hand, Manners, Peer};
use crate::rpc::handlers::{Handlers, RawRequestHandler, RawServerRequest};
use crate::transport::{Dial, Epoch, MessageClass, Outbound, RequestId, StreamId};

/// Tolerance for deadlines: the resolution of the timer.
const GRAIN: Duration = Duration::from_millis(2);

/// A session with its scripted server.
pub(super) struct World {
    pub(super) session: Arc<Session>,
    pub(super) peer: Peer,
    pub(super) calls: Vec<Call>,
    /// Every request that a call has sent, with its call.
    pub(super) requests: Vec<(RequestId, Epoch)>,
    any: Arc<Notify>,
    /// The current epoch of the session.
    epoch: Epoch,
    pub(super) opening: Option<Reopening>,
    /// When reopening failed.
    failed: Option<Instant>,
    /// Whether an event ended the connection.
    pub(super) may_end: bool,
    pub(super) closed: bool,
    /// The closing task, and the latest time at which it is done.
    closings: Vec<(Making, Arc<Flag>, Instant)>,
    texts: usize,
    /// The requests with a cancel notice, and those cancelled without one, with the expected values.
    cancelled: [Vec<RequestId>; 2],
    let_go: [Vec<RequestId>; 2],
    pub(super) list_changes_supported: u64,
    pub(super) noise: u64,
    pub(super) questions: Vec<Question>,
    /// How often each server request was answered.
    answers: HashMap<String, usize>,
    held: Arc<QueuePermit>,
}

/// An `initialize` that reopens the session.
pub(super) struct Reopening {
    pub(super) request: RequestId,
    /// The call that needs it.
    call: usize,
    epoch: Epoch,
    due: Instant,
    /// Whether it succeeded.
    pub(super) answer: Option<Result<(), ()>>,
}

/// A server request.
pub(super) struct Question {
    pub(super) id: String,
    /// Its stream, on which it can also be cancelled.
    pub(super) lane: StreamId,
    /// The requests that it may belong to.
    pub(super) about: Vec<RequestId>,
    pub(super) is_open: bool,
    /// The expected number of responses; `None` if there is no receiver.
    pub(super) answers: Option<usize>,
}

/// A handler that responds when it is allowed to.
#[derive(Default)]
pub(super) struct QueuePermit(Mutex<HashMap<String, Arc<Notify>>>);

impl QueuePermit {
    pub(super) fn gate(&self, id: &str) -> Arc<Notify> {
        Arc::clone(self.0.lock().unwrap().entry(id.to_owned()).or_default())
    }
}

#[async_trait]
impl RawRequestHandler for QueuePermit {
    fn handles(&self, method: &str) -> bool {
        method == "elicitation/create"
    }

    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError> {
        let params: Value = question.params.read().unwrap();
        self.gate(params["id"].as_str().unwrap()).notified().await;
        Ok(question.params)
    }
}

impl World {
    /// A session of this era.
    pub(super) async fn open(era: Era, manners: Manners) -> World {
        let (peers, mut dialled) = mpsc::unbounded_channel();
        let dial: Arc<dyn Dial> = Arc::new(Hand { peers, manners });
        let held = Arc::new(QueuePermit::default());
        let options = SessionOptions {
            eras: match era {
                Era::Legacy => Eras::Legacy,
                Era::Modern => Eras::Modern,
            },
            limits: Limits { request: REQUEST, startup: STARTUP, ..Limits::default() },
            handlers: Handlers { raw_requests: Some(Arc::clone(&held) as _), ..Handlers::default() },
            ..SessionOptions::default()
        };
        let connecting = tokio::spawn(Session::connect(dial, options));
        let mut peer: Peer = dialled.recv().await.unwrap();
        let Some(Outbound::Send(message)) = peer.out.next().await else { panic!("nothing was sent") };
        let id = message.head.id.unwrap();
        peer.inbox.deliver(StreamId::Shared, opened(id, era).to_string().into());
        let session = Arc::new(connecting.await.unwrap().unwrap());
        assert_eq!(peer.sent().len(), usize::from(era == Era::Legacy), "it is told that it is initialized");
        // The timer has a resolution of milliseconds, so time starts at a whole one.
        tokio::time::sleep(Duration::from_millis(1)).await;
        World {
            session,
            peer,
            calls: Vec::new(),
            requests: Vec::new(),
            any: Arc::default(),
            epoch: Epoch(0),
            opening: None,
            failed: None,
            may_end: false,
            closed: false,
            closings: Vec::new(),
            texts: 0,
            cancelled: Default::default(),
            let_go: Default::default(),
            list_changes_supported: 0,
            noise: 0,
            questions: Vec::new(),
            answers: HashMap::new(),
            held,
        }
    }

    /// A unique text.
    pub(super) fn text(&mut self) -> String {
        self.texts += 1;
        format!("answer {}", self.texts)
    }

    pub(super) fn begin(&mut self, terms: Terms) {
        let progress = Arc::new(AtomicUsize::new(0));
        let making = make(&self.session, terms, &progress);
        self.calls.push(Call::new(making, terms, progress, &self.any));
    }

    /// The server sends a frame. Returns whether it was solicited.
    pub(super) fn deliver(&self, lane: StreamId, message: &Value) -> bool {
        self.peer.inbox.deliver(lane, Bytes::from(message.to_string())) == MessageClass::Solicited
    }

    /// The call with this request in flight.
    pub(super) fn waiting(&mut self, id: RequestId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|it| it.waits().is_some_and(|it| it.request == id))
    }

    /// A request gets an outcome. Returns whether it was in flight.
    pub(super) fn tell(&mut self, id: RequestId, told: Told) -> bool {
        let call = self.waiting(id);
        call.map(|it| it.tell(told)).is_some()
    }

    pub(super) fn gate(&self, question: &str) -> Arc<Notify> {
        self.held.gate(question)
    }

    /// A call is dropped.
    pub(super) fn give_up(&mut self, at: usize) {
        self.drain(None);
        let call = &mut self.calls[at];
        match std::mem::replace(&mut call.stage, Stage::Over) {
            Stage::Waits(waits) => self.cancelled[1].push(waits.request),
            Stage::Reopens { .. } => self.leave_opening(at),
            Stage::Sends | Stage::Ends { .. } | Stage::Over => {}
        }
        self.calls[at].making = None;
        self.drain(None);
    }

    /// A call no longer reopens the session, if it was doing so.
    fn leave_opening(&mut self, at: usize) {
        if let Some(opening) = self.opening.take_if(|it| it.call == at)
            && opening.answer.is_none()
        {
            self.let_go[1].push(opening.request);
        }
    }

    /// The session is closed.
    pub(super) fn close(&mut self, grace: u64) {
        let grace = Duration::from_millis(grace);
        let session = Arc::clone(&self.session);
        let closing =
            Box::pin(tokio::task::unconstrained(async move { session.close(grace).await.to_string() }));
        let flag = Arc::new(Flag { woken: AtomicBool::new(true), any: Arc::clone(&self.any) });
        self.closings.push((closing, flag, Instant::now() + grace + Duration::from_secs(2)));
        self.may_end = true;
    }

    /// Time passes; woken tasks run at once.
    pub(super) async fn pass(&mut self, millis: u64) {
        let until = Instant::now() + Duration::from_millis(millis);
        let any = Arc::clone(&self.any);
        loop {
            self.look();
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
            self.drain(None);
            self.look();
            quiet = if self.poll_woken() { 0 } else { quiet + 1 };
        }
        self.check();
    }

    /// Ends calls whose deadline has passed, and all calls when the connection has ended.
    fn look(&mut self) {
        let is_over = !self.closed && self.session.connection.engine().disconnect().is_some();
        if is_over {
            assert!(self.may_end, "nothing has ended the connection");
            self.closed = true;
        }
        for call in &mut self.calls {
            let Some(request) = call.waits().map(|it| it.request) else { continue };
            let mut words = Vec::new();
            let due = call.due();
            if due <= Instant::now() {
                words.extend(call.expiries());
            }
            if is_over {
                words.push("closed".to_owned());
            }
            if !words.is_empty() {
                call.stage = Stage::Ends { words, request, due };
            }
        }
    }

    /// Polls woken calls. Returns whether there were any.
    fn poll_woken(&mut self) -> bool {
        let mut res = false;
        for at in 0..self.calls.len() {
            if self.calls[at].making.is_some() && self.calls[at].flag.woken.swap(false, Ordering::Relaxed) {
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
        self.drain(None);
        let call = &mut self.calls[at];
        let waker = Waker::from(Arc::clone(&call.flag));
        let polled = call.making.as_mut().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
        let sent = self.drain(Some(at));
        let call = &mut self.calls[at];
        match (call.stage.clone(), polled) {
            (Stage::Waits(_), Poll::Pending) => assert_eq!(sent, None, "it was sent twice"),
            (Stage::Sends, Poll::Pending) => {
                assert!(!self.closed, "nobody is there to wait for");
                let (request, epoch) = sent.expect("it is sent");
                call.sent(request, epoch);
            }
            (Stage::Sends, Poll::Ready(word)) => {
                assert!(self.closed && sent.is_none(), "{word}");
                assert_eq!(word, if call.repeated { "closed" } else { "not sent" });
                self.end(at);
            }
            (Stage::Ends { words, request, due }, Poll::Ready(word)) => {
                assert!(
                    words.contains(&word) && sent.is_none(),
                    "{word} is none of {words:?}: {:?}",
                    call.terms
                );
                if is_late(&word) {
                    assert!((due..due + GRAIN).contains(&Instant::now()), "not when its deadline passes");
                    self.cancelled[1].push(request);
                }
                self.end(at);
            }
            (Stage::Reopens { epoch, .. }, Poll::Pending) => {
                if let Some((request, own)) = sent {
                    assert!(own > epoch, "it was sent to the session that is forgotten");
                    call.sent(request, own);
                }
            }
            (Stage::Reopens { asked, epoch }, Poll::Ready(word)) => {
                assert_eq!(sent, None);
                let own = self.opening.as_ref().filter(|it| it.call == at);
                if is_late(&word) {
                    assert!(call.expiries().contains(&word) && call.due() <= Instant::now(), "{word}");
                } else if word != "not opened again" {
                    assert!(self.closed && self.epoch > epoch, "{word}");
                    assert_eq!(word, if call.repeated { "closed" } else { "not sent" });
                } else {
                    let is_due = |it: &Reopening| it.answer == Some(Err(())) || it.due <= Instant::now();
                    let has_failed = own.map(is_due);
                    let is_told = has_failed.unwrap_or(self.failed.is_some_and(|it| it >= asked));
                    assert!(self.closed || is_told, "nothing failed");
                    if has_failed.is_some() {
                        self.failed = Some(Instant::now());
                    }
                }
                // The end of the connection ends it too.
                if let Some(opening) = self.opening.as_mut().filter(|_| self.closed) {
                    opening.answer.get_or_insert(Err(()));
                }
                self.leave_opening(at);
                self.end(at);
            }
            (stage, polled) => panic!("{:?} is {stage:?}, and its poll {polled:?}", call.terms),
        }
    }

    fn end(&mut self, at: usize) {
        self.calls[at].stage = Stage::Over;
        self.calls[at].making = None;
    }

    /// Reads what was sent. Only polls of calls send requests; returns the request of this one.
    fn drain(&mut self, by: Option<usize>) -> Option<(RequestId, Epoch)> {
        let mut res = None;
        for out in self.peer.sent() {
            match out {
                Outbound::Cancel { id, notice: Some(notice) } => {
                    let notice: Value = serde_json::from_slice(&notice).unwrap();
                    assert_eq!(notice["method"], "notifications/cancelled");
                    assert_eq!(notice["params"]["requestId"], id);
                    self.cancelled[0].push(id);
                }
                Outbound::Cancel { id, notice: None } => self.let_go[0].push(id),
                Outbound::Send(message) => match (message.head.id, &*message.head.method, by) {
                    (Some(request), "initialize", Some(call)) => {
                        assert!(self.opening.is_none(), "the session is opened twice at once");
                        assert_eq!(message.epoch, Epoch(self.epoch.0 + 1));
                        let due = Instant::now() + STARTUP;
                        let opening = Reopening { request, call, epoch: message.epoch, due, answer: None };
                        self.opening = Some(opening);
                    }
                    (None, "notifications/initialized", Some(call)) => {
                        let opening = self.opening.take().expect("a session was opened");
                        assert_eq!((opening.call, opening.answer), (call, Some(Ok(()))));
                        self.epoch = opening.epoch;
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
                        *self.answers.entry(id).or_default() += 1;
                    }
                    other => panic!("nobody sends that: {other:?}"),
                },
            }
        }
        res
    }

    /// The properties that hold when no task is ready.
    fn check(&self) {
        let mut in_flight = usize::from(self.opening.is_some());
        for call in &self.calls {
            match &call.stage {
                Stage::Waits(_) => {
                    assert!(!self.closed && call.due() > Instant::now(), "{:?} is stranded", call.terms);
                    in_flight += 1;
                }
                Stage::Reopens { .. } => {
                    assert!(self.opening.is_some(), "nobody opens the session that {:?} needs", call.terms);
                    assert!(!self.closed && call.due() > Instant::now(), "{:?} is stranded", call.terms);
                }
                Stage::Over => call.check_progress(),
                stage @ (Stage::Sends | Stage::Ends { .. }) => {
                    panic!("{:?} was never woken: {stage:?}", call.terms)
                }
            }
            call.check_progress();
        }
        assert_eq!(self.session.connection.engine().in_flight(), (in_flight, in_flight), "calls and permits");
        for [got, want] in [&self.cancelled, &self.let_go] {
            let [mut got, mut want] = [got.clone(), want.clone()];
            got.sort_unstable();
            want.sort_unstable();
            assert_eq!(got, want, "who was given up");
        }
        for Question { id, answers, .. } in &self.questions {
            let got = self.answers.get(id).copied().unwrap_or(0);
            assert!(answers.is_none_or(|it| it == got), "{id} was answered {got} times, not {answers:?}");
        }
        assert_eq!(
            (self.session.list_changes().borrow().tools, self.session.counters().0),
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
        assert!(self.calls.iter().all(|it| matches!(it.stage, Stage::Over)));
        assert_eq!(self.session.connection.engine().in_flight(), (0, 0));
        assert!(self.peer.is_gone());
    }

    /// The requests in flight that a server request on this stream may belong to.
    pub(super) fn about(&self, lane: StreamId) -> Vec<RequestId> {
        let is_meant = |call: &Call, id| match lane {
            StreamId::Request(own, _) => own == id,
            StreamId::Shared | StreamId::Notifications(_) => call.terms.kind.has_stake(),
        };
        let waiting = self.calls.iter().filter_map(|it| Some((it, it.waits()?.request)));
        waiting.filter(|(call, id)| is_meant(call, *id)).map(|it| it.1).collect()
    }
}

fn is_late(word: &str) -> bool {
    word.starts_with("Absolute") || word.starts_with("Idle")
}

/// The server's response to the handshake.
pub(super) fn opened(id: RequestId, era: Era) -> Value {
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
pub(super) fn plain(kind: Kind) -> Terms {
    Terms { kind, deadline: None, idle: None, replay: super::super::RetryPolicy::Never }
}
