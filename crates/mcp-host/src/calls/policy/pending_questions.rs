//! Questions that wait for an answer from outside, for example from another terminal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::calls::policy::question::{
    AnswerFuture, AnswerScope, ApprovalPrompt, CallAnswer, CallQuestion, NoAnswer,
};

/// The maximum number of questions.
const MAX_QUESTIONS: usize = 256;

/// The maximum number of questions of one user and dialog, so that others can ask too.
const MAX_QUESTIONS_OF_CALLER: usize = 16;

/// Questions that wait for an answer. Cheap to clone.
#[derive(Clone, Default)]
pub struct PendingQuestions(Arc<Shared>);

/// A question that waits for an answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingQuestion {
    /// Its number, which is not used again.
    pub id: u64,
    /// The question.
    pub question: Arc<CallQuestion>,
    /// When it was asked.
    pub asked_at: SystemTime,
}

/// The state that clones of [`PendingQuestions`] share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Changes with each question that is added or removed.
    changes: watch::Sender<u64>,
}

/// The open questions.
#[derive(Default)]
struct State {
    /// The id of the last question.
    last_id: u64,
    /// The open questions by id.
    waiting: BTreeMap<u64, Waiting>,
}

/// A question, and where its answer is sent.
struct Waiting {
    question: PendingQuestion,
    reply: oneshot::Sender<CallAnswer>,
}

/// Removes a question when its call ends.
struct QuestionGuard {
    shared: Arc<Shared>,
    id: u64,
}

impl PendingQuestions {
    /// Creates an empty list.
    pub fn new() -> PendingQuestions {
        PendingQuestions::default()
    }

    /// Returns all questions, oldest first.
    pub fn list(&self) -> Vec<PendingQuestion> {
        self.0.state.lock().waiting.values().map(|it| it.question.clone()).collect()
    }

    /// Answers a question. An answer for more than one call also answers the other questions that it is about. Returns
    /// the number of answered questions: 0 if there is no such question (any more).
    pub fn answer(&self, id: u64, answer: CallAnswer) -> usize {
        let mut state = self.0.state.lock();
        let Some(asked) = state.waiting.get(&id).map(|it| Arc::clone(&it.question.question)) else {
            return 0;
        };
        let is_same = |it: &Waiting| {
            let other = &it.question.question;
            other.subject == asked.subject
                && match answer.scope {
                    AnswerScope::Once => false,
                    AnswerScope::Session => other.dialog == asked.dialog,
                    AnswerScope::Always => true,
                }
        };
        let answered: Vec<u64> =
            state.waiting.iter().filter(|(other, it)| **other == id || is_same(it)).map(|it| *it.0).collect();
        let count = answered.len();
        for id in answered {
            if let Some(waiting) = state.waiting.remove(&id) {
                // The call may have ended.
                let _ = waiting.reply.send(answer);
            }
        }
        drop(state);
        self.0.notify();
        count
    }

    /// Returns a receiver that is notified of each change of the list.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Adds a question. Fails if too many wait.
    fn add(
        &self,
        question: Arc<CallQuestion>,
    ) -> Result<(QuestionGuard, oneshot::Receiver<CallAnswer>), NoAnswer> {
        let mut state = self.0.state.lock();
        let of_caller = state.waiting.values().filter(|it| {
            let other = &it.question.question;
            (&other.user, &other.dialog) == (&question.user, &question.dialog)
        });
        if state.waiting.len() >= MAX_QUESTIONS || of_caller.count() >= MAX_QUESTIONS_OF_CALLER {
            return Err(NoAnswer::new("too many calls wait for an approval"));
        }
        state.last_id += 1;
        let id = state.last_id;
        let (reply, answer) = oneshot::channel();
        let question = PendingQuestion { id, question, asked_at: SystemTime::now() };
        state.waiting.insert(id, Waiting { question, reply });
        drop(state);
        self.0.notify();
        Ok((QuestionGuard { shared: Arc::clone(&self.0), id }, answer))
    }
}

impl Shared {
    fn notify(&self) {
        self.changes.send_modify(|it| *it = it.wrapping_add(1));
    }
}

impl ApprovalPrompt for PendingQuestions {
    fn ask(&self, question: Arc<CallQuestion>) -> AnswerFuture {
        let added = self.add(question);
        Box::pin(async move {
            let (_guard, answer) = added?;
            answer.await.map_err(|_| NoAnswer::new("the question was withdrawn"))
        })
    }
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        let removed = self.shared.state.lock().waiting.remove(&self.id);
        if removed.is_some() {
            self.shared.notify();
        }
    }
}
