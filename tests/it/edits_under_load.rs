//! Concurrent callers during configuration edits: no call fails that could have succeeded, untouched servers are
//! unaffected, and no resources are left.

#![expect(clippy::print_stderr, reason = "a run tells its figures")]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_model::RawJson;
use mcp_host_runtime::{Dialog, DialogId, Host, ToolCall};
use mcp_testkit::isolation::{Isolation, run_isolated};
use mcp_testkit::process::{ProcessResources, resident_memory};
use mcp_testkit::random::Random;
use mcp_testkit::wait::block_until;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::watched_host::{File, PATIENCE, Server, Sharing, WatchedHost, server};

/// The number of edits; `MCP_TEST_EDITS` sets a larger one.
const EDITS: usize = 40;

/// The number of concurrent callers.
const CALLERS: usize = 64;

/// The number of edits between two waits for the host.
const BREATH: usize = 4;

/// The allowed memory growth between the third and the last quarter of the edits, in KiB.
const GROWTH: usize = 4 << 10;

/// The time after which a missing file counts as deleted. A busy machine may delay its return.
const SETTLE: Duration = Duration::from_secs(5);

/// The servers that are added and removed.
const COMERS: [char; 6] = ['c', 'd', 'e', 'f', 'g', 'h'];

#[test]
fn dm_104_dm_106_dm_110_edits_fail_no_call() {
    let name = "edits_under_load::dm_104_dm_106_dm_110_edits_fail_no_call";
    match run_isolated(name) {
        Isolation::AlreadyRun => return,
        Isolation::Here => {}
    }
    let edits = std::env::var("MCP_TEST_EDITS").ok().and_then(|value| value.parse().ok()).unwrap_or(EDITS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // Resources that a process creates once and keeps: the launcher thread and the SIGCHLD handler.
    runtime.block_on(async {
        let watched = WatchedHost::new(Duration::from_secs(2), SETTLE).await;
        watched.save(File::User, &[server('a')]);
        watched.runs(&[server('a')]).await;
        watched.end().await;
    });
    let before = settled(&runtime);
    let memory = runtime.block_on(run_edits(edits));
    let after = settled(&runtime);
    eprintln!("held before {before:?}, after {after:?}");
    assert_eq!(after, before);
    let quarter = |from: usize| memory[from * memory.len() / 4..].iter().copied().max().unwrap_or_default();
    let third = memory[memory.len() / 2..memory.len() * 3 / 4].iter().copied().max().unwrap_or_default();
    assert!(quarter(3) <= third + GROWTH, "KiB after each {BREATH} edits: {memory:?}");
}

/// The resources of the process once no task of the runtime is left.
fn settled(runtime: &Runtime) -> ProcessResources {
    block_until(|| runtime.metrics().num_alive_tasks() == 0);
    // The file watch releases its resources in another thread, a moment later.
    let mut last = ProcessResources::now();
    block_until(|| {
        std::thread::sleep(Duration::from_millis(500));
        let now = ProcessResources::now();
        std::mem::replace(&mut last, now) == now
    });
    last
}

/// Edits the files while the callers run. Returns the memory in use at each wait, in KiB.
async fn run_edits(edits: usize) -> Vec<usize> {
    let watched = WatchedHost::new(Duration::from_secs(2), SETTLE).await;
    let mut editor = ConfigEditor::new(watched);
    editor.save(File::User);
    editor.save(File::Project);
    editor.wait_until_applied().await;
    let first = editor.servers();
    let hash = editor.watched.host.snapshot().catalog.hash();
    let callers = Callers::begin(&editor.watched.host, &editor.stable_tools);

    let mut memory = Vec::new();
    let mut edited = BTreeMap::new();
    for number in 0..edits {
        let edit = EVERY_EDIT[editor.random.below(EVERY_EDIT.len())];
        *edited.entry(format!("{edit:?}")).or_insert(0) += 1;
        editor.make(edit).await;
        if number % BREATH == BREATH - 1 {
            editor.wait_until_applied().await;
            memory.push(resident_memory());
        }
    }
    editor.servers = first.iter().map(|item| (item.name, *item)).collect();
    editor.allow_failures(&COMERS);
    editor.save(File::User);
    editor.save(File::Project);
    editor.wait_until_applied().await;
    let called = callers.end().await;
    eprintln!("{edits} edits {edited:?}, {called:?}");
    eprintln!("memory in use in KiB: {memory:?}");
    for who in ["untouched", "changed", "leased", "leased and changed", "come and go"] {
        assert!(called.get(who).is_some_and(|it| *it > 0), "{who} was never called");
    }

    let ConfigEditor { watched, .. } = editor;
    assert_eq!(watched.host.snapshot().catalog.hash(), hash);
    // `a` had one process; `l` one for its lists and one for each dialog.
    assert_eq!((watched.pids('a').len(), watched.pids('l').len()), (1, 1 + DIALOGS));
    drop(called);
    watched.end().await;
    memory
}

/// The state of the files.
struct ConfigEditor {
    watched: WatchedHost,
    random: Random,
    servers: BTreeMap<char, Server>,
    stable_tools: Arc<StableTools>,
    /// The hash of the catalog that the files describe.
    hashes: HashMap<Vec<Server>, String>,
    breaths: usize,
}

/// A tool of each server that does not change. If it is the same before and after a call, the call must succeed.
#[derive(Default)]
struct StableTools(Mutex<HashMap<char, (usize, String)>>);

impl StableTools {
    fn of(&self, name: char) -> Option<(usize, String)> {
        self.0.lock().unwrap().get(&name).cloned()
    }
}

/// A change of the files.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Add,
    Remove,
    /// A changed command line.
    Change,
    /// Changed tool names.
    Names,
    /// A changed server name.
    Rename,
    /// Invalid YAML, then a repaired file.
    Break,
    /// An empty file, then a full one.
    Empty,
    /// A moved file, then a new one.
    Vanish,
    /// Deletion until the host notices it, then a new file.
    Delete,
    /// A save without a change.
    Same,
}

const EVERY_EDIT: [Edit; 18] = [
    Edit::Add,
    Edit::Add,
    Edit::Add,
    Edit::Remove,
    Edit::Remove,
    Edit::Change,
    Edit::Change,
    Edit::Change,
    Edit::Names,
    Edit::Names,
    Edit::Rename,
    Edit::Rename,
    Edit::Break,
    Edit::Break,
    Edit::Empty,
    Edit::Vanish,
    Edit::Delete,
    Edit::Same,
];

impl ConfigEditor {
    fn new(watched: WatchedHost) -> ConfigEditor {
        let leased = |name| Server { sharing: Sharing::Dialogs, ..server(name) };
        // The user's file: `a` and `l` never change; `b` and `m` change but always exist.
        let servers = [server('a'), server('b'), leased('l'), leased('m'), server('c')];
        ConfigEditor {
            watched,
            random: Random::new(0x6d63_7068_6f73_7421),
            servers: servers.iter().map(|item| (item.name, *item)).collect(),
            stable_tools: Arc::default(),
            hashes: HashMap::new(),
            breaths: 0,
        }
    }

    /// All servers of both files, the project's first.
    fn servers(&self) -> Vec<Server> {
        [File::Project, File::User].iter().flat_map(|it| self.of(*it)).collect()
    }

    fn of(&self, file: File) -> Vec<Server> {
        let is_here = |item: &&Server| COMERS.contains(&item.name) == (file == File::Project);
        self.servers.values().filter(is_here).copied().collect()
    }

    fn save(&mut self, file: File) {
        match self.random.below(2) {
            0 => self.watched.save(file, &self.of(file)),
            _ => self.watched.rename_over(file, &self.of(file)),
        }
    }

    /// Marks servers whose calls may fail from now on.
    fn allow_failures(&self, names: &[char]) {
        self.stable_tools.0.lock().unwrap().retain(|name, _| !names.contains(name));
    }

    /// Waits until the host runs what the files describe; from then on calls must succeed.
    async fn wait_until_applied(&mut self) {
        let servers = self.servers();
        self.watched.runs(&servers).await;
        let hash = self.watched.host.snapshot().catalog.hash().to_string();
        assert_eq!(*self.hashes.entry(servers.clone()).or_insert_with(|| hash.clone()), hash);
        let mut stable_tools = self.stable_tools.0.lock().unwrap();
        self.breaths += 1;
        let since = self.breaths;
        for it in servers {
            stable_tools.entry(it.name).or_insert_with(|| (since, format!("{}{}_echo", it.name, it.names)));
        }
    }

    async fn make(&mut self, edit: Edit) {
        let one = COMERS[self.random.below(COMERS.len())];
        let other = COMERS[self.random.below(COMERS.len())];
        let any = [one, 'b', 'm'][self.random.below(3)];
        // Either file may be invalid for a moment.
        let file = [File::Project, File::User][self.random.below(2)];
        let path = self.watched.path(file);
        match edit {
            Edit::Add => {
                self.servers.entry(one).or_insert_with(|| server(one));
            }
            Edit::Remove => {
                self.allow_failures(&[one]);
                self.servers.remove(&one);
            }
            Edit::Change => {
                if let Some(server) = self.servers.get_mut(&any) {
                    server.connection += 1;
                }
            }
            Edit::Names => {
                self.allow_failures(&[one]);
                if let Some(server) = self.servers.get_mut(&one) {
                    server.names = (server.names + 1) % 3;
                }
            }
            Edit::Rename => {
                self.allow_failures(&[one, other]);
                if let Some(server) = self.servers.remove(&one) {
                    self.servers.insert(other, Server { name: other, ..server });
                }
            }
            Edit::Break => std::fs::write(&path, "version: 1\nservers: {a\n").unwrap(),
            // Both changes are over before they are noticed.
            Edit::Empty => std::fs::write(&path, "").unwrap(),
            Edit::Vanish => std::fs::rename(&path, path.with_extension("away")).unwrap(),
            Edit::Delete => {
                self.allow_failures(&COMERS);
                std::fs::remove_file(self.watched.path(File::Project)).unwrap();
                self.watched.runs(&self.of(File::User)).await;
            }
            Edit::Same => {}
        }
        let pause = self.random.below(200) as u64;
        match edit {
            Edit::Break | Edit::Empty | Edit::Vanish => {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                self.save(file);
            }
            Edit::Change if any == 'b' || any == 'm' => self.save(File::User),
            Edit::Add
            | Edit::Remove
            | Edit::Change
            | Edit::Names
            | Edit::Rename
            | Edit::Delete
            | Edit::Same => self.save(File::Project),
        }
        let pause = self.random.below(300) as u64;
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

/// The number of dialogs with their own instances.
const DIALOGS: usize = 4;

/// The callers.
struct Callers {
    done: Arc<AtomicBool>,
    callers: Vec<(&'static str, JoinHandle<usize>)>,
    /// The number of calls that may fail.
    absent: Arc<AtomicUsize>,
    _dialogs: Vec<Arc<Dialog>>,
}

impl Callers {
    fn begin(host: &Arc<Host>, stable_tools: &Arc<StableTools>) -> Callers {
        let done = Arc::new(AtomicBool::new(false));
        let absent = Arc::new(AtomicUsize::new(0));
        let dialogs = (0..DIALOGS).map(|it| Arc::new(host.dialog(DialogId::new(format!("dialog {it}")))));
        let dialogs: Vec<_> = dialogs.collect();
        let callers = (0..CALLERS).map(|number| {
            let (who, name) = match number % 8 {
                0 => ("untouched", 'a'),
                1 => ("changed", 'b'),
                2 => ("leased", 'l'),
                3 => ("leased and changed", 'm'),
                comer => ("come and go", COMERS[(number / 8 + comer) % COMERS.len()]),
            };
            let caller = Caller {
                host: Arc::clone(host),
                dialog: Arc::clone(&dialogs[number / 8 % DIALOGS]),
                stable_tools: Arc::clone(stable_tools),
                done: Arc::clone(&done),
                absent: Arc::clone(&absent),
                name,
            };
            (who, tokio::spawn(caller.call_on()))
        });
        let callers = callers.collect();
        Callers { done, callers, absent, _dialogs: dialogs }
    }

    /// Stops the callers. Returns for each kind the number of calls that had to succeed and did.
    async fn end(self) -> BTreeMap<&'static str, usize> {
        self.done.store(true, Ordering::Relaxed);
        let mut res = BTreeMap::from([("unanswered", self.absent.load(Ordering::Relaxed))]);
        for (who, caller) in self.callers {
            *res.entry(who).or_insert(0) += caller.await.unwrap();
        }
        res
    }
}

struct Caller {
    host: Arc<Host>,
    dialog: Arc<Dialog>,
    stable_tools: Arc<StableTools>,
    done: Arc<AtomicBool>,
    absent: Arc<AtomicUsize>,
    name: char,
}

impl Caller {
    /// Calls until stopped. Returns the number of calls that had to succeed.
    async fn call_on(self) -> usize {
        let mut made = 0;
        let mut last = format!("{}0_echo", self.name);
        while !self.done.load(Ordering::Relaxed) {
            let before = self.stable_tools.of(self.name);
            if let Some((_, tool)) = &before {
                last.clone_from(tool);
            }
            let arguments = RawJson::parse(r#"{"text":"hello"}"#.into()).unwrap();
            let call = ToolCall::new(last.as_str(), arguments);
            let call = async {
                match self.name {
                    'l' | 'm' => self.dialog.call(call).await,
                    _ => self.host.call(call).await,
                }
            };
            let result = tokio::time::timeout(PATIENCE, call).await.expect("a call ends");
            if before.is_some() && self.stable_tools.of(self.name) == before {
                assert!(result.success, "{last}: {:?}", result.error);
                made += 1;
            } else if !result.success {
                self.absent.fetch_add(1, Ordering::Relaxed);
                // An immediate rejection must not starve other callers.
                tokio::task::yield_now().await;
            }
        }
        made
    }
}
