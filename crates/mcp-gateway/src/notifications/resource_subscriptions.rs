//! The resources that one client wants to hear of, and whether something that a server says is about one of them.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use mcp_host::{ServerNotification, Subscription};
use mcp_model::{RpcError, code};
use mcp_transport::ServerEvent;

/// How many one client may want to hear of.
const MOST: usize = 256;

/// The subscriptions of one client. They end with it.
#[derive(Default)]
pub(crate) struct Subscribed(Mutex<Vec<Subscription>>);

impl Subscribed {
    /// These.
    pub(crate) fn of(subscriptions: Vec<Subscription>) -> Subscribed {
        Subscribed(Mutex::new(subscriptions))
    }

    /// Is there one to this resource already?
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.lock().iter().any(|it| it.uri() == uri)
    }

    /// Is there room for another one?
    pub(crate) fn has_room(&self) -> Result<(), RpcError> {
        match self.lock().len() < MOST {
            true => Ok(()),
            false => {
                Err(RpcError::new(code::SERVER_ERROR, format!("a session may subscribe to {MOST} resources")))
            }
        }
    }

    /// Takes another one in.
    pub(crate) fn add(&self, subscription: Subscription) {
        let mut all = self.lock();
        all.retain(|it| it.uri() != subscription.uri());
        all.push(subscription);
    }

    /// Gives the one to this resource up.
    pub(crate) fn remove(&self, uri: &str) {
        self.lock().retain(|it| it.uri() != uri);
    }

    /// Their URIs.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.lock().iter().map(|it| it.uri().to_owned()).collect()
    }

    /// The resource that has changed, where it is one of these, or lies in one of these.
    pub(crate) fn updated<'a>(&self, said: &'a ServerNotification) -> Option<&'a str> {
        let ServerEvent::ResourceUpdated { uri } = &said.event else { return None };
        let is_its = |it: &Subscription| {
            it.server() == &said.server && it.dialog() == said.dialog.as_ref() && covers(it.uri(), uri)
        };
        self.lock().iter().any(is_its).then_some(uri)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Subscription>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is it this resource, or one inside of it?
fn covers(subscribed: &str, updated: &str) -> bool {
    let rest = updated.strip_prefix(subscribed);
    rest.is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with('/'))
}

impl fmt::Debug for Subscribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.uris()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_what_lies_in_it() {
        assert!(covers("f:/a", "f:/a") && covers("f:/a", "f:/a/b") && covers("f:/a/", "f:/a/b"));
        assert!(!covers("f:/a", "f:/ab") && !covers("f:/a/b", "f:/a"));
    }
}
