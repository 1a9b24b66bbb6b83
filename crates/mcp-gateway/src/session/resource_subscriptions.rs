//! The resource subscriptions of one client.

use std::borrow::Cow;
use std::fmt;

use mcp_host_model::{RpcError, code};
use mcp_host_runtime::{ServerNotification, Subscription};
use mcp_host_transport::ServerEvent;
use parking_lot::Mutex;

use crate::lists::exposed_uri;

/// Maximum number of subscriptions of a client.
const MAX_SUBSCRIPTIONS: usize = 256;

/// The subscriptions of one client. Dropping them ends them.
#[derive(Default)]
pub(crate) struct ResourceSubscriptions(Mutex<Vec<SubscriptionEntry>>);

/// A subscription, with the URI of its client.
struct SubscriptionEntry {
    /// The URI that the client knows.
    exposed: String,
    subscription: Subscription,
}

impl ResourceSubscriptions {
    /// Whether a URI is subscribed.
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.0.lock().iter().any(|subscribed| subscribed.exposed == uri)
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
    pub(crate) fn add(&self, exposed: &str, subscription: Subscription) {
        let mut all = self.0.lock();
        all.retain(|other| other.exposed != exposed);
        all.push(SubscriptionEntry { exposed: exposed.to_owned(), subscription });
    }

    /// Removes the subscription to a URI.
    pub(crate) fn remove(&self, uri: &str) {
        self.0.lock().retain(|subscribed| subscribed.exposed != uri);
    }

    /// The subscribed URIs.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.0.lock().iter().map(|subscribed| subscribed.exposed.clone()).collect()
    }

    /// The exposed URI of a changed resource, if a subscription covers it.
    pub(crate) fn updated_uri<'a>(&self, event: &'a ServerNotification) -> Option<Cow<'a, str>> {
        let ServerEvent::ResourceUpdated { uri } = &event.event else { return None };
        let is_covered = |subscription: &Subscription| {
            subscription.server() == &event.server
                && subscription.dialog() == event.dialog.as_ref()
                && covers(subscription.uri(), uri)
        };
        let all = self.0.lock();
        let SubscriptionEntry { exposed, subscription } =
            all.iter().find(|it| is_covered(&it.subscription))?;
        Some(match exposed == subscription.uri() {
            true => uri.into(),
            false => exposed_uri::with_server(uri, &event.server).into(),
        })
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
