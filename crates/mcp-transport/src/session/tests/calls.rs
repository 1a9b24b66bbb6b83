//! The calls of the tests. Each is a future that resolves with a text: that of the result, or a word for the error.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Wake;
use std::time::Duration;

use mcp_host_model::RawJson;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::super::{CallOptions, RetryPolicy, Session};
use crate::error::CallError;
use crate::error::Expiry;

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Tool,
    Raw,
    Ping,
    Read,
    /// A list, possibly with several pages.
    Prompts,
}

impl CallKind {
    pub(super) const ALL: [CallKind; 5] =
        [CallKind::Tool, CallKind::Raw, CallKind::Ping, CallKind::Read, CallKind::Prompts];

    /// Whether server requests may belong to such a call.
    pub(super) fn may_get_server_requests(self) -> bool {
        match self {
            CallKind::Tool | CallKind::Raw | CallKind::Read => true,
            CallKind::Ping | CallKind::Prompts => false,
        }
    }

    /// Whether a lost response is retried.
    pub(super) fn retries(self, retry: RetryPolicy) -> bool {
        match self {
            CallKind::Tool | CallKind::Raw | CallKind::Ping => retry == RetryPolicy::Once,
            CallKind::Read | CallKind::Prompts => true,
        }
    }

    /// The text of a call whose response was lost.
    pub(super) fn lost_text(self) -> &'static str {
        match self {
            CallKind::Tool | CallKind::Raw => "outcome unknown",
            CallKind::Ping | CallKind::Read | CallKind::Prompts => "response lost",
        }
    }

    /// The text of a call whose result is a JSON string.
    pub(super) fn invalid_text(self) -> &'static str {
        match self {
            CallKind::Raw | CallKind::Ping => "invalid",
            CallKind::Tool | CallKind::Read | CallKind::Prompts => "unreadable",
        }
    }
}

/// The options of a call. Times are in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallSpec {
    pub(super) kind: CallKind,
    /// The timeout of the call.
    pub(super) deadline: Option<u64>,
    /// The idle timeout of the call.
    pub(super) idle: Option<u64>,
    pub(super) retry: RetryPolicy,
}

/// A result with this text that is valid for every kind of call.
pub(super) fn result(text: &str) -> Value {
    json!({
        "content": [{"type": "text", "text": text}],
        "contents": [{"uri": "a:b", "text": text}],
        "prompts": [{"name": text}],
        "text": text,
    })
}

/// A call. Resolves with the text of its result or of its error.
pub(super) type CallFuture = Pin<Box<dyn Future<Output = String>>>;

/// Starts a call. `progress` counts its progress reports.
pub(super) fn start(session: &Arc<Session>, spec: CallSpec, progress: &Arc<AtomicUsize>) -> CallFuture {
    let (session, record_progress) = (Arc::clone(session), Arc::clone(progress));
    let mut options = CallOptions {
        timeout: spec.deadline.map(Duration::from_millis),
        idle_timeout: spec.idle.map(Duration::from_millis),
        retry: spec.retry,
        ..CallOptions::default()
    };
    options.context.progress = Some(Arc::new(move |_| {
        record_progress.fetch_add(1, Ordering::Relaxed);
    }));
    // Without Tokio's coop budget, which could end a poll early.
    Box::pin(tokio::task::unconstrained(async move {
        let outcome = match spec.kind {
            CallKind::Tool => {
                let response = session.call_tool("t", &RawJson::empty_object(), options).await;
                response.map(|it| it.value.text())
            }
            CallKind::Raw | CallKind::Ping => {
                let method = if spec.kind == CallKind::Raw { "x/y" } else { "ping" };
                let response = session.request_raw(method, None, &RawJson::empty_object(), options).await;
                response.map(|it| {
                    let value: Value = it.value.read().unwrap();
                    value["text"].as_str().or(value.as_str()).unwrap().to_owned()
                })
            }
            CallKind::Read => {
                let result = session.read_resource("a:b", options).await;
                result.map(|it| {
                    let value: Value = it.raw.read().unwrap();
                    value["contents"][0]["text"].as_str().unwrap().to_owned()
                })
            }
            CallKind::Prompts => {
                let list = session.list_prompts().await;
                list.map(|it| it.items.iter().map(|it| &*it.name).collect::<Vec<_>>().join(" + "))
            }
        };
        outcome.unwrap_or_else(|error| error_text(&error))
    }))
}

/// The text of a call that ended at a deadline.
pub(super) fn expiry_text(expiry: Expiry) -> String {
    format!("{expiry:?}")
}

/// The text of a call that failed.
fn error_text(error: &CallError) -> String {
    match error {
        CallError::Closed(_) => "closed".to_owned(),
        CallError::NotSent(_) => "not sent".to_owned(),
        CallError::TimedOut(expiry) | CallError::TimedOutUnmatched { expiry, .. } => expiry_text(*expiry),
        CallError::Rpc(error) => error.message.clone(),
        CallError::InvalidResponse(_) | CallError::NotUtf8 { .. } => "unreadable".to_owned(),
        CallError::OutcomeUnknown(_) => "outcome unknown".to_owned(),
        CallError::ResponseLost(_) => "response lost".to_owned(),
        CallError::Unreachable(error) | CallError::Refused(error) => error.to_string(),
        CallError::ResponseTooLarge(_) => "too large".to_owned(),
        CallError::Reopen(_) => "not reopened".to_owned(),
        CallError::InvalidParams(_)
        | CallError::InputRequired(_)
        | CallError::TaskCancelled(_)
        | CallError::ResourceNotFound(_)
        | CallError::Unsupported(_) => panic!("unexpected error: {error}"),
    }
}

/// A waker that records whether a future was woken. Only woken futures are polled.
pub(super) struct WakeFlag {
    pub(super) woken: AtomicBool,
    /// Notified when any future is woken.
    pub(super) any_woken: Arc<Notify>,
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        self.any_woken.notify_one();
    }
}
