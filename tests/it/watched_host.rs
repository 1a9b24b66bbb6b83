//! Test fixture: a host that watches two configuration files, project before user, with servers that record their
//! process ids.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{CallResult, RawJson, Severity};
use mcp_host_runtime::{
    FollowHandle, FollowRequest, Host, HostOptions, HostSnapshot, LoadRequest, ServerState, ToolCall,
};
use mcp_testkit::process::is_alive;
use mcp_testkit::program::binary;
use mcp_testkit::wait::block_until;
use tempfile::TempDir;

/// A time limit for every step.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A host that watches `.minds/mcp.yaml` of a folder and of a home folder.
pub(crate) struct WatchedHost {
    pub(crate) folder: TempDir,
    pub(crate) host: Arc<Host>,
    following: FollowHandle,
}

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Project,
    User,
}

/// A server: its name, the revisions of its connection and of its tool names, and its sharing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) name: char,
    pub(crate) connection: usize,
    pub(crate) names: usize,
    pub(crate) sharing: Sharing,
}

/// Whether dialogs share the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sharing {
    All,
    /// One instance for each dialog.
    Dialogs,
}

pub(crate) fn server(name: char) -> Server {
    Server { name, connection: 0, names: 0, sharing: Sharing::All }
}

impl WatchedHost {
    pub(crate) async fn new(poll: Duration, settle: Duration) -> WatchedHost {
        let folder = tempfile::tempdir().unwrap();
        let files = [File::Project, File::User].map(|it| LoadRequest::new(path(&folder, it)));
        let mut request = FollowRequest::new(files.to_vec());
        request.debounce = Duration::from_millis(100);
        request.settle = settle;
        request.poll_interval = poll;
        let host = Arc::new(Host::start(HostOptions::default()));
        let following = host.follow(request).await;
        WatchedHost { folder, host, following }
    }

    pub(crate) fn path(&self, file: File) -> PathBuf {
        path(&self.folder, file)
    }

    /// The content of a file: each server appends its process id to a file of its name.
    pub(crate) fn text(&self, servers: &[Server]) -> String {
        if servers.is_empty() {
            return "version: 1\nservers: {}\n".to_owned();
        }
        let mut res = "version: 1\nservers:\n".to_owned();
        for Server { name, connection, names, sharing } in servers {
            let pids = self.folder.path().join(format!("{name}.pids"));
            let command = format!("echo $$ >> {}; exec {} demo-server", pids.display(), binary().display());
            let stateless = match sharing {
                Sharing::All => true,
                Sharing::Dialogs => false,
            };
            res.push_str(&format!(
                "  {name}:\n    truely-stateless: {stateless}\n    transport: stdio\n    command: sh\n    args: ['-c', \
                 '{command}', 'r{connection}']\n    tools: {{whitelist: [echo, add]}}\n    transform: [{{prefix: \
                 {name}{names}_}}]\n"
            ));
        }
        res
    }

    pub(crate) fn save(&self, file: File, servers: &[Server]) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, self.text(servers)).unwrap();
    }

    /// Replaces the file by renaming another one over it.
    pub(crate) fn rename_over(&self, file: File, servers: &[Server]) {
        let path = self.path(file);
        let new = path.with_extension("new");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&new, self.text(servers)).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// The processes that were started for a server, in order.
    pub(crate) fn pids(&self, name: char) -> Vec<u32> {
        let text =
            std::fs::read_to_string(self.folder.path().join(format!("{name}.pids"))).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&HostSnapshot) -> bool) {
        let mut published = self.host.subscribe();
        let seen = tokio::time::timeout(PATIENCE, published.wait_for(|it| holds(it))).await;
        assert!(seen.is_ok(), "still not {what}: {:#?}", self.host.snapshot());
    }

    /// Waits until exactly these servers run without problems.
    pub(crate) async fn runs(&self, servers: &[Server]) {
        let names: Vec<String> = servers.iter().map(|item| item.name.to_string()).collect();
        let tools: Vec<String> = servers.iter().flat_map(tools).collect();
        self.until(&format!("{servers:?}"), |server| {
            let ready = server
                .servers
                .iter()
                .all(|server| server.state == ServerState::Ready && server.error.is_none());
            let ready = ready && !server.problems.iter().any(|it| it.problem.severity == Severity::Error);
            let shown = server.catalog.tools().iter().map(|item| item.name.to_string());
            ready
                && server.servers.iter().map(|server| server.id.to_string()).eq(names.iter().cloned())
                && shown.eq(tools.iter().cloned())
        })
        .await;
    }

    pub(crate) async fn call(&self, tool: &str) -> CallResult {
        let arguments = RawJson::parse(r#"{"text":"hello"}"#.into()).unwrap();
        self.host.call(ToolCall::new(tool, arguments)).await
    }

    /// Shuts down and asserts that nothing is left.
    pub(crate) async fn end(self) {
        self.following.stop().await;
        self.host.shutdown().await;
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
            let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            block_until(|| !pids.iter().any(|it| is_alive(*it)));
        }
    }
}

fn path(folder: &TempDir, file: File) -> PathBuf {
    match file {
        File::Project => folder.path().join("project/.minds/mcp.yaml"),
        File::User => folder.path().join("home/.minds/mcp.yaml"),
    }
}

/// The tools of a server in its own order.
pub(crate) fn tools(server: &Server) -> Vec<String> {
    ["echo", "add"].iter().map(|it| format!("{}{}_{it}", server.name, server.names)).collect()
}
