//! Tests of the task without a host: the updates that it sends. The tests control the watches; the Tokio clock is
//! paused.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::config::watch::FollowLock;
use crate::config::watch::watcher::FolderWatch;
use crate::notifications::stream::{NotificationStream, NotificationStreamItem};

/// The state of the controlled watches.
#[derive(Default)]
struct Watches {
    /// The error of every new watch, if any.
    broken: Option<&'static str>,
    watched: BTreeSet<PathBuf>,
    /// The signal for changes.
    changes: Option<Arc<ChangeSignal>>,
    /// Setting the next watch blocks until the sender of this is dropped.
    hangs: Option<std::sync::mpsc::Receiver<()>>,
}

struct Watch(Arc<Mutex<Watches>>);

impl FolderWatch for Watch {
    fn watch(&mut self, folder: &Path) -> Result<(), String> {
        let hangs = self.0.lock().unwrap().hangs.take();
        if let Some(hangs) = hangs {
            // Returns an error when the sender is dropped.
            let _ = hangs.recv();
        }
        self.0.lock().unwrap().watched.insert(folder.to_owned());
        Ok(())
    }

    fn unwatch(&mut self, folder: &Path) {
        self.0.lock().unwrap().watched.remove(folder);
    }
}

/// A folder whose `.minds/mcp.yaml` is followed. A simulated host records the updates.
struct FollowedFolder {
    folder: TempDir,
    watches: Arc<Mutex<Watches>>,
    updates: mpsc::UnboundedReceiver<String>,
    events: NotificationStream<FollowEvent>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    begun: Instant,
}

impl FollowedFolder {
    fn new(broken: Option<&'static str>, change: impl FnOnce(&mut FollowRequest)) -> FollowedFolder {
        let folder = tempfile::tempdir().unwrap();
        let watches = Arc::new(Mutex::new(Watches { broken, ..Watches::default() }));
        let made = Arc::clone(&watches);
        let make: WatchFactory = Arc::new(move |changes| {
            let mut watches = made.lock().unwrap();
            watches.changes = Some(changes);
            watches.watched.clear();
            match watches.broken {
                Some(why) => Err(why.to_owned()),
                None => Ok(Box::new(Watch(Arc::clone(&made))) as Box<dyn FolderWatch>),
            }
        });
        let (updates, mut taken) = mpsc::channel(8);
        let (tell, updated) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(ConfigUpdate { desired, approval, problems, outcome, published }) =
                taken.recv().await
            {
                let servers = desired.map(|it| {
                    it.servers.iter().map(|it| it.spec.id.to_string()).collect::<Vec<_>>().join(" ")
                });
                let servers = servers.map_or("as before".to_owned(), |it| format!("[{it}]"));
                let ids = problems.iter().map(|it| format!(" {}", it.id.trim_start_matches("mcp/")));
                let outcome = match outcome {
                    Some(ReloadOutcome::Unreadable) => ", unread",
                    Some(ReloadOutcome::Refused) => ", refused",
                    Some(ReloadOutcome::Applied) | None => "",
                };
                let approved = approval.map_or("", |_| ", approved");
                tell.send(format!("{servers}{}{outcome}{approved}", ids.collect::<String>())).unwrap();
                published.send(ReloadPlan::default()).unwrap();
            }
        });
        let mut request = FollowRequest::new(vec![crate::config::load::LoadRequest::new(
            folder.path().join(".minds/mcp.yaml"),
        )]);
        change(&mut request);
        let router = NotificationRouter::new();
        let events = router.subscribe();
        let (stop, stopped) = oneshot::channel();
        let follower = Follower::new(request, updates, router, Some(make));
        let task = tokio::spawn(follower.run(stopped, ReloadTrigger::default(), oneshot::channel().0));
        FollowedFolder { folder, watches, updates: updated, events, stop, task, begun: Instant::now() }
    }

    /// Writes the file with these servers. Does not report the change.
    fn write(&self, servers: &str) {
        let path = self.folder.path().join(".minds/mcp.yaml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let servers: Vec<String> = servers
            .split_whitespace()
            .map(|it| format!("  {it}: {{transport: stdio, command: npx}}\n"))
            .collect();
        std::fs::write(path, format!("version: 1\nservers:\n{}", servers.concat())).unwrap();
    }

    /// Reports a change of this path in the folder, as the operating system does.
    fn tell(&self, path: &str) {
        let path = self.folder.path().canonicalize().unwrap().join(path);
        self.watches.lock().unwrap().changes.as_ref().unwrap().report_path(&path);
    }

    /// Returns the next update, with its time in milliseconds.
    async fn next_update(&mut self) -> (u128, String) {
        let request = self.updates.recv().await.unwrap();
        (self.begun.elapsed().as_millis(), request)
    }

    /// Waits for the next change of the watch mode.
    async fn watching(&mut self) -> WatchMode {
        loop {
            let NotificationStreamItem::Notification(event) = self.events.next().await.unwrap() else {
                panic!("events were dropped")
            };
            if let FollowEvent::WatchModeChanged(watching) = Arc::unwrap_or_clone(event) {
                return watching;
            }
        }
    }

    #[track_caller]
    fn check_watched(&self, want: &[&str]) {
        let root = self.folder.path().canonicalize().unwrap();
        let watches = self.watches.lock().unwrap();
        let inside = watches.watched.iter().filter_map(|it| it.strip_prefix(&root).ok());
        let inside: Vec<_> = inside.map(|it| it.display().to_string()).collect();
        assert_eq!(inside, want);
    }
}

#[tokio::test(start_paused = true)]
async fn dm_092_dm_093_reported_changes_are_read_after_the_debounce() {
    let mut target = FollowedFolder::new(None, |it| it.poll_interval = Duration::from_secs(600));
    assert_eq!(target.next_update().await, (0, "[]".to_owned()));
    // `.minds` does not exist yet, so its parent is watched.
    target.check_watched(&[""]);
    target.write("a");
    target.tell(".minds");
    assert_eq!(target.next_update().await, (200, "[a]".to_owned()));
    target.check_watched(&["", ".minds"]);
    target.write("a b");
    target.tell(".minds/mcp.yaml");
    tokio::time::sleep(Duration::from_millis(150)).await;
    target.tell(".minds/mcp.yaml");
    assert_eq!(target.next_update().await, (550, "[a b]".to_owned()));
    // A change of another file causes no read. Only polling finds the change of this one.
    target.write("b");
    target.tell(".minds/other.yaml");
    assert_eq!(target.next_update().await, (600_000 + 550 + 200, "[b]".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn dm_092_files_are_polled_if_watches_fail() {
    let mut target = FollowedFolder::new(Some("too many"), |_| {});
    let (at, request) = target.next_update().await;
    assert_eq!((at, request.as_str()), (0, "[] workspace_unwatched"));
    assert_eq!(target.watching().await, WatchMode::PollOnly(Some("too many".to_owned())));
    target.write("a");
    assert_eq!(target.next_update().await, (2200, "[a] workspace_unwatched".to_owned()));
    // The next poll sets the watches again, and the problem is withdrawn.
    target.watches.lock().unwrap().broken = None;
    assert_eq!(target.next_update().await, (4200, "as before".to_owned()));
    assert_eq!(target.watching().await, WatchMode::System);
    target.check_watched(&["", ".minds"]);
    // The same when working watches fail.
    target.watches.lock().unwrap().broken = Some("gone");
    target.watches.lock().unwrap().changes.as_ref().unwrap().report_failure("unmounted".to_owned());
    assert_eq!(target.next_update().await, (4400, "as before workspace_unwatched".to_owned()));
    assert_eq!(target.watching().await, WatchMode::PollOnly(Some("gone".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn dm_092_watches_that_missed_a_change_are_set_again() {
    let mut target = FollowedFolder::new(None, |_| {});
    assert_eq!(target.next_update().await.1, "[]");
    target.write("a");
    assert_eq!(target.next_update().await, (2200, "[a]".to_owned()));
    // As if a folder further up was replaced: the watches refer to deleted folders and report nothing.
    target.watches.lock().unwrap().watched.clear();
    target.write("b");
    assert_eq!(target.next_update().await.1, "[b]");
    target.check_watched(&["", ".minds"]);
}

#[tokio::test(start_paused = true)]
async fn dm_093_busy_file_is_read_by_the_maximum_delay() {
    let mut target = FollowedFolder::new(None, |it| it.poll_interval = Duration::from_secs(600));
    target.write("a");
    assert_eq!(target.next_update().await.1, "[a]");
    target.write("b");
    let begun = Instant::now();
    while target.updates.is_empty() {
        target.tell(".minds/mcp.yaml");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((target.next_update().await.1.as_str(), begun.elapsed().as_millis()), ("[b]", 1050));
}

#[tokio::test(start_paused = true)]
async fn dm_124_stopping_withdraws_the_problems_of_the_files() {
    let mut target = FollowedFolder::new(Some("too many"), |_| {});
    assert_eq!(target.next_update().await.1, "[] workspace_unwatched");
    target.stop.send(()).unwrap();
    target.task.await.unwrap();
    assert_eq!(target.updates.recv().await.unwrap(), "as before");
    assert_eq!(target.updates.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn stalled_read_blocks_neither_later_reads_nor_stopping() {
    let mut target = FollowedFolder::new(None, |it| it.read_timeout = Duration::from_millis(100));
    assert_eq!(target.next_update().await.1, "[]");
    let (release, hangs) = std::sync::mpsc::channel();
    target.watches.lock().unwrap().hangs = Some(hangs);
    target.write("a");
    target.tell(".minds");
    assert_eq!(target.next_update().await.1, "as before workspace_config_error, unread");
    // The next read succeeds and withdraws the problem. The stalled read has no effect any more.
    assert_eq!(target.next_update().await.1, "as before");
    assert_eq!(target.next_update().await.1, "[a]");
    drop(release);
    target.write("b");
    target.tell(".minds/mcp.yaml");
    assert_eq!(target.next_update().await.1, "[b]");
    // Stopping does not wait for a stalled read either.
    let (release, hangs) = std::sync::mpsc::channel();
    target.watches.lock().unwrap().hangs = Some(hangs);
    target.watches.lock().unwrap().changes.as_ref().unwrap().report_failure("unmounted".to_owned());
    std::fs::remove_dir_all(target.folder.path().join(".minds")).unwrap();
    assert_eq!(target.next_update().await.1, "as before workspace_config_error, unread");
    target.stop.send(()).unwrap();
    target.task.await.unwrap();
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn lock_file_is_applied_with_the_servers_and_kept_if_it_is_lost() {
    let mut target = FollowedFolder::new(None, |it| {
        it.poll_interval = Duration::from_secs(600);
        let path = crate::config::load::lock_path(&it.files[0].path);
        it.lock = Some(FollowLock { path, policy: mcp_host_registry::DriftPolicy::default() });
    });
    assert_eq!(target.next_update().await.1, "[]");
    let lock = target.folder.path().join(".minds/mcp.lock");
    let text = mcp_host_registry::LockFile::default().to_text();
    target.write("a");
    std::fs::write(&lock, &text).unwrap();
    target.tell(".minds");
    // Servers and approvals arrive in one update, so that no unapproved tool is shown in between.
    assert_eq!(target.next_update().await.1, "[a], approved");
    std::fs::write(&lock, "{}").unwrap();
    target.tell(".minds/mcp.lock");
    assert_eq!(target.next_update().await.1, "as before workspace_config_error");
    std::fs::remove_file(&lock).unwrap();
    target.tell(".minds/mcp.lock");
    assert_eq!(target.next_update().await.1, "as before workspace_config_error");
    std::fs::write(&lock, &text).unwrap();
    // Polling finds a change of the lock file too. The servers are applied again, since it may approve more of them.
    assert_eq!(target.next_update().await.1, "[a], approved");
}
