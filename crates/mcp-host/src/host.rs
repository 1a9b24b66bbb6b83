//! The host as its user holds it: a handle on the committer, and the place where calls begin.

mod handing;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_model::{
    CallResult, Completion, LogLevel, PromptResult, RawJson, ReadResult, ServerId, TraceContext,
};
use mcp_registry::{Builtins, Projection, Provider, RetryDecision, ValidatorCache, ViewFilter};
use mcp_transport::{
    Authorities, Caller, ClientCapabilities, ClientInfo, CompletionArgument, CompletionReference, Eras,
    Handlers, ReceiptDirectory, SessionOptions, SseServerCache,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::calls::admin;
use crate::calls::admin::AdminTools;
use crate::calls::pin::PinnedGeneration;
use crate::calls::provider_refusal::ProviderFailureReport;
use crate::calls::spill::SpillPolicy;
use crate::calls::spill::Spills;
use crate::calls::{Desk, RequestOptions, Sight, ToolCall};
use crate::config::approval::Approval;
use crate::config::desired::DesiredServers;
use crate::config::watch::{FollowHandle, FollowRequest};
use crate::event::HostEvent;
use crate::failure::HostError;
use crate::metrics::Meter;
use crate::notifications::dialog_callers::{Voice, Voices};
use crate::notifications::log_levels::Levels;
use crate::notifications::stream::Hub;
use crate::notifications::subscriptions::Subscriptions;
use crate::state::known_eras::KnownEras;
use crate::state::published::{HostSnapshot, ServerState, ServerStatus};
use crate::state::server_info_cache::Acquaintances;
use crate::supervisor::clock_jump::Clocks;
use crate::supervisor::clock_jump::WallClock;
use crate::supervisor::committer::{Command, Committer, Inputs};
use crate::supervisor::connection_count::Wires;
use crate::supervisor::connector::{Connector, Dialer, OnConnectFailure, own_wires};
use crate::supervisor::dialog::{Course, DialogEnd, Ends, default_reminder};
use crate::supervisor::dialog::{Dialog, DialogId, LeasePolicy, LeaseReceipt, ReminderText};
use crate::supervisor::machine::Settings;
use crate::supervisor::machine::Supervision;
use crate::supervisor::publishers::{Outlets, Senders};

/// How many commands may wait for the committer, which is never busy for long.
const COMMANDS: usize = 64;

/// How many events are kept for a listener that is behind; of more, he misses the oldest and is told so.
const EVENTS: usize = 1024;

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
    /// What shared servers are told for all, at a legacy handshake and with their lists, that callers may be able to do;
    /// where `None`, what the handlers can. A question that the caller of the moment cannot answer is refused.
    pub declared_capabilities: Option<ClientCapabilities>,
    /// Which eras of the protocol servers are spoken to in.
    pub eras: Eras,
    /// From which level on log messages are wanted of servers that send any, until [`Host::set_log_level`]; `None` leaves
    /// that to them.
    pub log_level: Option<LogLevel>,
    /// How long calls in flight may go on when their server is stopped or the host shut down.
    pub grace: Duration,
    /// What is done about servers that fail.
    pub supervision: Supervision,
    /// How servers are leased that are not shared.
    pub leases: LeasePolicy,
    /// What a dialog is reminded of that has leased a server.
    pub reminder: ReminderText,
    /// Whether the host shows tools of its own.
    pub admin: AdminTools,
    /// What is approved of the servers ([`Host::set_approval`]); everything where `None`.
    pub approval: Option<Approval>,
    /// Where moments that people read come from.
    pub wall_clock: WallClock,
    /// Where results go that are past their server's budget (`limits.result_bytes`, 256 KiB unless set). What does not
    /// fit is cut either way; with this the block says in which file all of it is. The files go with the host.
    pub spill: Option<SpillPolicy>,
    /// Which trace a call belongs to that does not say so itself. With the feature `otel` that is the current span's
    /// unless set.
    pub trace: Option<TraceSource>,
    /// Hears why a server could not be connected, for hosts that tell it in other words than [`HostError`] does.
    pub on_connect_failure: Option<OnConnectFailure>,
    /// How to log in to servers that want it. Without, they are reached with the `Authorization` of their configuration
    /// only.
    #[cfg(feature = "oauth")]
    pub logins: Option<crate::state::logins::Logins>,
}

/// Says which trace is under way. It is asked in the task that calls, within the call's own span, and must not wait.
pub type TraceSource = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;

impl Default for HostOptions {
    /// mcp-transport's client name, no receipts, the system's authorities, no names kept, nobody to answer, no wish for logs, 5 s of grace,
    /// servers that fail are started again, default leases and reminders, no tools of its own, no files for results, no
    /// trace but with the feature `otel`, nobody to hear why a server could not be connected, no logins.
    fn default() -> HostOptions {
        HostOptions {
            client: SessionOptions::default().client,
            receipts: None,
            authorities: Authorities::default(),
            own_executable: None,
            builtins: Builtins::default(),
            handlers: Handlers::default(),
            declared_capabilities: None,
            eras: Eras::Both,
            log_level: None,
            grace: Duration::from_secs(5),
            supervision: Supervision::default(),
            leases: LeasePolicy::default(),
            reminder: default_reminder(),
            admin: AdminTools::default(),
            approval: None,
            wall_clock: Arc::new(SystemTime::now),
            spill: None,
            trace: default_trace(),
            on_connect_failure: None,
            #[cfg(feature = "oauth")]
            logins: None,
        }
    }
}

/// Running servers, one catalog, calls.
///
/// A server that could not be started, or was lost, is started again by itself, with growing pauses and after many
/// setbacks a long one, unless [`HostOptions::supervision`] is off. While it is down calls say at once why. Applying it
/// again, also with the same configuration, starts it at once. Lists that could not be read are tried again as well.
///
/// Should the host itself fail, which is a defect, every wanted server is [`ServerState::Failed`] for that reason, a
/// problem says so, and calls answer with it.
///
/// All methods may be called at once from many tasks. Dropping a host ends everything it runs without waiting for
/// that, also what a [`Dialog`] or a [`PinnedGeneration`] is still there for; [`Host::shutdown`] waits.
pub struct Host {
    commands: mpsc::Sender<Command>,
    over: mpsc::UnboundedSender<DialogEnd>,
    senders: Arc<Senders>,
    desk: Arc<Desk>,
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
        let HostOptions {
            client,
            receipts,
            authorities,
            own_executable,
            builtins,
            handlers,
            declared_capabilities: declared,
            eras: spoken,
            log_level,
            grace,
            supervision,
            leases,
            reminder,
            admin,
            approval,
            wall_clock,
            spill,
            trace,
            on_connect_failure: not_connected,
            #[cfg(feature = "oauth")]
            logins,
        } = options;
        let meter = Arc::new(Meter::default());
        let (voices, hub) = (Arc::new(Voices::default()), Arc::new(Hub::default()));
        let levels = Arc::new(Levels::new(log_level));
        let subscriptions = Arc::new(Subscriptions::default());
        let acquaintances = Arc::new(Acquaintances::default());
        let connector = Connector {
            client,
            receipts: receipts.map(ReceiptDirectory::new),
            older_servers: SseServerCache::default(),
            authorities,
            // A path that is no Unicode cannot be a command; the name is then looked up like any other.
            own_executable: own_executable.and_then(|it| it.into_os_string().into_string().ok()),
            handlers,
            declared,
            spoken,
            voices: Arc::clone(&voices),
            hub: Arc::clone(&hub),
            levels: Arc::clone(&levels),
            subscriptions: Arc::clone(&subscriptions),
            acquaintances: Arc::clone(&acquaintances),
            dialer,
            wires: Wires::default(),
            eras: KnownEras::default(),
            wall_clock: Arc::clone(&wall_clock),
            meter: Arc::clone(&meter),
            not_connected,
            #[cfg(feature = "oauth")]
            logins,
        };
        let own = match admin {
            AdminTools::Disabled => Vec::new(),
            AdminTools::Enabled => vec![admin::entry()],
        };
        let senders = Arc::new(Senders::new(EVENTS));
        let (commands, taken) = mpsc::channel(COMMANDS);
        let (over, ended) = mpsc::unbounded_channel();
        let idle = leases.idle_timeout;
        let committer = Committer::new(
            Settings { builtins, supervision, leases, own, approval },
            Arc::new(connector),
            Outlets::new(Arc::clone(&senders)),
            Clocks::new(Arc::clone(&wall_clock)),
            grace,
        );
        let spills = Spills::new(spill);
        spills.tidy();
        let committer = tokio::spawn(committer.run(Inputs { commands: taken, over: ended }));
        let desk = Arc::new(Desk {
            snapshot: senders.snapshot.subscribe(),
            leases: senders.leases.subscribe(),
            validators: ValidatorCache::new(),
            commands: commands.clone(),
            reminder,
            idle,
            wall_clock,
            meter,
            spills,
            ends: Ends::default(),
            trace,
            voices,
            hub,
            levels,
            subscriptions,
            acquaintances,
        });
        Host { commands, over, senders, desk, committer }
    }

    /// Wants these servers and no others from now on. Returns when that is published, with new and changed servers in
    /// [`ServerState::Starting`]; they start beside each other from then on. A host that was shut down takes nothing.
    /// Cancel-safe: what was sent is applied all the same.
    ///
    /// A reload whose file is [refused](crate::config::load::LoadedConfig::refused) must not be applied: it wants nothing, so every server
    /// would be stopped. Not applying it keeps the last good configuration whole.
    pub async fn apply(&self, wanted: DesiredServers) {
        let (answer, taken) = oneshot::channel();
        match self.commands.send(Command::Apply(Box::new(wanted), answer)).await {
            // No answer means that the host was shut down meanwhile, or has failed, which is published.
            Ok(()) => drop(taken.await),
            Err(mpsc::error::SendError(Command::Apply(wanted, _))) => self.senders.publish_failed(&wanted),
            Err(_) => unreachable!("what could not be sent comes back"),
        }
    }

    /// Has these views of the catalog in use from now on: what they name and is not there is a problem, for as long as
    /// that is so (DM-107). Returns when it is published.
    pub async fn set_views(&self, views: Vec<ViewFilter>) {
        let (answer, taken) = oneshot::channel();
        if self.commands.send(Command::Views(views, answer)).await.is_ok() {
            // No answer means that the host was shut down meanwhile.
            let _ = taken.await;
        }
    }

    /// Shows of servers what is approved from now on, and by the policy what is not with a problem, or not at all: a tool
    /// that has changed since, that is new, or whose server was never looked at; `None` approves of everything. Returns
    /// when it is published.
    pub async fn set_approval(&self, approval: Option<Approval>) {
        let (answer, taken) = oneshot::channel();
        if self.commands.send(Command::Approve(approval, answer)).await.is_ok() {
            // No answer means that the host was shut down meanwhile.
            let _ = taken.await;
        }
    }

    /// Runs what these files say from now on, and whatever they come to say (DM-091). Returns when they were read for
    /// the first time and what they want is published. Cancel-safe: a future that is dropped follows nothing.
    ///
    /// A file that cannot be used changes nothing, and is a problem until it can (DM-121, DM-124). While files are
    /// followed, [`Host::apply`] and other files that are followed would only be overruled by the next change.
    pub async fn follow(&self, request: FollowRequest) -> FollowHandle {
        FollowHandle::begin(request, self.commands.clone()).await
    }

    /// Resolves when no wanted server is being started for the first time; one that is tried again is not waited for.
    /// Cancel-safe.
    pub async fn ready(&self) {
        let mut published = self.subscribe();
        let settled = |it: &Arc<HostSnapshot>| it.servers.iter().all(|it| it.state != ServerState::Starting);
        // A host that was shut down or has failed starts nothing, so its end is an answer as well.
        let _ = published.wait_for(settled).await;
    }

    /// The same for these servers alone, however long others take: for whoever needs a few of many. Gives how each of
    /// them stands then, in the order of `servers`; one that is not wanted now is left out. Cancel-safe.
    pub async fn wait_for(&self, servers: &[ServerId]) -> Vec<ServerStatus> {
        let of = |it: &Arc<HostSnapshot>| -> Vec<ServerStatus> {
            let status = |id: &ServerId| it.servers.iter().find(|it| it.id == id.as_str()).cloned();
            servers.iter().filter_map(status).collect()
        };
        let mut published = self.subscribe();
        let settled = |it: &Arc<HostSnapshot>| of(it).iter().all(|it| it.state != ServerState::Starting);
        match published.wait_for(settled).await {
            Ok(it) => of(&it),
            // What a host that is gone has said last stands.
            Err(_) => of(&self.snapshot()),
        }
    }

    /// The latest generation.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.senders.published.borrow())
    }

    /// Adapts the current tools to a model provider: what its API does not accept is adapted, or left out with a problem
    /// (DM-063). [`Projection::to_tools_json`] is the `tools` array of a request.
    pub fn tools_for(&self, provider: Provider) -> Projection {
        self.snapshot().tools_for(provider)
    }

    /// Every generation from now on; who is slow sees the latest.
    pub fn subscribe(&self) -> watch::Receiver<Arc<HostSnapshot>> {
        self.senders.published.subscribe()
    }

    /// Everything that happens to servers from now on. Who is slow is told how much he missed.
    pub fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.senders.events.subscribe()
    }

    /// Calls a tool. Whatever goes wrong is in the result. Dropping the future cancels the call at its server.
    ///
    /// A call of a server that is not shared belongs to its dialog, which gets an instance of its own with its first
    /// call and keeps it (DM-074). Calls without a dialog share one.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        self.desk.call(call, Sight::Latest).await
    }

    /// Fills a prompt in. `name` is its exposed name, or its original name where only one server has one of that name;
    /// `arguments` a JSON object of strings. Fails before anything is sent where one is missing that it needs. Dropping
    /// the future cancels it at its server. (HD-081)
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        asking: RequestOptions,
    ) -> Result<PromptResult, HostError> {
        self.desk.get_prompt(name, arguments, asking, Sight::Latest).await
    }

    /// Reads a resource: of the server that `asking` names, else of the one that lists the URI, or whose template fits it
    /// best. What a filter hides cannot be read. Dropping the future cancels it at its server.
    pub async fn read_resource(&self, uri: &str, asking: RequestOptions) -> Result<ReadResult, HostError> {
        self.desk.read_resource(uri, asking, Sight::Latest).await
    }

    /// Says what an argument of a prompt, by its exposed name, or of a resource template could be.
    pub async fn complete(
        &self,
        of: &CompletionReference,
        argument: &CompletionArgument,
        asking: RequestOptions,
    ) -> Result<Completion, HostError> {
        self.desk.complete(of, argument, asking, Sight::Latest).await
    }

    /// Keeps the latest generation: for a turn of an agent, whose model is to be able to call what it was shown.
    pub fn pin(&self) -> PinnedGeneration {
        PinnedGeneration::new(&self.desk, None)
    }

    /// A dialog that begins. Whatever it leases is given back when this and its turns are dropped.
    pub fn dialog(&self, id: DialogId) -> Dialog {
        self.dialog_of(id, None)
    }

    /// A dialog that begins, with somebody who answers for it: whatever its calls and the servers that it has leased ask,
    /// the latter between calls too. What a call says itself stands before that ([`ToolCall::caller`]).
    pub fn dialog_with(&self, id: DialogId, caller: Arc<Caller>) -> Dialog {
        let voice = self.desk.voices.raise(id.clone(), caller);
        self.dialog_of(id, Some(voice))
    }

    fn dialog_of(&self, id: DialogId, voice: Option<Voice>) -> Dialog {
        let (commands, over) = (self.commands.clone(), self.over.clone());
        let ends = self.desk.ends.clone();
        let course = Course { id, ends, commands, over, _voice: voice };
        Dialog { desk: Arc::clone(&self.desk), course: Arc::new(course) }
    }

    /// What is leased now, by server and dialog.
    pub fn leases(&self) -> Vec<LeaseReceipt> {
        self.desk.receipts()
    }

    /// Gives back what a dialog has leased of a server, and returns when its calls are over and it is closed. False
    /// when there was nothing: the dialog has called nothing of it, or it is shared. Fails where there is no such
    /// server (DM-077). Cancel-safe: what was begun goes on.
    pub async fn release(&self, dialog: &DialogId, server: &ServerId) -> Result<bool, HostError> {
        self.desk.release(dialog, server).await
    }

    /// Starts a server anew, also one that was switched off or is left alone, and returns when it can be called, or
    /// why it cannot. Its calls go on meanwhile; what dialogs have leased of it is given back. Cancel-safe: what was
    /// begun goes on.
    pub async fn restart(&self, server: &ServerId) -> Result<(), HostError> {
        self.desk.restart(server).await
    }

    /// Switches a server off until it is restarted or its entry is changed. Its calls have the host's grace to end.
    pub async fn disable(&self, server: &ServerId) -> Result<(), HostError> {
        self.desk.disable(server).await
    }

    /// Says that a language model's provider has refused a request of a dialog, and what to do about it: send it again
    /// after a while, or stop (DM-066, DM-067). A dialog that stops is a problem, and no call of it is made any more,
    /// until [`Host::resume`] or the end of the dialog. Cancel-safe: what was begun goes on.
    pub async fn report_provider_failure(&self, refusal: ProviderFailureReport) -> RetryDecision {
        self.desk.refused(refusal).await
    }

    /// Why a dialog is stopped: to be looked at before its model is asked again. `None` where it is not.
    pub fn stop_reason(&self, dialog: &DialogId) -> Option<HostError> {
        self.desk.stopped(dialog)
    }

    /// Lets a stopped dialog go on, once somebody has mended what its provider refused. Returns when its problem is gone.
    pub async fn resume(&self, dialog: &DialogId) {
        self.desk.resume(dialog).await;
    }

    /// Refuses new calls, lets those in flight go on for `grace`, closes all servers beside each other, and returns
    /// when nothing is left. May be called again, and by many at once. Cancel-safe: a shutdown that was begun goes on.
    pub async fn shutdown(&self) {
        // Fails when the host is shut down already.
        let _ = self.commands.send(Command::Shutdown).await;
        self.commands.closed().await;
        self.desk.spills.close().await;
    }
}

/// What a call's trace is unless somebody says so.
fn default_trace() -> Option<TraceSource> {
    #[cfg(feature = "otel")]
    return Some(Arc::new(crate::otel::current_trace));
    #[cfg(not(feature = "otel"))]
    None
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("published", &self.snapshot()).finish_non_exhaustive()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.committer.abort();
        // A dialog or a pinned generation that is kept longer keeps no files.
        self.desk.spills.close_blocking();
    }
}
