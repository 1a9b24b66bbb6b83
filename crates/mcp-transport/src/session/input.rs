//! Results that ask for input before they are one (2026-07-28): answered by the handlers, and asked again.
//!
//! Each round is a request of its own, under a new id, with the answers and the server's own state as it gave it. The
//! number of rounds is bounded, and all of them together have the time of the one call that they are for its caller.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Era, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::params::{self, Members, Name};
use super::request::{RawAnswer, Request};
use super::{InputHandling, Session};
use crate::error::CallError;
use crate::rpc::deadline::Expiry;
use crate::rpc::frame;
use crate::rpc::request_owner::Whose;

/// How often a server may ask before it answers.
const MOST_ROUNDS: usize = 10;

/// How many things it may ask for at once.
const MOST_AT_ONCE: usize = 32;

/// What a server asks for.
#[derive(Deserialize)]
struct Required<'a> {
    #[serde(borrow, rename = "inputRequests")]
    requests: Option<Members<'a>>,
    /// As JSON text: what the server reads again is what it wrote.
    #[serde(borrow, rename = "requestState")]
    state: Option<&'a RawValue>,
}

/// One thing of it.
#[derive(Deserialize)]
struct Question<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Session {
    /// Sends a request to which the server may answer with questions; resolves with what is none.
    pub(super) async fn request_with_input(&self, request: Request<'_>) -> Result<RawAnswer, CallError> {
        let answer = self.request(&request).await?;
        // Only the era that can ask for input says what kind of result it is.
        if request.options.input == InputHandling::ReturnToCaller
            || self.era() == Era::Legacy
            || !answer.asks_for_input()
        {
            return Ok(answer);
        }
        Box::pin(async move {
            let mut asked = answer;
            let mut request = request;
            let mut patience =
                request.options.caller.as_ref().map_or(Duration::ZERO, |it| it.max_deadline_pause);
            // What the caller gave of these was for the first time.
            let others = params::without(request.more, &["inputResponses", "requestState"]);
            for _ in 0..MOST_ROUNDS {
                let since = Instant::now();
                let provided = self.provide(&request, &asked, patience).await?;
                // What the caller took is not the server's time.
                let waited = since.elapsed().min(patience);
                patience -= waited;
                request.begun += waited;
                let parts = [&*others, &*provided];
                let more = parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(",");
                asked = self.request(&Request { more: &more, ..request }).await?;
                if !asked.asks_for_input() {
                    return Ok(asked);
                }
            }
            let message =
                format!("the server asked for input {MOST_ROUNDS} times, and still does not answer");
            Err(CallError::InputRequired(message))
        })
        .await
    }

    /// What was asked for, as members of the parameters of the next request.
    async fn provide(
        &self,
        request: &Request<'_>,
        asked: &RawAnswer,
        patience: Duration,
    ) -> Result<String, CallError> {
        let asked = asked.raw()?;
        let Required { requests, state } =
            asked.read().map_err(|it| CallError::InvalidResponse(it.to_string()))?;
        let mut more = Vec::new();
        if let Some(Members(requests)) = requests {
            let mut questions = Vec::with_capacity(requests.len().min(MOST_AT_ONCE));
            if requests.len() > MOST_AT_ONCE {
                let message = format!("the server asks for {} things at once", requests.len());
                return Err(CallError::InputRequired(message));
            }
            for (Name(key), question) in requests {
                let question: Question<'_> = serde_json::from_str(question.get())
                    .map_err(|it| CallError::InvalidResponse(format!("what it asks for: {it}")))?;
                questions.push((key, question));
            }
            more.push(format!(
                "\"inputResponses\":{{{}}}",
                self.answer_all(request, questions, patience).await?
            ));
        } else if state.is_none() {
            let message = "the server asks for input and does not say which".to_owned();
            return Err(CallError::InputRequired(message));
        }
        if let Some(state) = state {
            more.push(format!("\"requestState\":{}", state.get()));
        }
        Ok(more.join(","))
    }

    /// One after another, for most of them end with the same person.
    async fn answer_all(
        &self,
        request: &Request<'_>,
        questions: Vec<(std::borrow::Cow<'_, str>, Question<'_>)>,
        patience: Duration,
    ) -> Result<String, CallError> {
        // They are about this request, whose ever it is.
        let whose = match &request.options.caller {
            Some(caller) => Whose::Caller(Arc::clone(caller)),
            None => Whose::Session,
        };
        let unanswered = questions.iter().filter(|(_, it)| !self.answering.answers(&whose, &it.method));
        let unanswered: Vec<String> = unanswered.map(|(key, it)| self.named(&it.method, key)).collect();
        if !unanswered.is_empty() {
            let message = format!(
                "the server asks for input before it answers ({}), and no handler is configured for that",
                unanswered.join(", ")
            );
            return Err(CallError::InputRequired(message));
        }
        let limit = request.options.timeout.unwrap_or(self.limits().request);
        let deadline =
            request.begun.checked_add(limit.saturating_add(patience)).unwrap_or_else(super::far_away);
        let mut res = Vec::with_capacity(questions.len());
        for (key, Question { method, params }) in questions {
            let answer = async {
                let _place = self.answering.wait_for_place().await;
                self.answering.answer(&whose, &method, params.map(RawJson::copy_of)).await
            };
            let answer = match tokio::time::timeout_at(deadline, answer).await {
                Ok(answer) => answer,
                Err(_) => return Err(CallError::TimedOut(Expiry::Absolute(limit))),
            };
            let answer = answer.map_err(|error| {
                let message = format!(
                    "the server asks for input before it answers ({}), and it was refused: {error}",
                    self.named(&method, &key)
                );
                CallError::InputRequired(message)
            })?;
            res.push(format!("{}:{}", frame::text(&key), answer.as_str()));
        }
        Ok(res.join(","))
    }

    /// What is asked for, in words that a message can hold: the key is the server's own.
    fn named(&self, method: &str, key: &str) -> String {
        let short: String = self.dial.redact(key).chars().take(40).collect();
        let method: String = self.dial.redact(method).chars().take(40).collect();
        format!("{method} as `{short}`")
    }
}
