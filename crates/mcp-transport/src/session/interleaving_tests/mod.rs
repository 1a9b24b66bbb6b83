//! Interleaving tests of a session: random sequences of events against a [model](model).
//!
//! Each call ends once, at the latest at its deadline, with its own response or with the first event that ends it.
//! A dropped call gets no response, and no state remains. The model knows only the events; its state is compared
//! after each event.
//!
//! `PROPTEST_CASES` sets the number of sequences.

mod calls;
mod handshake;
mod harness;
mod model;
mod peer;

use std::sync::Arc;

use mcp_model::{Era, code};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::RetryPolicy;
use crate::error::disconnect::{DisconnectReason, RequestError};
use crate::transport::{Epoch, RequestId, StreamError, StreamId};
use calls::{Kind, Terms, result};
use harness::{Question, World, opened, plain};
use model::{Stage, Told};
use peer::Manners;

/// Number of sequences by default.
const CASES: u32 = 200;

/// A choice among all requests that were sent.
#[derive(Debug, Clone)]
enum Pick {
    /// A request in flight.
    Waiting(Index),
    /// Any request; most have ended.
    Any(Index),
}

#[derive(Debug, Clone)]
enum Step {
    Begin(Terms),
    Answer(Pick, Reply),
    /// Several responses in one frame.
    Batch(Vec<Pick>),
    Stray(Stray),
    LaneEnds(Pick, End),
    Progress(Pick),
    Announce,
    Ask(Asking, Option<Index>),
    /// A handler completes a server request.
    Allow(Index),
    /// The server cancels a request.
    TakeBack(Index),
    /// Reopening the session succeeds or fails.
    Reopen(Result<(), ()>),
    GiveUp(Index),
    /// This number of milliseconds passes.
    Pass(u64),
    Leave(DisconnectReason),
    /// With this grace period in milliseconds.
    Close(u64),
}

/// The kind of response.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Result,
    Page,
    Error,
    /// Not a valid result of any method.
    Odd,
    /// The id is a string.
    Quoted,
    /// An error without an id on the request's own stream.
    Nameless,
}

/// A message that matches no call.
#[derive(Debug, Clone)]
enum Stray {
    /// A response with this id.
    Id(Value),
    /// A response with an id that used the same slot before, or will use it.
    Neighbour(Pick),
    /// A response in a nested batch.
    Nested(Pick),
    /// A result without an id on the stream of this request.
    Nameless(Pick),
    Noise,
}

/// How a stream fails.
#[derive(Debug, Clone, Copy)]
enum End {
    Lost,
    Refused,
    TooLarge,
    NotExecuted,
}

#[derive(Debug, Clone, Copy)]
enum Asking {
    Ping,
    /// A request without a handler.
    Unknown,
    /// A request that takes time.
    Person,
}

fn stories() -> impl Strategy<Value = (Era, Manners, Vec<(Step, Haste)>)> {
    let era = prop_oneof![3 => Just(Era::Legacy), 1 => Just(Era::Modern)];
    let manners = prop_oneof![
        2 => Just(Manners::Polite),
        1 => (1u64..40).prop_map(Manners::Slow),
        1 => Just(Manners::Stubborn),
    ];
    let haste = prop_oneof![Just(Haste::None), Just(Haste::Hurried)];
    (era, manners, prop::collection::vec((steps(), haste), 0..100))
}

/// Whether tasks run before the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Haste {
    None,
    Hurried,
}

fn steps() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let pick = || prop_oneof![4 => index().prop_map(Pick::Waiting), 1 => index().prop_map(Pick::Any)];
    let terms = (
        prop::sample::select(&Kind::ALL[..]),
        prop::option::of(5u64..100),
        prop::option::weighted(0.4, 3u64..60),
        prop_oneof![Just(RetryPolicy::Never), Just(RetryPolicy::Once)],
    );
    let terms = terms.prop_map(|(kind, deadline, idle, replay)| Terms { kind, deadline, idle, replay });
    use Reply::{Error, Nameless, Odd, Page, Quoted, Result};
    let reply = prop::sample::select(vec![Result, Result, Result, Page, Page, Error, Odd, Quoted, Nameless]);
    let ids =
        [json!(0), json!(1), json!(1.5), json!(-65536), json!(u64::MAX), json!("x"), json!(null), json!([1])];
    let stray = prop_oneof![
        prop::sample::select(ids.to_vec()).prop_map(Stray::Id),
        pick().prop_map(Stray::Neighbour),
        pick().prop_map(Stray::Nested),
        pick().prop_map(Stray::Nameless),
        Just(Stray::Noise),
    ];
    let end = prop::sample::select(vec![
        End::Lost,
        End::Refused,
        End::TooLarge,
        End::NotExecuted,
        End::NotExecuted,
    ]);
    let asking = prop::sample::select(vec![
        Asking::Ping,
        Asking::Unknown,
        Asking::Unknown,
        Asking::Person,
        Asking::Person,
    ]);
    let reason =
        prop_oneof![Just(DisconnectReason::PeerClosed), Just(DisconnectReason::Broken("broken".to_owned()))];
    prop_oneof![
        40 => terms.prop_map(Step::Begin),
        26 => (pick(), reply).prop_map(|(pick, reply)| Step::Answer(pick, reply)),
        3 => prop::collection::vec(pick(), 0..4).prop_map(Step::Batch),
        4 => stray.prop_map(Step::Stray),
        16 => (pick(), end).prop_map(|(pick, end)| Step::LaneEnds(pick, end)),
        4 => pick().prop_map(Step::Progress),
        2 => Just(Step::Announce),
        12 => (asking, prop::option::of(index())).prop_map(|(asking, lane)| Step::Ask(asking, lane)),
        7 => index().prop_map(Step::Allow),
        2 => index().prop_map(Step::TakeBack),
        16 => prop_oneof![3 => Just(Ok(())), 1 => Just(Err(()))].prop_map(Step::Reopen),
        8 => index().prop_map(Step::GiveUp),
        12 => (0u64..30).prop_map(Step::Pass),
        1 => reason.prop_map(Step::Leave),
        1 => prop::sample::select(vec![0u64, 20]).prop_map(Step::Close),
    ]
}

impl World {
    fn pick(&self, pick: &Pick) -> Option<(RequestId, Epoch)> {
        let waiting: Vec<_> =
            self.calls.iter().filter_map(|it| it.waits()).map(|it| (it.request, it.epoch)).collect();
        match pick {
            Pick::Waiting(_) if waiting.is_empty() => None,
            Pick::Waiting(index) => Some(*index.get(&waiting)),
            Pick::Any(_) if self.requests.is_empty() => None,
            Pick::Any(index) => Some(*index.get(&self.requests)),
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Begin(terms) => self.begin(terms),
            Step::Answer(pick, reply) => {
                if let Some((id, epoch)) = self.pick(&pick) {
                    self.answer(id, epoch, reply);
                }
            }
            Step::Batch(picks) => {
                let ids: Vec<RequestId> = picks.iter().filter_map(|it| Some(self.pick(it)?.0)).collect();
                let texts: Vec<String> = ids.iter().map(|_| self.text()).collect();
                let answers =
                    ids.iter().zip(&texts).map(|(id, text)| json!({"id": id, "result": result(text)}));
                let awaited = self.deliver(StreamId::Shared, &answers.collect());
                let told = ids.iter().zip(texts).map(|(id, text)| self.tell(*id, Told::Result(text)));
                let told: Vec<bool> = told.collect();
                assert_eq!(awaited, !told.is_empty() && told.into_iter().all(|it| it));
            }
            Step::Stray(stray) => self.stray(&stray),
            Step::LaneEnds(pick, end) => {
                if let Some((id, epoch)) = self.pick(&pick) {
                    self.end_lane(id, epoch, end);
                }
            }
            Step::Progress(pick) => {
                let Some((id, _)) = self.pick(&pick) else { return };
                let params = json!({"progressToken": id, "progress": 0.5});
                self.deliver(
                    StreamId::Shared,
                    &json!({"method": "notifications/progress", "params": params}),
                );
                if let Some(call) = self.waiting(id) {
                    call.heard();
                    call.want_progress += usize::from(call.terms.kind != Kind::Prompts);
                }
            }
            Step::Announce => {
                self.settle().await;
                self.deliver(StreamId::Shared, &json!({"method": "notifications/tools/list_changed"}));
                self.list_changes_supported += u64::from(!self.closed);
                self.settle().await;
            }
            Step::Ask(asking, lane) => {
                self.settle().await;
                self.ask(asking, lane);
                self.settle().await;
            }
            Step::Allow(_) | Step::TakeBack(_) if self.questions.is_empty() => {}
            Step::Allow(index) => {
                self.settle().await;
                let question = index.index(self.questions.len());
                self.gate(&self.questions[question].id).notify_one();
                self.settle_question(question, 1).await;
            }
            Step::TakeBack(index) => {
                self.settle().await;
                let question = index.index(self.questions.len());
                let Question { id, lane, .. } = &self.questions[question];
                let params = json!({"requestId": id});
                self.deliver(*lane, &json!({"method": "notifications/cancelled", "params": params}));
                self.settle_question(question, 0).await;
            }
            Step::Reopen(outcome) => {
                let Some(opening) = self.opening.as_mut().filter(|it| it.answer.is_none()) else { return };
                opening.answer = Some(outcome);
                let message = match outcome {
                    Ok(()) => opened(opening.request, Era::Legacy),
                    Err(()) => {
                        json!({"id": opening.request, "error": {"code": code::INTERNAL_ERROR, "message": "no"}})
                    }
                };
                assert!(self.deliver(StreamId::Shared, &message));
            }
            Step::GiveUp(index) => {
                let there = |it: &usize| self.calls[*it].making.is_some();
                let there: Vec<usize> = (0..self.calls.len()).filter(there).collect();
                if !there.is_empty() {
                    self.give_up(*index.get(&there));
                }
            }
            Step::Pass(millis) => self.pass(millis).await,
            Step::Leave(reason) => {
                if let Some(end) = self.peer.end.take() {
                    self.may_end = true;
                    let _ = end.send(reason);
                }
            }
            Step::Close(grace) => self.close(grace),
        }
    }

    fn answer(&mut self, id: RequestId, epoch: Epoch, reply: Reply) {
        let text = self.text();
        let mut message = json!({"jsonrpc": "2.0", "id": id, "result": result(&text)});
        let error = json!({"code": code::INTERNAL_ERROR, "message": text});
        let mut lane = StreamId::Shared;
        let told = match reply {
            Reply::Result => Told::Result(text),
            Reply::Quoted => {
                message["id"] = json!(id.to_string());
                Told::Result(text)
            }
            Reply::Page => {
                message["result"]["nextCursor"] = json!(text);
                Told::Page(text)
            }
            Reply::Odd => {
                message["result"] = json!("odd");
                Told::Odd
            }
            Reply::Error => {
                message = json!({"jsonrpc": "2.0", "id": id, "error": error});
                Told::Error(text)
            }
            Reply::Nameless => {
                message = json!({"jsonrpc": "2.0", "id": null, "error": error});
                lane = StreamId::Request(id, epoch);
                Told::Error(text)
            }
        };
        let awaited = self.deliver(lane, &message);
        assert_eq!(awaited, self.tell(id, told), "whether anybody waits for {id}");
    }

    fn stray(&mut self, stray: &Stray) {
        let answer = |id: Value| json!({"id": id, "result": result("a stray")});
        let (lane, message) = match stray {
            Stray::Id(id) => (StreamId::Shared, answer(id.clone())),
            Stray::Neighbour(pick) => {
                let Some((id, _)) = self.pick(pick) else { return };
                (StreamId::Shared, answer(json!(id + (1 << 40))))
            }
            Stray::Nested(pick) => {
                let Some((id, _)) = self.pick(pick) else { return };
                (StreamId::Shared, json!([[answer(json!(id))]]))
            }
            Stray::Nameless(pick) => {
                let Some((id, epoch)) = self.pick(pick) else { return };
                (StreamId::Request(id, epoch), answer(Value::Null))
            }
            Stray::Noise => (StreamId::Shared, json!({"jsonrpc": "2.0"})),
        };
        if let Stray::Noise = stray {
            self.noise += message.to_string().len() as u64;
        }
        assert!(!self.deliver(lane, &message), "nobody waits for {message}");
    }

    fn end_lane(&mut self, id: RequestId, epoch: Epoch, end: End) {
        let message = self.text();
        let fault = RequestError { status: None, message: message.clone(), error: None };
        let is_legacy = self.session.era() == Era::Legacy;
        let (why, told) = match end {
            End::Lost => (StreamError::Lost(fault), Told::Lost),
            End::TooLarge => (StreamError::TooLarge(7), Told::TooLarge),
            // The modern era has no session to lose.
            End::NotExecuted if is_legacy => (StreamError::NotExecuted(epoch), Told::NotExecuted),
            End::Refused | End::NotExecuted => (StreamError::Refused(fault), Told::Error(message)),
        };
        self.peer.inbox.stream_failed(id, why);
        self.tell(id, told);
    }

    fn ask(&mut self, asking: Asking, lane: Option<Index>) {
        let id = format!("q{}", self.questions.len());
        let lane = lane.and_then(|it| self.pick(&Pick::Waiting(it)));
        let lane = lane.map_or(StreamId::Shared, |(id, epoch)| StreamId::Request(id, epoch));
        let method = match asking {
            Asking::Ping => "ping",
            Asking::Unknown => "un/known",
            Asking::Person => "elicitation/create",
        };
        self.deliver(lane, &json!({"id": id, "method": method, "params": {"id": id}}));
        let about = match asking {
            // No handler is involved.
            Asking::Ping => Vec::new(),
            Asking::Unknown | Asking::Person => self.about(lane),
        };
        let is_open = matches!(asking, Asking::Person) && !self.closed;
        for request in &about {
            let call = self.waiting(*request).expect("that is what was looked for");
            match (is_open, call.waits_mut()) {
                (true, Some(waits)) => waits.asked += 1,
                _ => call.heard(),
            }
        }
        let answers = (!self.closed).then_some(usize::from(!is_open));
        self.questions.push(Question { id, lane, about, is_open, answers });
    }

    /// A server request ended with this number of responses, unless it had ended before.
    async fn settle_question(&mut self, at: usize, answers: usize) {
        let closed = self.closed;
        let question = &mut self.questions[at];
        if std::mem::replace(&mut question.is_open, false) && !closed {
            question.answers = Some(answers);
            for request in question.about.clone() {
                if let Some(call) = self.waiting(request) {
                    if let Some(waits) = call.waits_mut() {
                        waits.asked -= 1;
                    }
                    call.heard();
                }
            }
        }
        self.settle().await;
    }
}

async fn tell((era, manners, steps): (Era, Manners, Vec<(Step, Haste)>)) {
    let mut world = World::open(era, manners).await;
    for (step, haste) in steps {
        world.take(step).await;
        if haste == Haste::None {
            world.settle().await;
        }
    }
    // Everything still in progress ends by its deadline.
    world.pass(250).await;
    assert!(world.calls.iter().all(|it| matches!(it.stage, Stage::Over)), "each call has had its time");
    if !world.may_end {
        world.take(Step::Close(0)).await;
    }
    world.pass(2_500).await;
    for kind in Kind::ALL {
        world.begin(plain(kind));
        world.settle().await;
    }
    world.check_end();
    assert_eq!(Arc::strong_count(&world.session), 1, "nobody has it any more");
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
fn on_a_paused_clock(story: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(story);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn each_call_ends_once_in_time_with_its_own_outcome(story in stories()) {
        on_a_paused_clock(tell(story));
    }
}
