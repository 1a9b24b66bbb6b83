//! A host that follows its file, with real servers: whatever is done to the file, what is still wanted goes on.
//!
//! The slow look is switched off where the system's watch is to be seen at work.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_host::{FollowRequest, Following, Host, HostOptions, LoadRequest, Published, ServerState, ToolCall};
use mcp_model::{CallResult, RawJson, Severity};
use mcp_tests::{binary, lives};
use tempfile::TempDir;

/// Longer than any step takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many edits the callers live through; a longer run sets `MCP_TEST_EDITS`.
const EDITS: usize = 40;

/// How many call at once, without a pause.
const CALLERS: usize = 16;

/// A host that follows `.minds/mcp.yaml` of a folder.
struct Place {
    folder: TempDir,
    host: Arc<Host>,
    following: Following,
}

/// A server as it is to be: its name, and which revision of its connection and of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Server {
    name: char,
    connection: usize,
    names: usize,
}

fn server(name: char) -> Server {
    Server { name, connection: 0, names: 0 }
}

impl Place {
    async fn new(poll: Duration, settle: Duration) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let request = LoadRequest::new(folder.path().join(".minds/mcp.yaml"));
        let request = FollowRequest {
            debounce: Duration::from_millis(100),
            settle,
            poll,
            ..FollowRequest::new(vec![request])
        };
        let host = Arc::new(Host::start(HostOptions::default()));
        let following = host.follow(request).await;
        Place { folder, host, following }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(".minds/mcp.yaml")
    }

    /// The file's text: each server writes the number of its process into a file of its name, a line for each start.
    fn text(&self, servers: &[Server]) -> String {
        let mut res = "version: 1\nservers:\n".to_owned();
        for Server { name, connection, names } in servers {
            let pids = self.folder.path().join(format!("{name}.pids"));
            let command = format!("echo $$ >> {}; exec {} demo-server", pids.display(), binary().display());
            res.push_str(&format!(
                "  {name}:\n    truely-stateless: true\n    transport: stdio\n    command: sh\n    args: ['-c', '{command}', 'r{connection}']\n    \
                 tools: {{whitelist: [echo, add]}}\n    transform: [{{prefix: {name}{names}_}}]\n"
            ));
        }
        res
    }

    fn save(&self, servers: &[Server]) {
        std::fs::create_dir_all(self.path().parent().unwrap()).unwrap();
        std::fs::write(self.path(), self.text(servers)).unwrap();
    }

    /// Every process that was started for a server, in order.
    fn pids(&self, name: char) -> Vec<u32> {
        let text =
            std::fs::read_to_string(self.folder.path().join(format!("{name}.pids"))).unwrap_or_default();
        text.lines().map(|it| it.parse().unwrap()).collect()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Published) -> bool) {
        let mut published = self.host.subscribe();
        let seen = tokio::time::timeout(PATIENCE, published.wait_for(|it| holds(it))).await;
        assert!(seen.is_ok(), "still not {what}: {:#?}", self.host.published());
    }

    /// Waits until exactly these servers are there, and nothing is wrong.
    async fn runs(&self, servers: &[Server]) {
        let names: Vec<String> = servers.iter().map(|it| it.name.to_string()).collect();
        let tools: Vec<String> = servers.iter().flat_map(tools).collect();
        self.until(&format!("{servers:?}"), |it| {
            let ready = it.servers.iter().all(|it| it.state == ServerState::Ready && it.failure.is_none());
            let ready = ready && !it.problems.iter().any(|it| it.problem.severity == Severity::Error);
            let shown = it.catalog.tools().iter().map(|it| it.name.to_string());
            ready
                && it.servers.iter().map(|it| it.id.clone()).eq(names.iter().cloned())
                && shown.eq(tools.iter().cloned())
        })
        .await;
    }

    async fn call(&self, tool: &str) -> CallResult {
        call(&self.host, tool).await
    }

    /// Ends all of it; nothing is left.
    async fn end(self) {
        self.following.stop().await;
        self.host.shutdown().await;
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
            let left: Vec<u32> =
                text.lines().filter_map(|it| it.parse().ok()).filter(|it| lives(*it)).collect();
            assert!(left.is_empty(), "{left:?} are left");
        }
    }
}

/// The names of a server's tools, in its own order.
fn tools(server: &Server) -> Vec<String> {
    ["echo", "add"].iter().map(|it| format!("{}{}_{it}", server.name, server.names)).collect()
}

async fn call(host: &Host, tool: &str) -> CallResult {
    let arguments = RawJson::parse(r#"{"text":"hello"}"#.into()).unwrap();
    host.call(ToolCall::new(tool, arguments)).await
}

/// Never looks by itself: what is noticed was heard.
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dm_091_dm_092_dm_110_every_way_to_save_is_heard_and_touches_nobody_else() {
    let place = Place::new(NEVER, Duration::from_millis(500)).await;
    let (a, b, c) = (server('a'), server('b'), server('c'));
    let path = place.path();
    let folder = path.parent().unwrap().to_owned();
    // The folder comes later.
    place.save(&[a]);
    place.runs(&[a]).await;
    let first = place.pids('a');
    place.save(&[a, b]);
    place.runs(&[a, b]).await;
    let hash = place.host.published().catalog.hash();
    // Names and filters restart nobody.
    let renamed = Server { names: 1, ..b };
    place.save(&[a, renamed]);
    place.runs(&[a, renamed]).await;
    assert_eq!(place.pids('b').len(), 1);
    let changed = Server { connection: 1, ..renamed };
    place.save(&[a, changed]);
    place.until("changed", |_| place.pids('b').len() == 2).await;
    place.runs(&[a, changed]).await;
    // Renamed over.
    let over = |servers: &[Server]| {
        std::fs::write(folder.join("new"), place.text(servers)).unwrap();
        std::fs::rename(folder.join("new"), &path).unwrap();
    };
    over(&[a, c]);
    place.runs(&[a, c]).await;
    over(&[a]);
    place.runs(&[a]).await;
    // Broken, and mended.
    std::fs::write(&path, "version: 1\nservers: {a\n").unwrap();
    let is_broken =
        |it: &Published| it.problems.iter().any(|it| it.problem.id == "mcp/workspace_config_error");
    place.until("broken", is_broken).await;
    assert!(place.call("a0_echo").await.success);
    place.save(&[a, c]);
    place.runs(&[a, c]).await;
    // Emptied, and written a moment later.
    std::fs::write(&path, "").unwrap();
    tokio::time::sleep(Duration::from_millis(250)).await;
    place.save(&[a, b]);
    place.runs(&[a, b]).await;
    assert_eq!(place.host.published().catalog.hash(), hash);
    // A link that is turned, as a mounted folder is exchanged.
    for (version, servers) in [("..1", &[a][..]), ("..2", &[a, c]), ("..3", &[a, b])] {
        std::fs::create_dir(folder.join(version)).unwrap();
        std::fs::write(folder.join(version).join("mcp.yaml"), place.text(servers)).unwrap();
        symlink(version, folder.join("..data_tmp")).unwrap();
        std::fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        if !path.is_symlink() {
            symlink("..data/mcp.yaml", folder.join("link")).unwrap();
            std::fs::rename(folder.join("link"), &path).unwrap();
        }
        place.runs(servers).await;
    }
    // Until here nothing has touched it.
    assert_eq!(place.pids('a'), first);
    assert!(lives(first[0]));
    // Deleted with its folder, and made anew.
    std::fs::remove_dir_all(&folder).unwrap();
    place.runs(&[]).await;
    place.save(&[a, b]);
    place.runs(&[a, b]).await;
    assert_eq!(place.host.published().catalog.hash(), hash);
    // Deleted alone, and made anew.
    std::fs::remove_file(&path).unwrap();
    place.runs(&[]).await;
    place.save(&[b]);
    place.runs(&[b]).await;
    place.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dm_104_dm_106_dm_110_no_call_is_lost_whatever_happens_to_the_file() {
    let edits = std::env::var("MCP_TEST_EDITS").ok().and_then(|it| it.parse().ok()).unwrap_or(EDITS);
    // On a busy machine a short absence may be a long one.
    let place = Place::new(Duration::from_secs(2), Duration::from_secs(10)).await;
    // Nobody touches `a`; `b` is changed without end, but is always there; the others come and go.
    let steady = [server('a'), server('b')];
    let first: Vec<Server> = steady.into_iter().chain([server('c')]).collect();
    place.save(&first);
    place.runs(&first).await;
    let (hash, untouched) = (place.host.published().catalog.hash(), place.pids('a'));

    let done = Arc::new(AtomicBool::new(false));
    let made = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let (host, done, made) = (Arc::clone(&place.host), Arc::clone(&done), Arc::clone(&made));
            tokio::spawn(async move {
                let tool = if number % 2 == 0 { "a0_echo" } else { "b0_echo" };
                while !done.load(Ordering::Relaxed) {
                    let result = call(&host, tool).await;
                    assert!(result.success, "{tool}: {:?}", result.error);
                    made.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();

    let mut random = Random(0x6d63_7068_6f73_7421);
    let mut servers: BTreeMap<char, Server> = first.iter().map(|it| (it.name, *it)).collect();
    let mut edited = BTreeMap::new();
    for number in 0..edits {
        let edit = EVERY_EDIT[random.below(EVERY_EDIT.len())];
        *edited.entry(format!("{edit:?}")).or_insert(0) += 1;
        make(edit, &place, &mut servers, &mut random).await;
        if number % 4 == 3 {
            let now: Vec<Server> = servers.values().copied().collect();
            place.save(&now);
            place.runs(&now).await;
        }
    }
    place.save(&first);
    place.runs(&first).await;
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(made.load(Ordering::Relaxed) > CALLERS, "nobody has called");
    assert_eq!(place.host.published().catalog.hash(), hash);
    assert_eq!(place.pids('a'), untouched);
    place.end().await;
}

/// What somebody does to the file.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Add,
    Remove,
    Change,
    Rename,
    Break,
    Empty,
    Vanish,
    Same,
}

const EVERY_EDIT: [Edit; 8] =
    [Edit::Add, Edit::Remove, Edit::Change, Edit::Rename, Edit::Break, Edit::Empty, Edit::Vanish, Edit::Same];

async fn make(edit: Edit, place: &Place, servers: &mut BTreeMap<char, Server>, random: &mut Random) {
    let one = ['c', 'd', 'e'][random.below(3)];
    match edit {
        Edit::Add => {
            servers.insert(one, server(one));
        }
        Edit::Remove => {
            servers.remove(&one);
        }
        Edit::Change => {
            let one = ['b', one][random.below(2)];
            if let Some(server) = servers.get_mut(&one) {
                server.connection += 1;
            }
        }
        Edit::Rename => {
            if let Some(server) = servers.get_mut(&one) {
                server.names += 1;
            }
        }
        Edit::Break => std::fs::write(place.path(), "version: 1\nservers: {a\n").unwrap(),
        // Both are over before they are believed.
        Edit::Empty => std::fs::write(place.path(), "").unwrap(),
        Edit::Vanish => std::fs::remove_file(place.path()).unwrap(),
        Edit::Same => {}
    }
    if matches!(edit, Edit::Break | Edit::Empty | Edit::Vanish) {
        tokio::time::sleep(Duration::from_millis(random.below(200) as u64)).await;
    }
    let now: Vec<Server> = servers.values().copied().collect();
    if random.below(2) == 0 {
        place.save(&now);
    } else {
        let new: &Path = &place.path().with_extension("new");
        std::fs::write(new, place.text(&now)).unwrap();
        std::fs::rename(new, place.path()).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(random.below(300) as u64)).await;
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
