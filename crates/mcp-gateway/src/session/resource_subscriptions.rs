//! The resource subscriptions of one client.

use std::fmt;

use mcp_host::{ServerNotification, Subscription};
use mcp_model::{RpcError, code};
use mcp_transport::ServerEvent;
use parking_lot::Mutex;

/// Maximum number of subscriptions of a client.
const MAX_SUBSCRIPTIONS: usize = 256;

/// The subscriptions of one client. Dropping them ends them.
#[derive(Default)]
pub(crate) struct ResourceSubscriptions(Mutex<Vec<Subscription>>);

impl ResourceSubscriptions {
    pub(crate) fn of(subscriptions: Vec<Subscription>) -> ResourceSubscriptions {
        ResourceSubscriptions(Mutex::new(subscriptions))
    }

    /// Whether a URI is subscribed.
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.0.lock().iter().any(|subscription| subscription.uri() == uri)
    }

    /// Fails if there are too many subscriptions.
    pub(crate) fn check_limit(&self) -> Result<(), RpcError> {
        if self.0.lock().len() < MAX_SUBSCRIPTIONS {
            Ok(())
        } else {
            let message = format!(
                "a session may subscribe to at most {MAX_SUBSCRIPTIONS} resources: unsubscribe from some"
            );
            Err(RpcError::new(code::SERVER_ERROR, message))
        }
    }

    /// Adds a subscription, which replaces one with the same URI.
    pub(crate) fn add(&self, subscription: Subscription) {
        let mut all = self.0.lock();
        all.retain(|other| other.uri() != subscription.uri());
        all.push(subscription);
    }

    /// Removes the subscription to a URI.
    pub(crate) fn remove(&self, uri: &str) {
        self.0.lock().retain(|subscription| subscription.uri() != uri);
    }

    /// The subscribed URIs.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.0.lock().iter().map(|subscription| subscription.uri().to_owned()).collect()
    }

    /// The URI of a changed resource, if a subscription covers it.
    pub(crate) fn updated<'a>(&self, event: &'a ServerNotification) -> Option<&'a str> {
        let ServerEvent::ResourceUpdated { uri } = &event.event else { return None };
        let is_covered = |subscription: &Subscription| {
            subscription.server() == &event.server
                && subscription.dialog() == event.dialog.as_ref()
                && covers(subscription.uri(), uri)
        };
        self.0.lock().iter().any(is_covered).then_some(uri)
    }
}

/// Whether a URI is the subscribed one or below it.
fn covers(subscribed: &str, updated: &str) -> bool {
    let rest = updated.strip_prefix(subscribed);
    rest.is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with('/'))
}

impl fmt::Debug for ResourceSubscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.uris()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_covers_its_descendants() {
        assert!(covers("f:/a", "f:/a") && covers("f:/a", "f:/a/b") && covers("f:/a/", "f:/a/b"));
        assert!(!covers("f:/a", "f:/ab") && !covers("f:/a/b", "f:/a"));
    }
}
