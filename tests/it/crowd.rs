//! A crowd that never stops calling while somebody does all that can be done to the files: nothing that could have been
//! answered fails, who is not touched notices nothing, and afterwards nothing is left.

#![expect(clippy::print_stderr, reason = "a run tells its figures")]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host::{Dialog, DialogId, Host, ToolCall};
use mcp_model::RawJson;
use mcp_tests::{Alone, Holdings, alone, eventually, resident};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::place::{File, PATIENCE, Place, Server, Sharing, server};

/// How many edits the callers live through; a longer run sets `MCP_TEST_EDITS`.
const EDITS: usize = 40;

/// How many call at once, without a pause.
const CALLERS: usize = 64;

/// After how many edits it is waited until the host runs what the files say.
const BREATH: usize = 4;

/// How much more memory may be in use in the last quarter of the edits than in the third, in KiB.
const GROWTH: usize = 4 << 10;

/// How long a file must be gone to be taken for deleted. On a busy machine a short absence may be a long one.
const SETTLE: Duration = Duration::from_secs(5);

/// Those that come and go.
const COMERS: [char; 6] = ['c', 'd', 'e', 'f', 'g', 'h'];

#[test]
fn dm_104_dm_106_dm_110_a_crowd_loses_no_call_whatever_happens_to_the_files() {
    let name = "crowd::dm_104_dm_106_dm_110_a_crowd_loses_no_call_whatever_happens_to_the_files";
    match alone(name) {
        Alone::HasRun => return,
        Alone::Here => {}
    }
    let edits = std::env::var("MCP_TEST_EDITS").ok().and_then(|it| it.parse().ok()).unwrap_or(EDITS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // What a process gets once and keeps: a thread that starts processes, the signal of their ends.
    runtime.block_on(async {
        let place = Place::new(Duration::from_secs(2), SETTLE).await;
        place.save(File::User, &[server('a')]);
        place.runs(&[server('a')]).await;
        place.end().await;
    });
    let before = settled(&runtime);
    let memory = runtime.block_on(siege(edits));
    let after = settled(&runtime);
    eprintln!("held before {before:?}, after {after:?}");
    assert_eq!(after, before);
    let quarter = |from: usize| memory[from * memory.len() / 4..].iter().copied().max().unwrap_or_default();
    let third = memory[memory.len() / 2..memory.len() * 3 / 4].iter().copied().max().unwrap_or_default();
    assert!(quarter(3) <= third + GROWTH, "KiB after each {BREATH} edits: {memory:?}");
}

/// What the process holds once no task of the runtime is left.
fn settled(runtime: &Runtime) -> Holdings {
    eventually("no task is left", || runtime.metrics().num_alive_tasks() == 0);
    // What the system's watch held is given back by a thread of its own, a moment later.
    let mut last = Holdings::now();
    eventually("nothing moves any more", || {
        std::thread::sleep(Duration::from_millis(500));
        let now = Holdings::now();
        std::mem::replace(&mut last, now) == now
    });
    last
}

/// Edits the files under the eyes of the crowd. Gives the memory in use, in KiB, at each breath.
async fn siege(edits: usize) -> Vec<usize> {
    let place = Place::new(Duration::from_secs(2), SETTLE).await;
    let mut desk = Desk::new(place);
    desk.save(File::User);
    desk.save(File::Project);
    desk.breathe().await;
    let first = desk.servers();
    let hash = desk.place.host.snapshot().catalog.hash();
    let crowd = Crowd::begin(&desk.place.host, &desk.standing);

    let mut memory = Vec::new();
    let mut edited = BTreeMap::new();
    for number in 0..edits {
        let edit = EVERY_EDIT[desk.random.below(EVERY_EDIT.len())];
        *edited.entry(format!("{edit:?}")).or_insert(0) += 1;
        desk.make(edit).await;
        if number % BREATH == BREATH - 1 {
            desk.breathe().await;
            memory.push(resident());
        }
    }
    desk.servers = first.iter().map(|it| (it.name, *it)).collect();
    desk.unsettle(&COMERS);
    desk.save(File::User);
    desk.save(File::Project);
    desk.breathe().await;
    let called = crowd.end().await;
    eprintln!("{edits} edits {edited:?}, {called:?}");
    eprintln!("memory in use in KiB: {memory:?}");
    for who in ["untouched", "changed", "leased", "leased and changed", "come and go"] {
        assert!(called.get(who).is_some_and(|it| *it > 0), "nobody has called {who}");
    }

    let Desk { place, .. } = desk;
    assert_eq!(place.host.snapshot().catalog.hash(), hash);
    // Of `a` the first process is the only one; of `l` the one that listed, and one for each dialog.
    assert_eq!((place.pids('a').len(), place.pids('l').len()), (1, 1 + DIALOGS));
    drop(called);
    place.end().await;
    memory
}

/// Somebody who edits, and what he has written.
struct Desk {
    place: Place,
    random: Random,
    servers: BTreeMap<char, Server>,
    standing: Arc<Standing>,
    /// The catalog's hash, by what the files say.
    hashes: HashMap<Vec<Server>, String>,
    breaths: usize,
}

/// The tool by which each server can be called that stays as it is: whoever finds the same before a call and after it
/// could have been answered.
#[derive(Default)]
struct Standing(Mutex<HashMap<char, (usize, String)>>);

impl Standing {
    fn of(&self, name: char) -> Option<(usize, String)> {
        self.0.lock().unwrap().get(&name).cloned()
    }
}

/// What somebody does to the files.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Add,
    Remove,
    /// Another command line.
    Change,
    /// Other names of tools.
    Names,
    /// Another name of the server.
    Rename,
    /// No YAML any more, and repaired.
    Break,
    /// Emptied, and written.
    Empty,
    /// Moved away, and written.
    Vanish,
    /// Deleted until that is believed, and made anew.
    Delete,
    /// Saved as it is.
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

impl Desk {
    fn new(place: Place) -> Desk {
        let leased = |name| Server { sharing: Sharing::Dialogs, ..server(name) };
        // The user's own: nobody touches `a` and `l`; `b` and `m` are changed without end, but are always there.
        let servers = [server('a'), server('b'), leased('l'), leased('m'), server('c')];
        Desk {
            place,
            random: Random(0x6d63_7068_6f73_7421),
            servers: servers.iter().map(|it| (it.name, *it)).collect(),
            standing: Arc::default(),
            hashes: HashMap::new(),
            breaths: 0,
        }
    }

    /// All servers as the files say, the project's first.
    fn servers(&self) -> Vec<Server> {
        [File::Project, File::User].iter().flat_map(|it| self.of(*it)).collect()
    }

    fn of(&self, file: File) -> Vec<Server> {
        let is_here = |it: &&Server| COMERS.contains(&it.name) == (file == File::Project);
        self.servers.values().filter(is_here).copied().collect()
    }

    fn save(&mut self, file: File) {
        match self.random.below(2) {
            0 => self.place.save(file, &self.of(file)),
            _ => self.place.rename_over(file, &self.of(file)),
        }
    }

    /// Calls of these may fail from now on.
    fn unsettle(&self, names: &[char]) {
        self.standing.0.lock().unwrap().retain(|name, _| !names.contains(name));
    }

    /// Waits until the host runs what the files say; from then on its servers must answer.
    async fn breathe(&mut self) {
        let servers = self.servers();
        self.place.runs(&servers).await;
        let hash = self.place.host.snapshot().catalog.hash().to_string();
        assert_eq!(*self.hashes.entry(servers.clone()).or_insert_with(|| hash.clone()), hash);
        let mut standing = self.standing.0.lock().unwrap();
        self.breaths += 1;
        let since = self.breaths;
        for it in servers {
            standing.entry(it.name).or_insert_with(|| (since, format!("{}{}_echo", it.name, it.names)));
        }
    }

    async fn make(&mut self, edit: Edit) {
        let one = COMERS[self.random.below(COMERS.len())];
        let other = COMERS[self.random.below(COMERS.len())];
        let any = [one, 'b', 'm'][self.random.below(3)];
        // What is wrong for a moment may be so in either file.
        let file = [File::Project, File::User][self.random.below(2)];
        let path = self.place.path(file);
        match edit {
            Edit::Add => {
                self.servers.entry(one).or_insert_with(|| server(one));
            }
            Edit::Remove => {
                self.unsettle(&[one]);
                self.servers.remove(&one);
            }
            Edit::Change => {
                if let Some(server) = self.servers.get_mut(&any) {
                    server.connection += 1;
                }
            }
            Edit::Names => {
                self.unsettle(&[one]);
                if let Some(server) = self.servers.get_mut(&one) {
                    server.names = (server.names + 1) % 3;
                }
            }
            Edit::Rename => {
                self.unsettle(&[one, other]);
                if let Some(server) = self.servers.remove(&one) {
                    self.servers.insert(other, Server { name: other, ..server });
                }
            }
            Edit::Break => std::fs::write(&path, "version: 1\nservers: {a\n").unwrap(),
            // Both are over before they are believed.
            Edit::Empty => std::fs::write(&path, "").unwrap(),
            Edit::Vanish => std::fs::rename(&path, path.with_extension("away")).unwrap(),
            Edit::Delete => {
                self.unsettle(&COMERS);
                std::fs::remove_file(self.place.path(File::Project)).unwrap();
                self.place.runs(&self.of(File::User)).await;
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

/// How many dialogs have instances of their own.
const DIALOGS: usize = 4;

/// Those who call.
struct Crowd {
    done: Arc<AtomicBool>,
    callers: Vec<(&'static str, JoinHandle<usize>)>,
    /// How often somebody could not have been answered.
    absent: Arc<AtomicUsize>,
    _dialogs: Vec<Arc<Dialog>>,
}

impl Crowd {
    fn begin(host: &Arc<Host>, standing: &Arc<Standing>) -> Crowd {
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
                standing: Arc::clone(standing),
                done: Arc::clone(&done),
                absent: Arc::clone(&absent),
                name,
            };
            (who, tokio::spawn(caller.call_on()))
        });
        let callers = callers.collect();
        Crowd { done, callers, absent, _dialogs: dialogs }
    }

    /// How many calls had to succeed and did, by whom.
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
    standing: Arc<Standing>,
    done: Arc<AtomicBool>,
    absent: Arc<AtomicUsize>,
    name: char,
}

impl Caller {
    /// Calls until it is done. Gives how many calls had to succeed.
    async fn call_on(self) -> usize {
        let mut made = 0;
        let mut last = format!("{}0_echo", self.name);
        while !self.done.load(Ordering::Relaxed) {
            let before = self.standing.of(self.name);
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
            if before.is_some() && self.standing.of(self.name) == before {
                assert!(result.success, "{last}: {:?}", result.error);
                made += 1;
            } else if !result.success {
                self.absent.fetch_add(1, Ordering::Relaxed);
                // Who is refused at once must not keep the others from their turn.
                tokio::task::yield_now().await;
            }
        }
        made
    }
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }
}
