//! Results that may be used again for as long as their server says.
//!
//! They belong to one session, hence to one authorization: what is private is shared with nobody. A change that was
//! announced ends a result's life at once. The moment is always an argument.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_model::{Freshness, Prompt, ReadResult, Resource, ResourceTemplate, Tool};
use tokio::time::Instant;

use super::{ListChangeCounts, Listing};

/// The longest life of a result, whatever its server says.
const LONGEST: Duration = Duration::from_secs(60 * 60 * 24);

/// How many resources are kept, and how many bytes of them together.
const MOST_READS: usize = 64;
const MOST_READ_BYTES: usize = 8 << 20;

/// The results of one session.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) tools: Slot<Tool>,
    pub(crate) prompts: Slot<Prompt>,
    pub(crate) resources: Slot<Resource>,
    pub(crate) templates: Slot<ResourceTemplate>,
    pub(crate) reads: Arc<Reads>,
}

/// One list.
pub(crate) struct Slot<T>(Mutex<Option<List<T>>>);

struct List<T> {
    listing: Listing<T>,
    until: Instant,
    /// How many changes of it were known when it was read.
    seen: u64,
}

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot(Mutex::new(None))
    }
}

impl<T: Clone> Slot<T> {
    /// The list, if it may still be used after `seen` changes.
    pub(crate) fn get(&self, seen: u64, now: Instant) -> Option<Listing<T>> {
        let mut kept = lock(&self.0);
        if kept.as_ref().is_some_and(|it| it.seen != seen || now >= it.until) {
            *kept = None;
        }
        kept.as_ref().map(|it| it.listing.clone())
    }

    /// Keeps nothing any more.
    pub(crate) fn forget(&self) {
        *lock(&self.0) = None;
    }

    /// Keeps a list that was asked for after `seen` changes, for what is left of its time.
    pub(crate) fn put(&self, listing: &Listing<T>, seen: u64, until: Option<Instant>) {
        *lock(&self.0) = until.map(|until| List { listing: listing.clone(), until, seen });
    }
}

/// Until when a result may be used that was received at `now`; `None` where that is no time at all.
pub(crate) fn until(freshness: Freshness, now: Instant) -> Option<Instant> {
    let ttl = freshness.ttl.min(LONGEST);
    (!ttl.is_zero()).then(|| now + ttl)
}

/// What was read of resources.
#[derive(Default)]
pub(crate) struct Reads(Mutex<ReadTable>);

#[derive(Default)]
struct ReadTable {
    reads: HashMap<String, Read>,
    bytes: usize,
    /// Counts changes, so that what was asked for before one is not kept after it.
    generation: u64,
}

struct Read {
    result: ReadResult,
    until: Instant,
    /// How many changes of the list of resources were known.
    seen: u64,
}

/// The end of [`Reads`] that hears of changes.
#[derive(Clone)]
pub(crate) struct Updates(pub(crate) Arc<Reads>);

impl Updates {
    /// A resource was changed.
    pub(crate) fn changed(&self, uri: &str) {
        let mut table = lock(&self.0.0);
        table.generation += 1;
        table.forget(uri);
    }
}

impl Reads {
    /// What is known of a resource, if it may still be used.
    pub(crate) fn get(&self, uri: &str, changes: ListChangeCounts, now: Instant) -> Option<ReadResult> {
        let mut table = lock(&self.0);
        let kept = table.reads.get(uri)?;
        if kept.seen == changes.resources && now < kept.until {
            return Some(kept.result.clone());
        }
        table.forget(uri);
        None
    }

    /// What has changed so far; to be looked at before a resource is asked for.
    pub(crate) fn generation(&self) -> u64 {
        lock(&self.0).generation
    }

    /// Keeps what was read of a resource, unless something was changed since `generation`.
    pub(crate) fn put(&self, uri: &str, result: &ReadResult, known: (u64, ListChangeCounts), now: Instant) {
        let (generation, changes) = known;
        let Some(until) = until(result.freshness, now) else { return };
        let size = result.raw.as_bytes().len();
        let mut table = lock(&self.0);
        if table.generation != generation || size > MOST_READ_BYTES {
            return;
        }
        table.forget(uri);
        table.reads.retain(|_, it| now < it.until);
        table.bytes = table.reads.values().map(|it| it.result.raw.as_bytes().len()).sum();
        while table.reads.len() >= MOST_READS || table.bytes + size > MOST_READ_BYTES {
            // The one that would go first goes now.
            let next = table.reads.iter().min_by_key(|(_, it)| it.until).map(|(uri, _)| uri.clone());
            let Some(next) = next else { break };
            table.forget(&next);
        }
        table.bytes += size;
        let read = Read { result: result.clone(), until, seen: changes.resources };
        table.reads.insert(uri.to_owned(), read);
    }
}

impl ReadTable {
    fn forget(&mut self, uri: &str) {
        if let Some(read) = self.reads.remove(uri) {
            self.bytes -= read.result.raw.as_bytes().len();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_model::{RawJson, read_resource_result};

    fn read(ttl: u64, size: usize) -> ReadResult {
        let text = "x".repeat(size);
        let json = format!(r#"{{"contents":[{{"uri":"a:b","text":"{text}"}}],"ttlMs":{ttl}}}"#);
        read_resource_result(&RawJson::parse(json.into()).unwrap()).unwrap()
    }

    #[test]
    fn a_list_lives_until_its_time_is_over_or_it_has_changed() {
        let now = Instant::now();
        let slot = Slot::<u8>::default();
        let listing = Listing { items: vec![1], rejected: Vec::new(), freshness: Freshness::default() };
        slot.put(&listing, 3, None);
        assert_eq!(slot.get(3, now), None, "no time was given");
        let second = Duration::from_secs(1);
        let freshness = Freshness { ttl: second, ..Freshness::default() };
        slot.put(&listing, 3, until(freshness, now));
        assert!(slot.get(3, now + second / 2).is_some());
        assert_eq!(slot.get(3, now + second), None);
        slot.put(&listing, 3, until(freshness, now));
        assert_eq!(slot.get(4, now), None, "it has changed");
        assert_eq!(slot.get(3, now), None, "and is gone for good");
        let ages = Freshness { ttl: Duration::MAX, ..Freshness::default() };
        assert_eq!(until(ages, now), Some(now + LONGEST));
    }

    #[test]
    fn what_was_read_lives_until_the_resource_changes() {
        let now = Instant::now();
        let changes = ListChangeCounts::default();
        let reads = Arc::new(Reads::default());
        let put = |uri: &str, ttl, size| {
            reads.put(uri, &read(ttl, size), (reads.generation(), changes), now);
        };
        let has = |uri: &str, changes| reads.get(uri, changes, now).is_some();
        put("a:1", 1000, 1);
        put("a:2", 0, 1);
        assert_eq!((has("a:1", changes), has("a:2", changes)), (true, false));
        Updates(Arc::clone(&reads)).changed("a:1");
        assert!(!has("a:1", changes));
        let before = reads.generation();
        Updates(Arc::clone(&reads)).changed("a:9");
        reads.put("a:1", &read(1000, 1), (before, changes), now);
        assert!(!has("a:1", changes), "it may have been read before the change");
        put("a:1", 1000, 1);
        assert!(!has("a:1", ListChangeCounts { resources: 1, ..changes }));
    }

    #[test]
    fn what_was_read_is_bounded_in_number_and_in_bytes() {
        let now = Instant::now();
        let reads = Reads::default();
        let put =
            |uri: String, ttl, size| reads.put(&uri, &read(ttl, size), (0, ListChangeCounts::default()), now);
        for place in 0..2 * MOST_READS {
            put(format!("a:{place}"), 1000 + place as u64, 10);
        }
        assert_eq!(lock(&reads.0).reads.len(), MOST_READS);
        assert!(reads.get("a:127", ListChangeCounts::default(), now).is_some(), "the longest life stays");
        for place in 0..20 {
            put(format!("b:{place}"), 1000, 1 << 20);
        }
        put("c:1".to_owned(), 1000, MOST_READ_BYTES);
        let table = lock(&reads.0);
        assert!(table.bytes <= MOST_READ_BYTES);
        assert_eq!(table.bytes, table.reads.values().map(|it| it.result.raw.as_bytes().len()).sum::<usize>());
    }
}
