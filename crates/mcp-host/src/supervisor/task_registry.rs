//! The registry of the tasks of servers (long-running calls), with the instances that run them.
//!
//! A request about a task is sent to the instance that created the task. An instance that was replaced is closed when
//! its tasks have ended. The entry of a task expires when the server no longer keeps the task.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_host_model::{ServerId, Task};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::supervisor::machine::saturating_after;

/// The maximum number of tasks of a host. A further task replaces the oldest one.
const MAX_TASKS: usize = 4096;

/// The maximum time for which an entry is kept.
const MAX_TTL: Duration = Duration::from_secs(60 * 60);

/// The time for which an entry is kept after the end of its task, because the caller may not have the result yet.
const TTL_AFTER_END: Duration = Duration::from_secs(60);

/// The maximum number of replaced instances that wait for the end of their tasks.
const MAX_WAITING_INSTANCES: usize = 16;

/// The tasks of all instances. `I` is the type of instances.
#[derive(Debug)]
pub(crate) struct TaskRegistry<I> {
    /// The oldest first.
    entries: Mutex<VecDeque<TaskEntry<I>>>,
    /// Notified when an entry was removed or expires earlier.
    changed: Notify,
    /// Has a permit for each replaced instance that waits for its tasks.
    waiting_instances: Semaphore,
}

/// A task, and the instance that created it.
#[derive(Debug)]
struct TaskEntry<I> {
    /// The hash of the server and of its id of the task.
    key: blake3::Hash,
    instance: Weak<I>,
    /// When the entry is removed.
    expires: Instant,
}

/// A guard of an entry, which is removed when the guard is dropped.
pub(crate) struct TaskEntryGuard<'a, I> {
    tasks: &'a TaskRegistry<I>,
    instance: Weak<I>,
    key: blake3::Hash,
}

impl<I> Drop for TaskEntryGuard<'_, I> {
    fn drop(&mut self) {
        let is_own = |it: &TaskEntry<I>| it.key == self.key && it.instance.ptr_eq(&self.instance);
        self.tasks.entries.lock().retain(|it| !is_own(it));
        self.tasks.changed.notify_waiters();
    }
}

impl<I> Default for TaskRegistry<I> {
    fn default() -> TaskRegistry<I> {
        TaskRegistry {
            entries: Mutex::default(),
            changed: Notify::new(),
            waiting_instances: Semaphore::new(MAX_WAITING_INSTANCES),
        }
    }
}

impl<I> TaskRegistry<I> {
    /// Adds a task that the instance of a server has created.
    pub(crate) fn add(&self, server: &ServerId, instance: &Arc<I>, task: &Task, now: Instant) {
        let expires = saturating_after(now, task.ttl.map_or(MAX_TTL, |it| it.min(MAX_TTL)));
        let mut entries = self.entries.lock();
        entries.retain(|it| it.expires > now && it.instance.strong_count() > 0);
        if entries.len() == MAX_TASKS {
            entries.pop_front();
        }
        let instance = Arc::downgrade(instance);
        entries.push_back(TaskEntry { key: task_key(server, &task.id), instance, expires });
    }

    /// Adds a task like [`TaskRegistry::add`], until the guard is dropped.
    pub(crate) fn add_guarded(
        &self,
        server: &ServerId,
        instance: &Arc<I>,
        task: &Task,
        now: Instant,
    ) -> TaskEntryGuard<'_, I> {
        self.add(server, instance, task, now);
        TaskEntryGuard { tasks: self, instance: Arc::downgrade(instance), key: task_key(server, &task.id) }
    }

    /// Returns the instance that runs a task, among those that `is_accepted` selects. If several do, because an id was
    /// repeated, it is the newest one.
    pub(crate) fn find(
        &self,
        server: &ServerId,
        id: &str,
        now: Instant,
        is_accepted: impl Fn(&I) -> bool,
    ) -> Option<Arc<I>> {
        let key = task_key(server, id);
        let entries = self.entries.lock();
        let mut newest_first = entries.iter().rev().filter(|it| it.key == key && it.expires > now);
        newest_first.find_map(|it| it.instance.upgrade().filter(|it| is_accepted(it)))
    }

    /// Records that a task has ended. Its entry is kept for a short time.
    pub(crate) fn record_end(&self, server: &ServerId, id: &str, now: Instant) {
        let (key, expires) = (task_key(server, id), saturating_after(now, TTL_AFTER_END));
        for it in self.entries.lock().iter_mut().filter(|it| it.key == key) {
            it.expires = it.expires.min(expires);
        }
        self.changed.notify_waiters();
    }

    /// Returns whether the instance has tasks.
    pub(crate) fn has_tasks(&self, instance: &Arc<I>, now: Instant) -> bool {
        self.last_expiry(instance, now).is_some()
    }

    /// Waits until the instance has no tasks. Returns at once if too many instances wait. Cancel-safe.
    pub(crate) async fn wait_until_ended(&self, instance: &Arc<I>) {
        let mut permit = None;
        loop {
            let mut changed = pin!(self.changed.notified());
            // Enabled before the check, so that no change in between is missed.
            changed.as_mut().enable();
            let Some(expiry) = self.last_expiry(instance, Instant::now()) else { return };
            if permit.is_none() {
                permit = self.waiting_instances.try_acquire().ok();
            }
            if permit.is_none() {
                tracing::warn!(
                    "more than {MAX_WAITING_INSTANCES} replaced instances run tasks; this one ends"
                );
                return;
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(expiry) => {}
            }
        }
    }

    /// Returns the last expiry of the tasks of an instance.
    fn last_expiry(&self, instance: &Arc<I>, now: Instant) -> Option<Instant> {
        let entries = self.entries.lock();
        let own = entries.iter().filter(|it| std::ptr::eq(it.instance.as_ptr(), Arc::as_ptr(instance)));
        own.map(|it| it.expires).filter(|it| *it > now).max()
    }
}

/// Returns the key of a task. It is a hash, because a server's ids may be long.
fn task_key(server: &ServerId, id: &str) -> blake3::Hash {
    // The id of a server contains no line break.
    blake3::hash(format!("{server}\n{id}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, ttl: &str) -> Task {
        serde_json::from_str(&format!(r#"{{"taskId":"{id}","status":"working","ttlMs":{ttl}}}"#)).unwrap()
    }

    fn server(id: &str) -> ServerId {
        ServerId::parse(id).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn entry_expires_with_the_ttl_or_after_the_end_of_its_task() {
        #[track_caller]
        fn check(ttl: &str, ends_after: Option<u64>, wanted_seconds: u64) {
            let (tasks, instance, start) = (TaskRegistry::default(), Arc::new(1), Instant::now());
            tasks.add(&server("a"), &instance, &task("1", ttl), start);
            if let Some(seconds) = ends_after {
                tasks.record_end(&server("b"), "1", start);
                tasks.record_end(&server("a"), "1", start + Duration::from_secs(seconds));
            }
            let has_after = |seconds| tasks.has_tasks(&instance, start + Duration::from_secs(seconds));
            assert!(has_after(wanted_seconds - 1) && !has_after(wanted_seconds), "{ttl} {ends_after:?}");
            assert!(!tasks.has_tasks(&Arc::new(1), start));
        }
        check("30000", None, 30);
        check("30000", Some(10), 30);
        check("300000", Some(10), 70);
        check("null", None, 3600);
        check("1e300", Some(3590), 3600);
    }

    #[tokio::test(start_paused = true)]
    async fn instance_is_found_by_server_and_task() {
        let (tasks, now) = (TaskRegistry::default(), Instant::now());
        let [first, second] = [Arc::new(1), Arc::new(2)];
        tasks.add(&server("a"), &first, &task("x", "1000"), now);
        tasks.add(&server("a"), &second, &task("x", "1000"), now);
        tasks.add(&server("b"), &second, &task("y", "1000"), now);
        let find = |id, task, odd: bool| tasks.find(&server(id), task, now, |it: &u32| !odd || it % 2 == 1);
        assert_eq!(find("a", "x", false), Some(Arc::clone(&second)));
        assert_eq!(find("a", "x", true), Some(Arc::clone(&first)));
        assert_eq!((find("a", "y", false), find("b", "y", true)), (None, None));
        drop(second);
        assert_eq!(find("a", "x", false).as_deref(), Some(&1));
        assert_eq!(tasks.find(&server("a"), "x", now + Duration::from_secs(1), |_| true), None);
        // The oldest is replaced.
        for number in 0..MAX_TASKS {
            tasks.add(&server("c"), &first, &task(&number.to_string(), "1000"), now);
        }
        assert_eq!((find("a", "x", false), find("c", "0", false).as_deref()), (None, Some(&1)));
    }

    #[tokio::test(start_paused = true)]
    async fn wait_ends_with_the_tasks_of_the_instance() {
        let tasks = TaskRegistry::default();
        let [first, second] = [Arc::new(1), Arc::new(2)];
        let start = Instant::now();
        tasks.add(&server("a"), &first, &task("x", "20000"), start);
        tasks.add(&server("a"), &second, &task("y", "90000"), start);
        let held = tasks.add_guarded(&server("a"), &first, &task("z", "50000"), start);
        let wait = async {
            tasks.wait_until_ended(&first).await;
            start.elapsed().as_secs()
        };
        let release = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            drop(held);
        };
        assert_eq!(tokio::join!(wait, release).0, 30);
        tasks.wait_until_ended(&second).await;
        assert_eq!(start.elapsed().as_secs(), 90);
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_waiting_instances_is_bounded() {
        let (tasks, start) = (TaskRegistry::default(), Instant::now());
        let instances: Vec<_> = (0..=MAX_WAITING_INSTANCES).map(Arc::new).collect();
        for instance in &instances {
            tasks.add(&server("a"), instance, &task("x", "9000"), start);
        }
        let waits = instances.iter().map(async |it| {
            tasks.wait_until_ended(it).await;
            start.elapsed().as_secs()
        });
        let mut seconds = Vec::new();
        let mut waits: Vec<_> = waits.map(Box::pin).collect();
        std::future::poll_fn(|context| {
            waits.retain_mut(|it| match it.as_mut().poll(context) {
                std::task::Poll::Ready(after) => {
                    seconds.push(after);
                    false
                }
                std::task::Poll::Pending => true,
            });
            if waits.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        assert_eq!(seconds, [&[0][..], &[9; MAX_WAITING_INSTANCES]].concat());
    }
}
