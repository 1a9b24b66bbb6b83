//! The table of resource subscriptions by instance.
//!
//! Subscriptions outlive an instance: its successor subscribes to the same resources. Subscribers are counted by URI;
//! the subscription ends with the last one. The table sends nothing: an instance compares it with its own
//! subscriptions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use mcp_host_model::ServerId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::state::dialog_id::DialogId;

/// The maximum number of subscribed resources of all servers and dialogs.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// The key of an instance, which is independent of restarts: the shared one of a server, or that of one dialog.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct InstanceKey {
    pub(crate) server: ServerId,
    pub(crate) dialog: Option<DialogId>,
}

/// The subscriptions of a host.
#[derive(Default)]
pub(crate) struct Subscriptions {
    table: Mutex<SubscriptionTable>,
    /// Notified when a subscription was removed.
    changed: Notify,
}

#[derive(Default)]
struct SubscriptionTable {
    /// The number of subscribers by instance and URI.
    counts: HashMap<InstanceKey, BTreeMap<String, usize>>,
    /// The number of pairs of an instance and a URI.
    count: usize,
    /// The instances that have lost a subscription since the last call of [`Subscriptions::take_removed`].
    removed: HashSet<InstanceKey>,
}

/// A subscription to changes of a resource, which ends when it is dropped. Changes are sent to
/// [`Host::notifications`](crate::host::Host::notifications).
pub struct Subscription {
    subscriptions: Arc<Subscriptions>,
    key: InstanceKey,
    uri: String,
}

impl Subscription {
    /// Returns the server of the resource.
    pub fn server(&self) -> &ServerId {
        &self.key.server
    }

    /// Returns the dialog of the instance; `None` for a shared one.
    pub fn dialog(&self) -> Option<&DialogId> {
        self.key.dialog.as_ref()
    }

    /// Returns the URI of the resource.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("key", &self.key).field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut table = self.subscriptions.table.lock();
        let Some(uris) = table.counts.get_mut(&self.key) else { return };
        let Some(count) = uris.get_mut(&self.uri) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        uris.remove(&self.uri);
        if uris.is_empty() {
            table.counts.remove(&self.key);
        }
        table.count -= 1;
        table.removed.insert(self.key.clone());
        drop(table);
        self.subscriptions.changed.notify_one();
    }
}

impl Subscriptions {
    /// Adds a subscriber. Returns `None` if too many resources are subscribed.
    pub(crate) fn add(self: &Arc<Subscriptions>, key: InstanceKey, uri: &str) -> Option<Subscription> {
        let mut table = self.table.lock();
        let is_full = table.count >= MAX_SUBSCRIPTIONS;
        match table.counts.get_mut(&key).and_then(|it| it.get_mut(uri)) {
            Some(count) => *count += 1,
            None if is_full => return None,
            None => {
                table.counts.entry(key.clone()).or_default().insert(uri.to_owned(), 1);
                table.count += 1;
            }
        }
        drop(table);
        Some(Subscription { subscriptions: Arc::clone(self), key, uri: uri.to_owned() })
    }

    /// Returns the URIs of the subscribed resources of an instance.
    pub(crate) fn uris(&self, key: &InstanceKey) -> BTreeSet<String> {
        self.table.lock().counts.get(key).map(|it| it.keys().cloned().collect()).unwrap_or_default()
    }

    /// Waits until instances have lost a subscription, and returns their keys. Cancel-safe.
    pub(crate) async fn take_removed(&self) -> HashSet<InstanceKey> {
        loop {
            let changed = self.changed.notified();
            let removed = std::mem::take(&mut self.table.lock().removed);
            if !removed.is_empty() {
                return removed;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn last_subscriber_ends_subscription() {
        let all = Arc::new(Subscriptions::default());
        let key = InstanceKey { server: ServerId::parse("a").unwrap(), dialog: None };
        let other = InstanceKey { dialog: Some(DialogId::new("d")), ..key.clone() };
        let (one, two) = (all.add(key.clone(), "x:1").unwrap(), all.add(key.clone(), "x:1").unwrap());
        let third = all.add(other.clone(), "x:1").unwrap();
        drop(one);
        assert_eq!((all.uris(&key).len(), all.uris(&other).len()), (1, 1));
        drop(two);
        assert_eq!((all.uris(&key).len(), all.uris(&other).len()), (0, 1));
        assert_eq!(all.take_removed().await, HashSet::from([key]));
        drop(third);
        assert_eq!(all.take_removed().await, HashSet::from([other]));
        assert_eq!(all.table.lock().count, 0);
    }

    #[test]
    fn subscriptions_are_limited() {
        let all = Arc::new(Subscriptions::default());
        let key = InstanceKey { server: ServerId::parse("a").unwrap(), dialog: None };
        let want = |uri: usize| all.add(key.clone(), &uri.to_string());
        let mut held: Vec<_> = (0..MAX_SUBSCRIPTIONS).map(|it| want(it).unwrap()).collect();
        assert!(want(MAX_SUBSCRIPTIONS).is_none());
        assert!(want(0).is_some(), "another one who wants the same");
        held.pop();
        assert!(want(MAX_SUBSCRIPTIONS).is_some());
    }
}
