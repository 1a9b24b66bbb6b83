//! Which resources somebody wants to hear about, of which server, and on which instance of it.
//!
//! What is wanted outlives an instance: the next one is asked for the same. Whoever wants a resource counts, and the last
//! who goes ends it. The table decides nothing about connections; whoever has one compares it with what he has asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_model::ServerId;
use tokio::sync::Notify;

use crate::supervisor::dialog::DialogId;

/// How many resources may be subscribed to at once, over all servers and dialogs.
const MOST: usize = 10_000;

/// An instance, whichever runs as it: the shared one of a server, or a dialog's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Post {
    pub(crate) server: ServerId,
    pub(crate) dialog: Option<DialogId>,
}

/// All that is wanted.
#[derive(Default)]
pub(crate) struct Subscriptions {
    table: Mutex<Table>,
    changed: Notify,
}

#[derive(Default)]
struct Table {
    /// By instance and URI, how many want it.
    wanted: HashMap<Post, BTreeMap<String, usize>>,
    /// How many URIs that are.
    count: usize,
    /// Where something is not wanted any more.
    left: HashSet<Post>,
}

/// That somebody wants to hear when a resource changes: dropping it ends that. What changes is heard by
/// [`Host::notifications`](crate::host::Host::notifications).
pub struct Subscription {
    all: Arc<Subscriptions>,
    post: Post,
    uri: String,
}

impl Subscription {
    /// Whose resource it is.
    pub fn server(&self) -> &ServerId {
        &self.post.server
    }

    /// The dialog whose instance tells of it; `None` where it is a shared one.
    pub fn dialog(&self) -> Option<&DialogId> {
        self.post.dialog.as_ref()
    }

    /// The resource.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("post", &self.post)
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut table = self.all.lock();
        let Some(uris) = table.wanted.get_mut(&self.post) else { return };
        let Some(count) = uris.get_mut(&self.uri) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        uris.remove(&self.uri);
        if uris.is_empty() {
            table.wanted.remove(&self.post);
        }
        table.count -= 1;
        table.left.insert(self.post.clone());
        drop(table);
        self.all.changed.notify_one();
    }
}

impl Subscriptions {
    /// One more wants this. `None` where too much is wanted already.
    pub(crate) fn want(self: &Arc<Subscriptions>, post: Post, uri: &str) -> Option<Subscription> {
        let mut table = self.lock();
        let is_full = table.count >= MOST;
        match table.wanted.get_mut(&post).and_then(|it| it.get_mut(uri)) {
            Some(count) => *count += 1,
            None if is_full => return None,
            None => {
                table.wanted.entry(post.clone()).or_default().insert(uri.to_owned(), 1);
                table.count += 1;
            }
        }
        drop(table);
        Some(Subscription { all: Arc::clone(self), post, uri: uri.to_owned() })
    }

    /// What is wanted of an instance.
    pub(crate) fn of(&self, post: &Post) -> BTreeSet<String> {
        self.lock().wanted.get(post).map(|it| it.keys().cloned().collect()).unwrap_or_default()
    }

    /// Resolves with the instances of which something is not wanted any more. Cancel-safe.
    pub(crate) async fn left(&self) -> HashSet<Post> {
        loop {
            let changed = self.changed.notified();
            let left = std::mem::take(&mut self.lock().left);
            if !left.is_empty() {
                return left;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change under the lock is complete before anything can panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_who_goes_ends_it() {
        let all = Arc::new(Subscriptions::default());
        let post = Post { server: ServerId::parse("a").unwrap(), dialog: None };
        let other = Post { dialog: Some(DialogId::new("d")), ..post.clone() };
        let (one, two) = (all.want(post.clone(), "x:1").unwrap(), all.want(post.clone(), "x:1").unwrap());
        let third = all.want(other.clone(), "x:1").unwrap();
        drop(one);
        assert_eq!((all.of(&post).len(), all.of(&other).len()), (1, 1));
        drop(two);
        assert_eq!((all.of(&post).len(), all.of(&other).len()), (0, 1));
        assert_eq!(all.left().await, HashSet::from([post]));
        drop(third);
        assert_eq!(all.left().await, HashSet::from([other]));
        assert_eq!(all.lock().count, 0);
    }

    #[test]
    fn so_much_may_be_wanted_and_no_more() {
        let all = Arc::new(Subscriptions::default());
        let post = Post { server: ServerId::parse("a").unwrap(), dialog: None };
        let want = |uri: usize| all.want(post.clone(), &uri.to_string());
        let mut held: Vec<_> = (0..MOST).map(|it| want(it).unwrap()).collect();
        assert!(want(MOST).is_none());
        assert!(want(0).is_some(), "another one who wants the same");
        held.pop();
        assert!(want(MOST).is_some());
    }
}
