//! Interleaving tests of a session: random sequences of events against a [model](model).
//!
//! Each call ends once, at the latest at its deadline, with its own response or with the first event that ends it. A
//! dropped call gets no response, and no state remains. The model is updated by the events only, and compared with the
//! session after each event.
//!
//! `PROPTEST_CASES` sets the number of sequences.

mod calls;
mod handshake;
mod harness;
mod model;
mod peer;

use std::sync::Arc;

use mcp_host_model::{Era, code};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::RetryPolicy;
use crate::error::disconnect::DisconnectReason;
use crate::error::request_error::RequestError;
use crate::transport::{Epoch, RequestId, StreamError, StreamId};
use calls::{CallKind, CallSpec, result};
use harness::{Harness, ServerRequest, default_spec, handshake_response};
use model::{RequestOutcome, Stage};
use peer::ShutdownBehavior;

/// The number of sequences, unless `PROPTEST_CASES` sets it.
const CASES: u32 = 200;

/// A choice among all requests that were sent.
#[derive(Debug, Clone)]
enum RequestChoice {
    /// A request in flight.
    Waiting(Index),
    /// Any request; most have ended.
    Any(Index),
}

/// An event of a sequence.
#[derive(Debug, Clone)]
enum Step {
    StartCall(CallSpec),
    Respond(RequestChoice, Reply),
    /// The server responds to several requests in one frame.
    RespondInBatch(Vec<RequestChoice>),
    UnmatchedMessage(UnmatchedMessage),
    EndStream(RequestChoice, StreamEnd),
    Progress(RequestChoice),
    AnnounceListChange,
    SendServerRequest(ServerRequestKind, Option<Index>),
    /// A handler completes a server request.
    CompleteHandler(Index),
    /// The server cancels a request.
    CancelServerRequest(Index),
    /// The server accepts or refuses the `initialize` that reopens the session.
    RespondToReopen(Result<(), ()>),
    DropCall(Index),
    /// This number of milliseconds passes.
    Advance(u64),
    Disconnect(DisconnectReason),
    /// The session is closed with this grace period in milliseconds.
    Close(u64),
}

/// The kind of a response.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Result,
    /// A result with a cursor, so that another page follows.
    Page,
    Error,
    /// A result that is invalid for every method.
    Invalid,
    /// A result whose id is a string.
    StringId,
    /// An error without an id on the request's own stream.
    WithoutId,
}

/// A message that matches no call.
#[derive(Debug, Clone)]
enum UnmatchedMessage {
    /// A response with this id.
    Id(Value),
    /// A response with the id of another call in the same slot.
    SameSlot(RequestChoice),
    /// A response in a nested batch.
    Nested(RequestChoice),
    /// A result without an id on the stream of this request.
    WithoutId(RequestChoice),
    Noise,
}

/// How a stream fails.
#[derive(Debug, Clone, Copy)]
enum StreamEnd {
    Lost,
    Refused,
    TooLarge,
    NotExecuted,
}

/// The kind of a server request.
#[derive(Debug, Clone, Copy)]
enum ServerRequestKind {
    Ping,
    /// A request without a handler.
    Unknown,
    /// A request whose handler waits for [`Step::CompleteHandler`].
    Handled,
}

fn sequences() -> impl Strategy<Value = (Era, ShutdownBehavior, Vec<(Step, Timing)>)> {
    let era = prop_oneof![3 => Just(Era::Legacy), 1 => Just(Era::Modern)];
    let shutdown_behavior = prop_oneof![
        2 => Just(ShutdownBehavior::Immediate),
        1 => (1u64..40).prop_map(ShutdownBehavior::Delayed),
        1 => Just(ShutdownBehavior::Never),
    ];
    let timing = prop_oneof![Just(Timing::Settled), Just(Timing::Immediate)];
    (era, shutdown_behavior, prop::collection::vec((steps(), timing), 0..100))
}

/// Whether all ready tasks run before the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    Settled,
    Immediate,
}

fn steps() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let choice = || {
        prop_oneof![4 => index().prop_map(RequestChoice::Waiting),
        1 => index().prop_map(RequestChoice::Any)]
    };
    let spec = (
        prop::sample::select(&CallKind::ALL[..]),
        prop::option::of(5u64..100),
        prop::option::weighted(0.4, 3u64..60),
        prop_oneof![Just(RetryPolicy::Never), Just(RetryPolicy::Once)],
    );
    let spec = spec.prop_map(|(kind, deadline, idle, retry)| CallSpec { kind, deadline, idle, retry });
    use Reply::{Error, Invalid, Page, Result, StringId, WithoutId};
    let reply =
        prop::sample::select(vec![Result, Result, Result, Page, Page, Error, Invalid, StringId, WithoutId]);
    let ids =
        [json!(0), json!(1), json!(1.5), json!(-65536), json!(u64::MAX), json!("x"), json!(null), json!([1])];
    let unmatched = prop_oneof![
        prop::sample::select(ids.to_vec()).prop_map(UnmatchedMessage::Id),
        choice().prop_map(UnmatchedMessage::SameSlot),
        choice().prop_map(UnmatchedMessage::Nested),
        choice().prop_map(UnmatchedMessage::WithoutId),
        Just(UnmatchedMessage::Noise),
    ];
    let end = prop::sample::select(vec![
        StreamEnd::Lost,
        StreamEnd::Refused,
        StreamEnd::TooLarge,
        StreamEnd::NotExecuted,
        StreamEnd::NotExecuted,
    ]);
    let kind = prop::sample::select(vec![
        ServerRequestKind::Ping,
        ServerRequestKind::Unknown,
        ServerRequestKind::Unknown,
        ServerRequestKind::Handled,
        ServerRequestKind::Handled,
    ]);
    let reason =
        prop_oneof![Just(DisconnectReason::PeerClosed), Just(DisconnectReason::Broken("broken".to_owned()))];
    prop_oneof![
        40 => spec.prop_map(Step::StartCall),
        26 => (choice(), reply).prop_map(|(choice, reply)| Step::Respond(choice, reply)),
        3 => prop::collection::vec(choice(), 0..4).prop_map(Step::RespondInBatch),
        4 => unmatched.prop_map(Step::UnmatchedMessage),
        16 => (choice(), end).prop_map(|(choice, end)| Step::EndStream(choice, end)),
        4 => choice().prop_map(Step::Progress),
        2 => Just(Step::AnnounceListChange),
        12 => (kind, prop::option::of(index())).prop_map(|(kind, stream)| Step::SendServerRequest(kind, stream)),
        7 => index().prop_map(Step::CompleteHandler),
        2 => index().prop_map(Step::CancelServerRequest),
        16 => prop_oneof![3 => Just(Ok(())), 1 => Just(Err(()))].prop_map(Step::RespondToReopen),
        8 => index().prop_map(Step::DropCall),
        12 => (0u64..30).prop_map(Step::Advance),
        1 => reason.prop_map(Step::Disconnect),
        1 => prop::sample::select(vec![0u64, 20]).prop_map(Step::Close),
    ]
}

impl Harness {
    /// Returns the chosen request; `None` if there is none to choose from.
    fn choose(&self, choice: &RequestChoice) -> Option<(RequestId, Epoch)> {
        let waiting: Vec<_> =
            self.calls.iter().filter_map(|it| it.waiting()).map(|it| (it.request, it.epoch)).collect();
        match choice {
            RequestChoice::Waiting(_) if waiting.is_empty() => None,
            RequestChoice::Waiting(index) => Some(*index.get(&waiting)),
            RequestChoice::Any(_) if self.requests.is_empty() => None,
            RequestChoice::Any(index) => Some(*index.get(&self.requests)),
        }
    }

    async fn apply(&mut self, step: Step) {
        match step {
            Step::StartCall(spec) => self.start_call(spec),
            Step::Respond(choice, reply) => {
                if let Some((id, epoch)) = self.choose(&choice) {
                    self.respond(id, epoch, reply);
                }
            }
            Step::RespondInBatch(choices) => {
                let ids: Vec<RequestId> = choices.iter().filter_map(|it| Some(self.choose(it)?.0)).collect();
                let texts: Vec<String> = ids.iter().map(|_| self.unique_text()).collect();
                let responses =
                    ids.iter().zip(&texts).map(|(id, text)| json!({"id": id, "result": result(text)}));
                let is_solicited = self.deliver(StreamId::Shared, &responses.collect());
                let outcomes = ids
                    .iter()
                    .zip(texts)
                    .map(|(id, text)| self.set_outcome(*id, RequestOutcome::Result(text)));
                let outcomes: Vec<bool> = outcomes.collect();
                assert_eq!(is_solicited, !outcomes.is_empty() && outcomes.into_iter().all(|it| it));
            }
            Step::UnmatchedMessage(unmatched) => self.send_unmatched(&unmatched),
            Step::EndStream(choice, end) => {
                if let Some((id, epoch)) = self.choose(&choice) {
                    self.end_stream(id, epoch, end);
                }
            }
            Step::Progress(choice) => {
                let Some((id, _)) = self.choose(&choice) else { return };
                let params = json!({"progressToken": id, "progress": 0.5});
                self.deliver(
                    StreamId::Shared,
                    &json!({"method": "notifications/progress", "params": params}),
                );
                if let Some(call) = self.call_in_flight(id) {
                    call.record_progress();
                    call.want_progress += usize::from(call.spec.kind != CallKind::Prompts);
                }
            }
            Step::AnnounceListChange => {
                self.settle().await;
                self.deliver(StreamId::Shared, &json!({"method": "notifications/tools/list_changed"}));
                self.list_changes += u64::from(!self.closed);
                self.settle().await;
            }
            Step::SendServerRequest(kind, stream) => {
                self.settle().await;
                self.send_server_request(kind, stream);
                self.settle().await;
            }
            Step::CompleteHandler(_) | Step::CancelServerRequest(_) if self.server_requests.is_empty() => {}
            Step::CompleteHandler(index) => {
                self.settle().await;
                let server_request = index.index(self.server_requests.len());
                self.gate(&self.server_requests[server_request].id).notify_one();
                self.finish_server_request(server_request, 1).await;
            }
            Step::CancelServerRequest(index) => {
                self.settle().await;
                let server_request = index.index(self.server_requests.len());
                let ServerRequest { id, stream, .. } = &self.server_requests[server_request];
                let params = json!({"requestId": id});
                self.deliver(*stream, &json!({"method": "notifications/cancelled", "params": params}));
                self.finish_server_request(server_request, 0).await;
            }
            Step::RespondToReopen(outcome) => {
                let Some(reopening) = self.reopening.as_mut().filter(|it| it.response.is_none()) else {
                    return;
                };
                reopening.response = Some(outcome);
                let message = match outcome {
                    Ok(()) => handshake_response(reopening.request, Era::Legacy),
                    Err(()) => {
                        json!({"id": reopening.request, "error": {"code": code::INTERNAL_ERROR, "message": "no"}})
                    }
                };
                assert!(self.deliver(StreamId::Shared, &message));
            }
            Step::DropCall(index) => {
                let is_running = |it: &usize| self.calls[*it].future.is_some();
                let running: Vec<usize> = (0..self.calls.len()).filter(is_running).collect();
                if !running.is_empty() {
                    self.drop_call(*index.get(&running));
                }
            }
            Step::Advance(millis) => self.advance(millis).await,
            Step::Disconnect(reason) => {
                if let Some(end) = self.peer.end.take() {
                    self.may_end = true;
                    let _ = end.send(reason);
                }
            }
            Step::Close(grace) => self.close(grace),
        }
    }

    fn respond(&mut self, id: RequestId, epoch: Epoch, reply: Reply) {
        let text = self.unique_text();
        let mut message = json!({"jsonrpc": "2.0", "id": id, "result": result(&text)});
        let error = json!({"code": code::INTERNAL_ERROR, "message": text});
        let mut stream = StreamId::Shared;
        let outcome = match reply {
            Reply::Result => RequestOutcome::Result(text),
            Reply::StringId => {
                message["id"] = json!(id.to_string());
                RequestOutcome::Result(text)
            }
            Reply::Page => {
                message["result"]["nextCursor"] = json!(text);
                RequestOutcome::Page(text)
            }
            Reply::Invalid => {
                message["result"] = json!("invalid");
                RequestOutcome::Invalid
            }
            Reply::Error => {
                message = json!({"jsonrpc": "2.0", "id": id, "error": error});
                RequestOutcome::Error(text)
            }
            Reply::WithoutId => {
                message = json!({"jsonrpc": "2.0", "id": null, "error": error});
                stream = StreamId::Request(id, epoch);
                RequestOutcome::Error(text)
            }
        };
        let is_solicited = self.deliver(stream, &message);
        assert_eq!(is_solicited, self.set_outcome(id, outcome), "whether {id} is in flight");
    }

    fn send_unmatched(&mut self, unmatched: &UnmatchedMessage) {
        let answer = |id: Value| json!({"id": id, "result": result("unmatched")});
        let (stream, message) = match unmatched {
            UnmatchedMessage::Id(id) => (StreamId::Shared, answer(id.clone())),
            UnmatchedMessage::SameSlot(choice) => {
                let Some((id, _)) = self.choose(choice) else { return };
                (StreamId::Shared, answer(json!(id + (1 << 40))))
            }
            UnmatchedMessage::Nested(choice) => {
                let Some((id, _)) = self.choose(choice) else { return };
                (StreamId::Shared, json!([[answer(json!(id))]]))
            }
            UnmatchedMessage::WithoutId(choice) => {
                let Some((id, epoch)) = self.choose(choice) else { return };
                (StreamId::Request(id, epoch), answer(Value::Null))
            }
            UnmatchedMessage::Noise => (StreamId::Shared, json!({"jsonrpc": "2.0"})),
        };
        if let UnmatchedMessage::Noise = unmatched {
            self.noise_bytes += message.to_string().len() as u64;
        }
        assert!(!self.deliver(stream, &message), "unsolicited: {message}");
    }

    fn end_stream(&mut self, id: RequestId, epoch: Epoch, end: StreamEnd) {
        let message = self.unique_text();
        let error = RequestError::new(message.clone());
        let is_legacy = self.session.era() == Era::Legacy;
        let (error, outcome) = match end {
            StreamEnd::Lost => (StreamError::Lost(error), RequestOutcome::Lost),
            StreamEnd::TooLarge => (StreamError::TooLarge(7), RequestOutcome::TooLarge),
            // The modern era has no session to lose.
            StreamEnd::NotExecuted if is_legacy => {
                (StreamError::NotExecuted(epoch), RequestOutcome::NotExecuted)
            }
            StreamEnd::Refused | StreamEnd::NotExecuted => {
                (StreamError::Refused(error), RequestOutcome::Error(message))
            }
        };
        self.peer.sink.fail_stream(id, error);
        self.set_outcome(id, outcome);
    }

    fn send_server_request(&mut self, kind: ServerRequestKind, stream: Option<Index>) {
        let id = format!("q{}", self.server_requests.len());
        let stream = stream.and_then(|it| self.choose(&RequestChoice::Waiting(it)));
        let stream = stream.map_or(StreamId::Shared, |(id, epoch)| StreamId::Request(id, epoch));
        let method = match kind {
            ServerRequestKind::Ping => "ping",
            ServerRequestKind::Unknown => "un/known",
            ServerRequestKind::Handled => "elicitation/create",
        };
        self.deliver(stream, &json!({"id": id, "method": method, "params": {"id": id}}));
        let affected = match kind {
            // No handler is involved.
            ServerRequestKind::Ping => Vec::new(),
            ServerRequestKind::Unknown | ServerRequestKind::Handled => self.affected(stream),
        };
        let is_open = matches!(kind, ServerRequestKind::Handled) && !self.closed;
        for request in &affected {
            let call = self.call_in_flight(*request).expect("the request is in flight");
            match (is_open, call.waiting_mut()) {
                (true, Some(waiting)) => waiting.open_server_requests += 1,
                _ => call.record_progress(),
            }
        }
        let responses = (!self.closed).then_some(usize::from(!is_open));
        self.server_requests.push(ServerRequest { id, stream, affected, is_open, responses });
    }

    /// Records that a server request ended with this number of responses, unless it had ended before.
    async fn finish_server_request(&mut self, index: usize, responses: usize) {
        let closed = self.closed;
        let server_request = &mut self.server_requests[index];
        if std::mem::replace(&mut server_request.is_open, false) && !closed {
            server_request.responses = Some(responses);
            for request in server_request.affected.clone() {
                if let Some(call) = self.call_in_flight(request) {
                    if let Some(waiting) = call.waiting_mut() {
                        waiting.open_server_requests -= 1;
                    }
                    call.record_progress();
                }
            }
        }
        self.settle().await;
    }
}

async fn run_sequence((era, shutdown_behavior, steps): (Era, ShutdownBehavior, Vec<(Step, Timing)>)) {
    let mut harness = Harness::open(era, shutdown_behavior).await;
    for (step, timing) in steps {
        harness.apply(step).await;
        if timing == Timing::Settled {
            harness.settle().await;
        }
    }
    // Longer than any deadline.
    harness.advance(250).await;
    assert!(harness.calls.iter().all(|it| matches!(it.stage, Stage::Done)), "each call has ended");
    if !harness.may_end {
        harness.apply(Step::Close(0)).await;
    }
    harness.advance(2_500).await;
    for kind in CallKind::ALL {
        harness.start_call(default_spec(kind));
        harness.settle().await;
    }
    harness.check_end();
    assert_eq!(Arc::strong_count(&harness.session), 1, "no reference to the session remains");
}

/// The number of sequences.
fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { cases: CASES, ..config },
    }
}

/// Runs a sequence in paused time.
fn run_with_paused_time(sequence: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(sequence);
}

#[test]
fn call_ends_by_close_or_deadline_if_both_are_due_at_once() {
    let spec = CallSpec { deadline: Some(17), ..default_spec(CallKind::Tool) };
    let steps = [Step::Close(20), Step::Advance(3), Step::StartCall(spec), Step::Advance(20)];
    let steps = steps.map(|step| (step, Timing::Settled)).to_vec();
    run_with_paused_time(run_sequence((Era::Legacy, ShutdownBehavior::Never, steps)));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn each_call_ends_once_in_time_with_its_own_outcome(sequence in sequences()) {
        run_with_paused_time(run_sequence(sequence));
    }
}
