//! The calls of the test, each a future that resolves with a text, and the expected texts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Wake;
use std::time::Duration;

use mcp_model::RawJson;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::super::{CallOptions, RetryPolicy, Session};
use crate::error::CallError;
use crate::error::Expiry;

/// The kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tool,
    Raw,
    Ping,
    Read,
    /// A list, possibly with several pages.
    Prompts,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::Tool, Kind::Raw, Kind::Ping, Kind::Read, Kind::Prompts];

    /// Whether server requests may belong to it.
    pub(super) fn has_stake(self) -> bool {
        match self {
            Kind::Tool | Kind::Raw | Kind::Read => true,
            Kind::Ping | Kind::Prompts => false,
        }
    }

    /// Whether a lost response is repeated.
    pub(super) fn replays(self, replay: RetryPolicy) -> bool {
        match self {
            Kind::Tool | Kind::Raw | Kind::Ping => replay == RetryPolicy::Once,
            Kind::Read | Kind::Prompts => true,
        }
    }

    /// The text for a lost response.
    pub(super) fn lost(self) -> &'static str {
        match self {
            Kind::Tool | Kind::Raw => "outcome unknown",
            Kind::Ping | Kind::Read | Kind::Prompts => "answer lost",
        }
    }

    /// The text for a result that is only text.
    pub(super) fn odd(self) -> &'static str {
        match self {
            Kind::Raw | Kind::Ping => "odd",
            Kind::Tool | Kind::Read | Kind::Prompts => "unreadable",
        }
    }
}

/// The options of a call. Times are in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) kind: Kind,
    pub(super) deadline: Option<u64>,
    pub(super) idle: Option<u64>,
    pub(super) replay: RetryPolicy,
}

/// A result with this text that is valid for every kind.
pub(super) fn result(text: &str) -> Value {
    json!({
        "content": [{"type": "text", "text": text}],
        "contents": [{"uri": "a:b", "text": text}],
        "prompts": [{"name": text}],
        "text": text,
    })
}

/// Starts a call; resolves with its text or its error.
pub(super) type Making = Pin<Box<dyn Future<Output = String>>>;

/// Starts a call and counts its progress.
pub(super) fn make(session: &Arc<Session>, terms: Terms, progress: &Arc<AtomicUsize>) -> Making {
    let (session, heard) = (Arc::clone(session), Arc::clone(progress));
    let options = CallOptions {
        timeout: terms.deadline.map(Duration::from_millis),
        idle_timeout: terms.idle.map(Duration::from_millis),
        retry: terms.replay,
        progress: Some(Arc::new(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        })),
        ..CallOptions::default()
    };
    // Tokio's coop budget would end a poll early.
    Box::pin(tokio::task::unconstrained(async move {
        let outcome = match terms.kind {
            Kind::Tool => {
                let answer = session.call_tool("t", &RawJson::empty_object(), options).await;
                answer.map(|it| it.value.text())
            }
            Kind::Raw | Kind::Ping => {
                let method = if terms.kind == Kind::Raw { "x/y" } else { "ping" };
                let answer = session.request_raw(method, None, &RawJson::empty_object(), options).await;
                answer.map(|it| {
                    let value: Value = it.value.read().unwrap();
                    value["text"].as_str().or(value.as_str()).unwrap().to_owned()
                })
            }
            Kind::Read => {
                let read = session.read_resource("a:b", options).await;
                read.map(|it| {
                    let value: Value = it.raw.read().unwrap();
                    value["contents"][0]["text"].as_str().unwrap().to_owned()
                })
            }
            Kind::Prompts => {
                let listing = session.list_prompts().await;
                listing.map(|it| it.items.iter().map(|it| &*it.name).collect::<Vec<_>>().join(" + "))
            }
        };
        outcome.unwrap_or_else(|error| word(&error))
    }))
}

/// The text for an expired deadline.
pub(super) fn timed_out(expiry: Expiry) -> String {
    format!("{expiry:?}")
}

fn word(error: &CallError) -> String {
    match error {
        CallError::Closed(_) => "closed".to_owned(),
        CallError::NotSent(_) => "not sent".to_owned(),
        CallError::TimedOut(expiry) => timed_out(*expiry),
        CallError::Rpc(error) => error.message.clone(),
        CallError::InvalidResponse(_) => "unreadable".to_owned(),
        CallError::OutcomeUnknown(_) => "outcome unknown".to_owned(),
        CallError::ResponseLost(_) => "answer lost".to_owned(),
        CallError::Refused(fault) => fault.message.clone(),
        CallError::ResponseTooLarge(_) => "too large".to_owned(),
        CallError::Reopen(_) => "not opened again".to_owned(),
        CallError::InvalidParams(_)
        | CallError::InputRequired(_)
        | CallError::ResourceNotFound(_)
        | CallError::Unsupported(_)
        | CallError::ListTooLarge(_) => panic!("nothing leads here: {error}"),
    }
}

/// Whether a call was woken. Only woken calls are polled.
pub(super) struct Flag {
    pub(super) woken: AtomicBool,
    /// Any call was woken.
    pub(super) any: Arc<Notify>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        self.any.notify_one();
    }
}
