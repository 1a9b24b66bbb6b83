//! `subscriptions/listen`: the notification stream of the modern era.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_host_model::RpcError;
use mcp_host_runtime::RequestOptions;
use parking_lot::Mutex;

use crate::gateway::GatewayInner;
use crate::methods::context::RequestContext;
use crate::methods::resources::{MAX_URI_BYTES, ResourceTarget};
use crate::methods::task_watch::TaskWatch;
use crate::notifications::subscribe::SubscriptionRequest;
use crate::notifications::watch::{ChangeWatcher, WatchedChange};
use crate::protocol::frame::ClientRequest;
use crate::session::known_lists::KnownLists;
use crate::session::request_client::RequestClient;
use crate::session::resource_origins::OriginKey;
use crate::session::resource_subscriptions::ResourceSubscriptions;

/// How long a server may take to accept a subscription.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The messages of a `subscriptions/listen` request. Dropping it ends the subscriptions.
pub(crate) struct SubscriptionStream {
    request: SubscriptionRequest,
    subscriptions: ResourceSubscriptions,
    origin_key: OriginKey,
    known_lists: Mutex<KnownLists>,
    watcher: ChangeWatcher,
    tasks: TaskWatch,
    /// Messages that are returned next.
    queued: VecDeque<Bytes>,
}

impl SubscriptionStream {
    /// Reads the request and subscribes to its resources and tasks. The stream begins with the acknowledgement and the
    /// states of the tasks.
    pub(crate) async fn open(
        gateway: &Arc<GatewayInner>,
        client: &RequestClient,
        request: &ClientRequest,
    ) -> Result<SubscriptionStream, RpcError> {
        let subscription = SubscriptionRequest::read(request)?;
        // Created first, so that a change during the subscription is not missed.
        let audience = client.features.audience;
        let known_lists = Mutex::new(KnownLists::of(&gateway.listing(&client.scope, audience)));
        let watcher = ChangeWatcher::new(gateway, &client.scope, audience);
        let context = RequestContext::new(gateway, client, request);
        if !subscription.task_ids().is_empty() {
            context.require_tasks()?;
        }
        let subscriptions = context.subscribe_all(subscription.resource_uris());
        let tasks = TaskWatch::start(gateway, client, subscription.task_ids());
        let (subscriptions, (tasks, states)) = tokio::join!(subscriptions, tasks);
        let (accepted, states): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let request = subscription.with_accepted(subscriptions.uris(), accepted);
        let states = states.iter().map(|it| request.task_changed_message(it));
        let queued = [request.acknowledgement_message()].into_iter().chain(states).collect();
        let origin_key = OriginKey::of(client);
        Ok(SubscriptionStream { request, subscriptions, origin_key, known_lists, watcher, tasks, queued })
    }

    /// The next message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Bytes {
        let SubscriptionStream { request, subscriptions, origin_key, known_lists, watcher, tasks, queued } =
            self;
        loop {
            if let Some(message) = queued.pop_front() {
                return message;
            }
            let change = tokio::select! {
                change = watcher.next(known_lists) => change,
                state = tasks.next() => {
                    queued.push_back(request.task_changed_message(&state));
                    continue;
                }
            };
            match change {
                WatchedChange::Lists(changed) => {
                    let included = changed.into_iter().filter(|list| request.includes(*list));
                    queued.extend(included.map(|list| request.list_changed_message(list)));
                }
                WatchedChange::Notification(event) => {
                    let updated = watcher.updated_uri(subscriptions, origin_key, &event);
                    queued.extend(updated.map(|uri| request.resource_updated_message(&uri)));
                }
            }
        }
    }

    /// The result of the request when the gateway ends the stream.
    pub(crate) fn end_result(&self) -> String {
        self.request.end_result()
    }
}

impl RequestContext<'_> {
    /// Subscribes to the resources of a stream. Returns the subscriptions that servers accepted in time; the other
    /// resources are left out.
    async fn subscribe_all(&self, uris: &[String]) -> ResourceSubscriptions {
        let all = ResourceSubscriptions::default();
        let subscribe = async |uri: &String| {
            let target = self.resource_target(uri).ok().filter(|_| uri.len() <= MAX_URI_BYTES)?;
            let ResourceTarget { server, servers, uri: own } = target;
            let dialog = self.client.dialog_id();
            let mut options = RequestOptions::default();
            options.server = server;
            options.servers = servers;
            options.dialog = dialog;
            let subscribed = self.gateway.host.subscribe_resource(&own, options);
            tokio::time::timeout(SUBSCRIBE_TIMEOUT, subscribed).await.ok()?.ok()
        };
        let subscribed = futures_util::future::join_all(uris.iter().map(subscribe)).await;
        for (uri, subscription) in uris.iter().zip(subscribed) {
            subscription.into_iter().for_each(|subscription| all.add(uri, subscription));
        }
        all
    }
}
