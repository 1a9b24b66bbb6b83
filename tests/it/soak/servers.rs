//! The servers: stable ones, and unstable ones that are edited, killed and changed, with their files and processes.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_host_runtime::{FollowRequest, Host, LoadRequest, ServerState};
use mcp_testkit::program::binary;
use tempfile::TempDir;

use super::PATIENCE;

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerTransport {
    Stdio,
    Http,
    Sse,
    WebSocket,
}

/// Whether a server is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stability {
    /// It is not disturbed.
    Calm,
    /// Everything may happen to it.
    Wild,
}

/// The sharing of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    ToAll,
    /// One instance for each dialog.
    ToDialogs,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) wire: ServerTransport,
    pub(super) nature: Stability,
    pub(super) belongs: Sharing,
    /// The number of changes in its file; odd while it is removed.
    edited: AtomicU64,
}

impl Server {
    fn new(name: String, wire: ServerTransport, nature: Stability, belongs: Sharing) -> Server {
        Server { name, wire, nature, belongs, edited: AtomicU64::new(0) }
    }

    /// The exposed name of one of its tools.
    pub(super) fn tool(&self, name: &str) -> String {
        match self.wire {
            ServerTransport::Stdio => format!("{}_{name}", self.name),
            ServerTransport::Http | ServerTransport::Sse | ServerTransport::WebSocket => {
                format!("{}__{name}", self.name)
            }
        }
    }

    /// Changes its entry in the file, or removes it.
    pub(super) fn edit(&self) {
        self.edited.fetch_add(1, Ordering::SeqCst);
    }

    fn is_written(&self) -> bool {
        self.edited.load(Ordering::SeqCst).is_multiple_of(2)
    }
}

/// All servers.
pub(super) struct Servers {
    folder: TempDir,
    pub(super) servers: Vec<Server>,
    calm: Listener,
    wild: Mutex<Listener>,
}

impl Servers {
    /// The number of stdio servers, and of servers of each other transport; half of each are unstable.
    pub(super) fn new(piped: usize, of_each_wire: usize) -> Servers {
        let nature = |number: usize| if number.is_multiple_of(2) { Stability::Calm } else { Stability::Wild };
        let mut servers = Vec::new();
        for number in 0..piped {
            servers.push(Server::new(
                format!("p{number}"),
                ServerTransport::Stdio,
                nature(number),
                Sharing::ToAll,
            ));
        }
        for (letter, wire) in
            [('h', ServerTransport::Http), ('e', ServerTransport::Sse), ('w', ServerTransport::WebSocket)]
        {
            for number in 0..of_each_wire {
                servers.push(Server::new(format!("{letter}{number}"), wire, nature(number), Sharing::ToAll));
            }
        }
        // One is enough, because each dialog adds an instance.
        servers.push(Server::new(
            "own".to_owned(),
            ServerTransport::Stdio,
            Stability::Calm,
            Sharing::ToDialogs,
        ));
        let folder = tempfile::tempdir().unwrap();
        let res = Servers { folder, servers, calm: Listener::new(0), wild: Mutex::new(Listener::new(0)) };
        std::fs::create_dir_all(res.dominds().parent().unwrap()).unwrap();
        res.save();
        res
    }

    pub(super) fn follow(&self) -> FollowRequest {
        let files = vec![LoadRequest::new(self.dominds()), LoadRequest::new(self.holodeck())];
        let mut request = FollowRequest::new(files);
        request.debounce = Duration::from_millis(50);
        request
    }

    pub(super) fn of(&self, nature: Stability) -> Vec<&Server> {
        self.servers.iter().filter(|it| it.nature == nature && it.belongs == Sharing::ToAll).collect()
    }

    pub(super) fn own(&self) -> &Server {
        self.servers.last().expect("it is made last")
    }

    /// Writes both files.
    pub(super) fn save(&self) {
        for (path, text) in [(self.dominds(), self.dominds_text()), (self.holodeck(), self.holodeck_text())] {
            let new = path.with_extension("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, path).unwrap();
        }
    }

    /// Restores every server.
    pub(super) fn settle(&self) {
        for server in self.servers.iter().filter(|it| !it.is_written()) {
            server.edit();
        }
        self.save();
    }

    /// Kills the process of the unstable network servers.
    pub(super) fn kill(&self) {
        self.wild.lock().unwrap().kill();
    }

    /// Starts another process on the same port.
    pub(super) fn revive(&self) {
        let mut wild = self.wild.lock().unwrap();
        *wild = Listener::new(wild.port);
    }

    /// Waits until all servers run.
    pub(super) async fn runs(&self, host: &Host) {
        let mut published = host.subscribe();
        let well = published.wait_for(|server| {
            let ready = |state| matches!(state, ServerState::Ready);
            server.servers.len() == self.servers.len()
                && server.servers.iter().all(|server| ready(server.state))
        });
        let well = tokio::time::timeout(PATIENCE, well).await.is_ok();
        assert!(well, "not all are well: {:#?}", host.snapshot().servers);
    }

    fn dominds(&self) -> PathBuf {
        self.folder.path().join(".minds/mcp.yaml")
    }

    fn holodeck(&self) -> PathBuf {
        self.folder.path().join("agent.yaml")
    }

    fn dominds_text(&self) -> String {
        let mut res = "version: 1\nservers:\n".to_owned();
        for it in self.servers.iter().filter(|it| it.wire == ServerTransport::Stdio && it.is_written()) {
            let (name, program) = (&it.name, binary().display());
            let (shared, edited) = (it.belongs == Sharing::ToAll, it.edited.load(Ordering::SeqCst));
            res.push_str(&format!(
                "  {name}:\n    truely-stateless: {shared}\n    transport: stdio\n    command: '{program}'\n    args: \
                 [demo-server]\n    env: {{ DEMO_EDITED: '{edited}' }}\n    transform: [{{prefix: {name}_}}]\n"
            ));
        }
        res
    }

    fn holodeck_text(&self) -> String {
        let mut res =
            "name: soak\nmodel: {provider: openai, name: m}\ninstructions: {inline: i}\ntools:\n".to_owned();
        let wild = self.wild.lock().unwrap().port;
        for it in self.servers.iter().filter(|it| it.is_written()) {
            let port = match it.nature {
                Stability::Calm => self.calm.port,
                Stability::Wild => wild,
            };
            let (transport, url) = match it.wire {
                ServerTransport::Stdio => continue,
                ServerTransport::Http => ("http", format!("http://127.0.0.1:{port}/mcp")),
                ServerTransport::Sse => ("sse", format!("http://127.0.0.1:{port}/sse")),
                ServerTransport::WebSocket => ("websocket", format!("ws://127.0.0.1:{port}/ws")),
            };
            res.push_str(&format!(
                "  - name: {}\n    description: d\n    type: mcp\n    server: s\n    transport: {transport}\n    url: \
                 {url}\n    config: {{ edited: {} }}\n",
                it.name,
                it.edited.load(Ordering::SeqCst)
            ));
        }
        res
    }
}

/// A process with the demo server over all network transports.
struct Listener {
    process: Child,
    port: u16,
}

impl Listener {
    fn new(port: u16) -> Listener {
        let mut process = Command::new(binary())
            .args(["demo-server", "--http", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = process.stderr.take().expect("it is piped");
        let line = BufReader::new(stderr).lines().map_while(Result::ok).find(|line| line.contains("/mcp"));
        let line = line.unwrap_or_else(|| panic!("it does not listen at port {port}"));
        let port = line.rsplit_once("127.0.0.1:").and_then(|(_, rest)| rest.strip_suffix("/mcp"));
        Listener { process, port: port.expect("it names its port").parse().unwrap() }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The killed process has exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
