//! The servers: calm ones that nobody touches, and wild ones that are edited, killed and told to change. The files that
//! say so, and the processes that listen.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_host::{FollowRequest, Host, LoadRequest, ServerState};
use mcp_tests::binary;
use tempfile::TempDir;

use super::PATIENCE;

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Stdio,
    Http,
    Sse,
    WebSocket,
}

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// Nothing.
    Calm,
    /// Anything.
    Wild,
}

/// To whom it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Belongs {
    ToAll,
    /// Each dialog has its own.
    ToDialogs,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) wire: Wire,
    pub(super) nature: Nature,
    pub(super) belongs: Belongs,
    /// How often it was changed in its file; odd while it is not in it.
    edited: AtomicU64,
}

impl Server {
    fn new(name: String, wire: Wire, nature: Nature, belongs: Belongs) -> Server {
        Server { name, wire, nature, belongs, edited: AtomicU64::new(0) }
    }

    /// Under which name one of its tools is shown.
    pub(super) fn tool(&self, name: &str) -> String {
        match self.wire {
            Wire::Stdio => format!("{}_{name}", self.name),
            Wire::Http | Wire::Sse | Wire::WebSocket => format!("{}__{name}", self.name),
        }
    }

    /// Is written another way from now on, or not at all.
    pub(super) fn edit(&self) {
        self.edited.fetch_add(1, Ordering::SeqCst);
    }

    fn is_written(&self) -> bool {
        self.edited.load(Ordering::SeqCst).is_multiple_of(2)
    }
}

/// All of it.
pub(super) struct Field {
    folder: TempDir,
    pub(super) servers: Vec<Server>,
    calm: Listener,
    wild: Mutex<Listener>,
}

impl Field {
    /// `piped` servers that are processes, and as many as `of_each_wire` of the others; of each half is wild.
    pub(super) fn new(piped: usize, of_each_wire: usize) -> Field {
        let nature = |number: usize| if number.is_multiple_of(2) { Nature::Calm } else { Nature::Wild };
        let mut servers = Vec::new();
        for number in 0..piped {
            servers.push(Server::new(format!("p{number}"), Wire::Stdio, nature(number), Belongs::ToAll));
        }
        for (letter, wire) in [('h', Wire::Http), ('e', Wire::Sse), ('w', Wire::WebSocket)] {
            for number in 0..of_each_wire {
                servers.push(Server::new(format!("{letter}{number}"), wire, nature(number), Belongs::ToAll));
            }
        }
        // One is enough: each dialog makes it one more.
        servers.push(Server::new("own".to_owned(), Wire::Stdio, Nature::Calm, Belongs::ToDialogs));
        let folder = tempfile::tempdir().unwrap();
        let res = Field { folder, servers, calm: Listener::new(0), wild: Mutex::new(Listener::new(0)) };
        std::fs::create_dir_all(res.dominds().parent().unwrap()).unwrap();
        res.save();
        res
    }

    pub(super) fn follow(&self) -> FollowRequest {
        let files = vec![LoadRequest::new(self.dominds()), LoadRequest::new(self.holodeck())];
        FollowRequest { debounce: Duration::from_millis(50), ..FollowRequest::new(files) }
    }

    pub(super) fn of(&self, nature: Nature) -> Vec<&Server> {
        self.servers.iter().filter(|it| it.nature == nature && it.belongs == Belongs::ToAll).collect()
    }

    pub(super) fn own(&self) -> &Server {
        self.servers.last().expect("it is made last")
    }

    /// Writes both files as the servers are to be.
    pub(super) fn save(&self) {
        for (path, text) in [(self.dominds(), self.dominds_text()), (self.holodeck(), self.holodeck_text())] {
            let new = path.with_extension("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, path).unwrap();
        }
    }

    /// Every server is to be there again.
    pub(super) fn settle(&self) {
        for server in self.servers.iter().filter(|it| !it.is_written()) {
            server.edit();
        }
        self.save();
    }

    /// Ends the process behind the wild servers that are not processes, as a crash does.
    pub(super) fn kill(&self) {
        self.wild.lock().unwrap().kill();
    }

    /// Another one in its place, at the same port.
    pub(super) fn revive(&self) {
        let mut wild = self.wild.lock().unwrap();
        *wild = Listener::new(wild.port);
    }

    /// Waits until all servers run.
    pub(super) async fn runs(&self, host: &Host) {
        let mut published = host.subscribe();
        let well = published.wait_for(|it| {
            let ready = |state| matches!(state, ServerState::Ready);
            it.servers.len() == self.servers.len() && it.servers.iter().all(|it| ready(it.state))
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
        for it in self.servers.iter().filter(|it| it.wire == Wire::Stdio && it.is_written()) {
            let (name, program) = (&it.name, binary().display());
            let (shared, edited) = (it.belongs == Belongs::ToAll, it.edited.load(Ordering::SeqCst));
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
                Nature::Calm => self.calm.port,
                Nature::Wild => wild,
            };
            let (transport, url) = match it.wire {
                Wire::Stdio => continue,
                Wire::Http => ("http", format!("http://127.0.0.1:{port}/mcp")),
                Wire::Sse => ("sse", format!("http://127.0.0.1:{port}/sse")),
                Wire::WebSocket => ("websocket", format!("ws://127.0.0.1:{port}/ws")),
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

/// A process that serves the demo server over all that is no pipe.
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
        let line = BufReader::new(stderr).lines().map_while(Result::ok).find(|it| it.contains("/mcp"));
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
        // The one that was killed is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
