//! NotificationRouter of changes in the modern era, where a server tells them only to those who asked.
//!
//! One long request, `subscriptions/listen`, is kept open for as long as the connection lives and there is something to
//! hear. When it ends, what changed meanwhile is unknown: every list counts as changed, so that whoever follows them
//! reads them again. When more is to be heard, the new request is on its way before the old one is given up.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_model::{ProtocolVersion, RawJson};
use serde::Deserialize;
use tokio::sync::watch;

use super::server::ListChangeSupport;
use super::{ListChangeCounts, Negotiated, OnSessionNotification, ServerEvent, SessionNotification};
use crate::rpc::engine::{CallSettings, Engine};
use crate::rpc::frame::Writer;
use crate::rpc::pending::CallOutcome;
use crate::transport::{Epoch, MessageHead, OutboundMessage, RequestId, StreamError};

const METHOD: &str = "subscriptions/listen";

/// The pause before listening again: the first, and the longest.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// What the server was asked to tell of single resources, and what it has agreed to.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionAck {
    asked: (RequestId, BTreeSet<String>),
    agreed: (RequestId, BTreeSet<String>),
    /// It does not do this at all.
    refused: bool,
}

impl SubscriptionAck {
    /// ResourceCache the parameters of the server's agreement. False when there is nothing new in them.
    pub(crate) fn read(&mut self, params: Option<&RawJson>) -> bool {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "_meta")]
            meta: Meta,
            #[serde(default)]
            notifications: Notifications,
        }
        #[derive(Deserialize)]
        struct Meta {
            #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
            id: RequestId,
        }
        #[derive(Deserialize, Default)]
        struct Notifications {
            #[serde(default, rename = "resourceSubscriptions")]
            resources: Option<BTreeSet<String>>,
        }
        let Some(Ok(Params { meta, notifications })) = params.map(RawJson::read) else { return false };
        // Ids count up: an agreement to an earlier request says nothing any more.
        if meta.id < self.agreed.0 {
            return false;
        }
        self.agreed = (meta.id, notifications.resources.unwrap_or_default());
        true
    }

    /// Whether the server has agreed to tell of `uri`; `None` while it was not asked, or has not answered.
    pub(crate) fn agreed(&self, uri: &str) -> Option<bool> {
        let asked = self.asked.1.contains(uri) && self.agreed.0 == self.asked.0;
        match () {
            () if self.refused => Some(false),
            () => asked.then(|| self.agreed.1.contains(uri)),
        }
    }
}

/// What to listen for.
#[derive(Clone)]
pub(crate) struct SubscriptionStream {
    pub(crate) engine: Arc<Engine>,
    pub(crate) negotiated: Arc<Negotiated>,
    pub(crate) list_changes_supported: ListChangeSupport,
    pub(crate) changes: watch::Sender<ListChangeCounts>,
    pub(crate) resources: watch::Receiver<BTreeSet<String>>,
    pub(crate) acknowledged: watch::Sender<SubscriptionAck>,
    /// Hears that a resource may have changed while nobody listened.
    pub(crate) said: Option<OnSessionNotification>,
}

/// Listens until the connection is over, or the server says that it does not do this.
pub(crate) async fn run(mut stream: SubscriptionStream) {
    let mut pause = MIN_PAUSE;
    loop {
        if !stream.list_changes_supported.any()
            && stream.resources.wait_for(|it| !it.is_empty()).await.is_err()
        {
            return;
        }
        let begun = tokio::time::Instant::now();
        match stream.listen().await {
            CallOutcome::Response { is_error: false, .. }
            | CallOutcome::StreamFailed(StreamError::Lost(_) | StreamError::TooLarge(_)) => {}
            // A server that is away for a while comes back; one that knows nothing of this never will.
            CallOutcome::StreamFailed(StreamError::Refused(fault)) if is_transient(fault.status) => {}
            CallOutcome::Closed(_) => return,
            CallOutcome::Response { is_error: true, .. }
            | CallOutcome::StreamFailed(StreamError::Refused(_) | StreamError::NotExecuted(_))
            | CallOutcome::Expired(_) => {
                stream.acknowledged.send_modify(|it| it.refused = true);
                return;
            }
        }
        // A stream that held for a while was no failure.
        pause = if begun.elapsed() > MAX_PAUSE { MIN_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
        tokio::time::sleep(pause).await;
        stream.changes.send_modify(|it| it.add(stream.list_changes_supported));
        if let Some(said) = &stream.said {
            for uri in stream.resources.borrow().iter().cloned() {
                said(SessionNotification { event: ServerEvent::ResourceUpdated { uri }, caller: None });
            }
        }
    }
}

impl SubscriptionStream {
    /// Listens until the server ends it; begins anew whenever what is to be heard changes.
    async fn listen(&self) -> CallOutcome {
        let mut resources = self.resources.clone();
        let mut current = self.call(&mut resources);
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
            let mut next = self.call(&mut resources);
            // It is sent when it is looked at first; only then the former is given up.
            let early = std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
            if let Poll::Ready(outcome) = early {
                return outcome;
            }
            current = next;
        }
    }

    fn call(
        &self,
        resources: &mut watch::Receiver<BTreeSet<String>>,
    ) -> Pin<Box<dyn Future<Output = CallOutcome> + Send>> {
        let resources = resources.borrow_and_update().clone();
        let SubscriptionStream { engine, negotiated, list_changes_supported, acknowledged, .. } =
            self.clone();
        Box::pin(async move {
            let message = |id| {
                let message =
                    outgoing(id, negotiated.version, (list_changes_supported, &resources), &negotiated.meta);
                acknowledged.send_modify(|it| it.asked = (id, resources.clone()));
                message
            };
            engine.call(CallSettings::default(), message).await.1
        })
    }
}

/// May a refusal with this HTTP status be over by and by? Without a status nobody was there.
fn is_transient(status: Option<u16>) -> bool {
    status.is_none_or(|it| it == 429 || it >= 500)
}

fn outgoing(
    id: RequestId,
    version: ProtocolVersion,
    wanted: (ListChangeSupport, &BTreeSet<String>),
    meta: &str,
) -> OutboundMessage {
    let (ListChangeSupport { tools, prompts, resources }, uris) = wanted;
    let lists = [
        (tools, r#""toolsListChanged":true"#),
        (prompts, r#""promptsListChanged":true"#),
        (resources, r#""resourcesListChanged":true"#),
    ];
    let mut parts: Vec<String> =
        lists.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, text)| text.to_owned()).collect();
    if !uris.is_empty() {
        let uris = serde_json::to_string(uris).expect("strings are JSON");
        parts.push(format!(r#""resourceSubscriptions":{uris}"#));
    }
    let mut writer = Writer::request(id, METHOD, meta.len() + 100);
    writer.raw("notifications", &format!("{{{}}}", parts.join(",")));
    writer.meta(&[meta]);
    OutboundMessage {
        epoch: Epoch(0),
        head: MessageHead::new(Some(id), METHOD.into(), Some(version)),
        body: writer.finish(),
    }
}
