//! The host as its user holds it: a handle on the committer, and the place where calls begin.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::CallResult;
use mcp_registry::{Builtins, Validators};
use mcp_transport::{Authorities, ClientInfo, Handlers, OlderServers, Receipts, SessionOptions};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::call::{Desk, ToolCall};
use crate::committer::{Command, Committer, Shared};
use crate::connector::{Connector, Dialer, own_wires};
use crate::known_eras::KnownEras;
use crate::machine::Snapshot;
use crate::outlets::Outlets;
use crate::wires::Wires;
use crate::{Published, ServerState, Wanted};

/// How many commands may wait for the committer, which is never busy for long.
const COMMANDS: usize = 64;

/// How a host is to be.
#[derive(Clone)]
pub struct HostOptions {
    /// Who it says it is.
    pub client: ClientInfo,
    /// Where receipts for process groups are kept, so that what a sudden death of this host leaves behind is ended by
    /// the next one.
    pub receipts: Option<PathBuf>,
    /// Certificate authorities that are trusted besides the system's.
    pub authorities: Authorities,
    /// What a child's command `mcp-host` stands for. Without, it is looked up like any other command.
    pub own_executable: Option<PathBuf>,
    /// Names that no server takes.
    pub builtins: Builtins,
    /// Who answers what the servers ask, and hears what they say.
    pub handlers: Handlers,
    /// How long calls in flight may go on when their server is stopped or the host shut down.
    pub grace: Duration,
}

impl Default for HostOptions {
    /// mcp-transport's client name, no receipts, the system's authorities, no names kept, nobody to answer, 5 s of grace.
    fn default() -> HostOptions {
        HostOptions {
            client: SessionOptions::default().client,
            receipts: None,
            authorities: Authorities::default(),
            own_executable: None,
            builtins: Builtins::default(),
            handlers: Handlers::default(),
            grace: Duration::from_secs(5),
        }
    }
}

/// Running servers, one catalog, calls.
///
/// A server that could not be started, or was lost, is not started again by itself: it is [`ServerState::Failed`] until
/// it is applied again, which may be with the same configuration. Only lists that could not be read are tried again.
///
/// Should the host itself fail, which is a defect, every wanted server is [`ServerState::Failed`] for that reason, a
/// problem says so, and calls answer with it.
///
/// All methods may be called at once from many tasks. Dropping a host ends everything it runs without waiting for
/// that; [`Host::shutdown`] waits.
pub struct Host {
    commands: mpsc::Sender<Command>,
    published: watch::Receiver<Arc<Published>>,
    desk: Desk,
    committer: JoinHandle<()>,
}

impl Host {
    /// Starts a host that runs nothing yet. What hosts that died have left behind is ended first.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn start(options: HostOptions) -> Host {
        Host::with_dialer(options, own_wires())
    }

    /// Starts a host whose wires come from `dialer`.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn with_dialer(options: HostOptions, dialer: Dialer) -> Host {
        let HostOptions { client, receipts, authorities, own_executable, builtins, handlers, grace } =
            options;
        let connector = Connector {
            client,
            receipts: receipts.map(Receipts::in_directory),
            older_servers: OlderServers::default(),
            authorities,
            // A path that is no Unicode cannot be a command; the name is then looked up like any other.
            own_executable: own_executable.and_then(|it| it.into_os_string().into_string().ok()),
            handlers,
            dialer,
            wires: Wires::default(),
            eras: KnownEras::default(),
        };
        let nothing = Arc::new(Published::nothing());
        let (tell_snapshot, snapshot) = watch::channel(Arc::new(Snapshot::<Shared>::nothing(&nothing)));
        let (tell_published, published) = watch::channel(nothing);
        let outlets = Outlets::new(tell_snapshot, tell_published);
        let (commands, taken) = mpsc::channel(COMMANDS);
        let committer = Committer::new(builtins, Arc::new(connector), outlets, grace);
        let committer = tokio::spawn(committer.run(taken));
        let desk = Desk { snapshot, validators: Validators::new(), commands: commands.clone() };
        Host { commands, published, desk, committer }
    }

    /// Wants these servers and no others from now on. Returns when that is published, with new and changed servers in
    /// [`ServerState::Starting`]; they start beside each other from then on. A host that was shut down takes nothing.
    /// Cancel-safe: what was sent is applied all the same.
    ///
    /// A reload whose file is [refused](crate::Loaded::refused) must not be applied: it wants nothing, so every server
    /// would be stopped. Not applying it keeps the last good configuration whole.
    pub async fn apply(&self, wanted: Wanted) {
        let (answer, taken) = oneshot::channel();
        if self.commands.send(Command::Apply(Box::new(wanted), answer)).await.is_ok() {
            // No answer means that the host was shut down meanwhile, or has failed, which is published.
            let _ = taken.await;
        }
    }

    /// Resolves when no wanted server is being started. Cancel-safe.
    pub async fn ready(&self) {
        let mut published = self.published.clone();
        let settled = |it: &Arc<Published>| it.servers.iter().all(|it| it.state != ServerState::Starting);
        // A host that was shut down or has failed starts nothing, so its end is an answer as well.
        let _ = published.wait_for(settled).await;
    }

    /// The latest generation.
    pub fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published.borrow())
    }

    /// Every generation from now on; who is slow sees the latest.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Published>> {
        self.published.clone()
    }

    /// Calls a tool. Whatever goes wrong is in the result. Dropping the future cancels the call at its server.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        self.desk.call(call).await
    }

    /// Refuses new calls, lets those in flight go on for `grace`, closes all servers beside each other, and returns
    /// when nothing is left. May be called again, and by many at once. Cancel-safe: a shutdown that was begun goes on.
    pub async fn shutdown(&self) {
        // Fails when the host is shut down already.
        let _ = self.commands.send(Command::Shutdown).await;
        self.commands.closed().await;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.committer.abort();
    }
}
