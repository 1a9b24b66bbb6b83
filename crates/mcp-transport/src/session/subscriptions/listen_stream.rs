//! The notification stream of the modern era (`subscriptions/listen`).
//!
//! One long request is kept open as long as the connection is open and there is something to subscribe to. When it
//! ends, changes may have been missed, so every list counts as changed. When a subscription is added, the new
//! request is sent before the old one is cancelled.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_host_model::{Method, ProtocolVersion, RawJson};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::error::retry_after::RetryAfter;
use crate::rpc::engine::{CallSettings, Engine};
use crate::rpc::frame::MessageWriter;
use crate::rpc::handlers::ServerEvent;
use crate::rpc::outcome::RpcOutcome;
use crate::session::incoming::server_event_router::{OnSessionNotification, SessionNotification};
use crate::session::list_changes::{ListChangeCounts, ListSet};
use crate::session::negotiated::NegotiatedSession;
use crate::transport::{Epoch, MessageHead, OutboundMessage, RequestId, StreamError};

/// The pause before the stream is reopened doubles with each failure. This is the shortest one.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause. A stream that was open for longer was no failure.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The resource subscriptions of the last request, and those of the last acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionAck {
    requested: ResourceSet,
    acknowledged: ResourceSet,
    /// Whether the server has shown that it does not support subscriptions.
    is_unsupported: bool,
}

/// The resources of one `subscriptions/listen` request.
#[derive(Debug, Default)]
struct ResourceSet {
    request: RequestId,
    uris: BTreeSet<String>,
}

impl SubscriptionAck {
    /// Updates the state with the parameters of an acknowledgement. Returns false if it is outdated or invalid.
    pub(crate) fn update(&mut self, params: Option<&RawJson>) -> bool {
        let Some(Ok(params)) = params.map(RawJson::read::<Value>) else { return false };
        let Some(request) = params["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64() else {
            return false;
        };
        let resources = &params["notifications"]["resourceSubscriptions"];
        let Ok(uris) = Option::<BTreeSet<String>>::deserialize(resources) else { return false };
        // Ids increase, so an acknowledgement of an earlier request is outdated.
        if request < self.acknowledged.request {
            return false;
        }
        self.acknowledged = ResourceSet { request, uris: uris.unwrap_or_default() };
        true
    }

    /// Whether the server acknowledged `uri`; `None` while `uri` is not requested or the acknowledgement is pending.
    pub(crate) fn is_acknowledged(&self, uri: &str) -> Option<bool> {
        if self.is_unsupported {
            return Some(false);
        }
        let is_current = self.acknowledged.request == self.requested.request;
        (is_current && self.requested.uris.contains(uri)).then(|| self.acknowledged.uris.contains(uri))
    }
}

/// The notification stream of one connection.
#[derive(Clone)]
pub(crate) struct ListenStream {
    pub(crate) engine: Arc<Engine>,
    pub(crate) negotiated: Arc<NegotiatedSession>,
    /// The lists of which the server announces changes.
    pub(crate) announced_lists: ListSet,
    pub(crate) list_changes: watch::Sender<ListChangeCounts>,
    /// The URIs of the subscribed resources.
    pub(crate) resources: watch::Receiver<BTreeSet<String>>,
    pub(crate) subscription_ack: watch::Sender<SubscriptionAck>,
    /// Receives the resources that may have changed while there was no stream.
    pub(crate) on_notification: Option<OnSessionNotification>,
}

/// Keeps the stream open until the connection ends or the server does not support it.
pub(crate) async fn run(mut stream: ListenStream) {
    let mut pause = MIN_PAUSE;
    loop {
        if !stream.announced_lists.any() && stream.resources.wait_for(|it| !it.is_empty()).await.is_err() {
            return;
        }
        let started_at = tokio::time::Instant::now();
        let mut requested_wait = Duration::ZERO;
        match stream.listen().await {
            RpcOutcome::Response { is_error: false, .. }
            | RpcOutcome::StreamFailed(StreamError::Lost(_) | StreamError::TooLarge(_)) => {}
            // A server that is temporarily unavailable may return; one without support will not.
            RpcOutcome::StreamFailed(StreamError::Unreachable(_)) => {}
            RpcOutcome::StreamFailed(StreamError::Refused(error)) if is_temporary(error.status()) => {
                requested_wait = error.retry_after().map(RetryAfter::wait).unwrap_or_default();
            }
            RpcOutcome::Closed(_) => return,
            RpcOutcome::Response { is_error: true, .. }
            | RpcOutcome::StreamFailed(StreamError::Refused(_) | StreamError::NotExecuted(_))
            | RpcOutcome::Expired(_) => {
                stream.subscription_ack.send_modify(|ack| ack.is_unsupported = true);
                return;
            }
        }
        pause = if started_at.elapsed() > MAX_PAUSE { MIN_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
        tokio::time::sleep(pause.max(requested_wait)).await;
        // Changes may have been missed while there was no stream.
        stream.list_changes.send_modify(|counts| counts.count_lists(stream.announced_lists));
        if let Some(on_notification) = &stream.on_notification {
            for uri in stream.resources.borrow().iter().cloned() {
                on_notification(SessionNotification {
                    event: ServerEvent::ResourceUpdated { uri },
                    caller: None,
                });
            }
        }
    }
}

impl ListenStream {
    /// Keeps one stream open until it ends, and returns its outcome. When the subscriptions change, a new request
    /// replaces the old one.
    async fn listen(&self) -> RpcOutcome {
        let mut resources = self.resources.clone();
        let mut current = self.start_request(&mut resources);
        loop {
            let outcome = tokio::select! {
                outcome = &mut current => Some(outcome),
                changed = resources.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                    None
                }
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
            let mut next = self.start_request(&mut resources);
            // The new request is sent at its first poll; the old one is cancelled after that.
            let first_poll = std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
            if let Poll::Ready(outcome) = first_poll {
                return outcome;
            }
            current = next;
        }
    }

    /// Creates a request for the current subscriptions. It is sent when the future is polled.
    fn start_request(
        &self,
        resources: &mut watch::Receiver<BTreeSet<String>>,
    ) -> Pin<Box<dyn Future<Output = RpcOutcome> + Send>> {
        let resources = resources.borrow_and_update().clone();
        let ListenStream { engine, negotiated, announced_lists, subscription_ack, .. } = self.clone();
        Box::pin(async move {
            let message = |id| {
                let message =
                    listen_request(id, negotiated.version, announced_lists, &resources, &negotiated.meta);
                subscription_ack
                    .send_modify(|ack| ack.requested = ResourceSet { request: id, uris: resources });
                message
            };
            engine.call(CallSettings::default(), message).await.1
        })
    }
}

/// Whether a refusal with this HTTP status may be temporary. Without a status the server was not reached.
fn is_temporary(status: Option<u16>) -> bool {
    status.is_none_or(|it| it == 429 || it >= 500)
}

/// Builds a `subscriptions/listen` request for changes of these lists and resources.
fn listen_request(
    id: RequestId,
    version: ProtocolVersion,
    lists: ListSet,
    uris: &BTreeSet<String>,
    meta: &str,
) -> OutboundMessage {
    let ListSet { tools, prompts, resources } = lists;
    let members = [
        (tools, r#""toolsListChanged":true"#),
        (prompts, r#""promptsListChanged":true"#),
        (resources, r#""resourcesListChanged":true"#),
    ];
    let mut parts: Vec<String> = members
        .into_iter()
        .filter(|(is_included, _)| *is_included)
        .map(|(_, text)| text.to_owned())
        .collect();
    if !uris.is_empty() {
        let uris = serde_json::to_string(uris).expect("strings are JSON");
        parts.push(format!(r#""resourceSubscriptions":{uris}"#));
    }
    let mut writer = MessageWriter::request(id, Method::Listen.as_str(), meta.len() + 100);
    writer.write_json_param("notifications", &format!("{{{}}}", parts.join(",")));
    writer.write_meta(None, &[meta]);
    OutboundMessage {
        // The modern era has no sessions to tell apart.
        epoch: Epoch(0),
        head: MessageHead::new(Some(id), Method::Listen, Some(version)),
        body: writer.finish(),
    }
}
