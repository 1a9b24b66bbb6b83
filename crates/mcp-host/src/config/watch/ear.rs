//! Hears of changes: watches folders, and says that something has happened to a path that matters.
//!
//! What has happened is not asked, for the files are read anyhow, and their content alone decides. An ear that cannot
//! hear says why; it is tried again each time it is asked to attend.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::places::{Entry, Need, Places};

/// How often the places are looked up again because they moved while their watches were set.
const ATTEMPTS: usize = 4;

/// A system's way of watching folders. May block.
pub(crate) trait FolderWatch: Send {
    /// Begins, or begins again, to watch a folder without those inside of it.
    fn watch(&mut self, folder: &Path) -> Result<(), String>;
    /// Ends that. A folder that is not watched is none of its business.
    fn unwatch(&mut self, folder: &Path);
}

/// Makes a watch that tells what it sees.
pub(crate) type MakeWatch = Arc<dyn Fn(Arc<Heard>) -> Result<Box<dyn FolderWatch>, String> + Send + Sync>;

/// What was heard, from whichever thread.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    news: Notify,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The paths that matter.
    names: BTreeSet<PathBuf>,
    /// Of those, the ones to which something happened.
    touched: BTreeSet<PathBuf>,
    /// Why the watch is not to be trusted any more.
    lost: Option<String>,
}

/// What a watch says.
#[cfg(any(feature = "watch", test))]
impl Heard {
    /// Something has happened to this path.
    pub(crate) fn path(&self, path: &Path) {
        let mut state = self.state();
        if state.names.contains(path) {
            state.touched.insert(path.to_owned());
            drop(state);
            self.news.notify_one();
        }
    }

    /// Something has happened somewhere.
    pub(crate) fn anything(&self) {
        self.news.notify_one();
    }

    /// The watch has failed.
    pub(crate) fn lost(&self, why: String) {
        self.state().lost = Some(why);
        self.news.notify_one();
    }
}

impl Heard {
    /// Resolves when something has happened since the last time. Cancel-safe.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing is left half done in there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watches that are set.
pub(crate) struct Ear {
    heard: Arc<Heard>,
    /// `None` where there is no way of watching: that is no trouble, only a slower way.
    make: Option<MakeWatch>,
    watch: Option<Box<dyn FolderWatch>>,
    folders: BTreeSet<PathBuf>,
    trouble: Option<String>,
}

/// How far the watches that are set already are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// They are good.
    Keep,
    /// They have missed something: they are set anew.
    Renew,
}

impl Ear {
    pub(crate) fn new(make: Option<MakeWatch>, heard: Arc<Heard>) -> Ear {
        Ear { heard, make, watch: None, folders: BTreeSet::new(), trouble: None }
    }

    /// Why some changes are not heard of, where that is so.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Listens to all that can happen to these absolute paths, and to nothing else. Whatever happens to them after
    /// this returns is heard of. Blocks.
    pub(crate) fn attend(&mut self, paths: &BTreeSet<PathBuf>, trust: Trust) {
        let Some(make) = &self.make else { return };
        self.trouble = None;
        let State { names: _, touched, lost } = std::mem::take(&mut *self.heard.state());
        if lost.is_some() {
            self.watch = None;
        }
        // A folder that something happened to may be another one by now, which nobody watches.
        self.folders.retain(|it| trust == Trust::Keep && self.watch.is_some() && !touched.contains(it));
        let watch = match &mut self.watch {
            Some(watch) => watch,
            None => match make(Arc::clone(&self.heard)) {
                Ok(watch) => self.watch.insert(watch),
                Err(why) => {
                    self.trouble = Some(why);
                    return;
                }
            },
        };
        let mut places = places(paths);
        for _ in 0..ATTEMPTS {
            // Before the folders: what is heard at once must not pass for something that does not matter.
            self.heard.state().names.clone_from(&places.names);
            self.trouble = None;
            for (folder, need) in &places.folders {
                if self.folders.contains(folder) {
                    continue;
                }
                match (watch.watch(folder), need) {
                    (Ok(()), _) => {
                        self.folders.insert(folder.clone());
                    }
                    (Err(why), Need::Required) => self.trouble = Some(why),
                    (Err(_), Need::Helpful) => {}
                }
            }
            let now = self::places(paths);
            if now == places {
                break;
            }
            places = now;
        }
        self.folders.retain(|folder| {
            let stays = places.folders.contains_key(folder);
            if !stays {
                watch.unwatch(folder);
            }
            stays
        });
    }
}

fn places(paths: &BTreeSet<PathBuf>) -> Places {
    let look = |path: &Path| match path.symlink_metadata() {
        Ok(it) if it.is_symlink() => path.read_link().map_or(Entry::Missing, Entry::Link),
        Ok(_) => Entry::There,
        Err(_) => Entry::Missing,
    };
    let mut res = Places::default();
    for path in paths {
        res.add(path, &look);
    }
    res
}

/// The system's own way, where it is built in.
#[cfg(not(feature = "watch"))]
pub(crate) fn system_watch() -> Option<MakeWatch> {
    None
}

/// The system's own way, where it is built in.
#[cfg(feature = "watch")]
pub(crate) fn system_watch() -> Option<MakeWatch> {
    Some(Arc::new(|heard| Ok(Box::new(system::SystemWatch::new(heard)?))))
}

#[cfg(feature = "watch")]
mod system {
    use notify::event::{AccessKind, AccessMode};
    use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

    use super::{Arc, FolderWatch, Heard, Path};

    pub(super) struct SystemWatch(RecommendedWatcher);

    impl SystemWatch {
        pub(super) fn new(heard: Arc<Heard>) -> Result<SystemWatch, String> {
            let tell = move |event: notify::Result<Event>| match event {
                Ok(event) if event.need_rescan() => heard.anything(),
                Ok(event) if changes(event.kind) => event.paths.iter().for_each(|it| heard.path(it)),
                Ok(_) => {}
                Err(error) => heard.lost(error.to_string()),
            };
            notify::recommended_watcher(tell).map(SystemWatch).map_err(|it| it.to_string())
        }
    }

    impl FolderWatch for SystemWatch {
        fn watch(&mut self, folder: &Path) -> Result<(), String> {
            self.0.watch(folder, RecursiveMode::NonRecursive).map_err(|it| it.to_string())
        }

        fn unwatch(&mut self, folder: &Path) {
            // It fails for a folder that is gone, whose watch went with it.
            let _ = self.0.unwatch(folder);
        }
    }

    /// Our own reading is no news. The end of somebody's writing is.
    fn changes(kind: EventKind) -> bool {
        match kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => true,
        }
    }
}
