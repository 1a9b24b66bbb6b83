//! The host: the public interface of this crate.

pub(crate) mod options;
mod raw;

use std::fmt;
use std::sync::Arc;

use mcp_host_model::{CallResult, Completion, PromptResult, RawJson, ResourceResult, ServerId, Skill};
use mcp_host_registry::{NamedView, Projection, Provider, RetryDecision, ToolBudget, ValidatorCache};
use mcp_host_transport::{Caller, CompletionArgument, CompletionReference, ReceiptDirectory, SseServerCache};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::calls::admin::{self, AdminTools};
use crate::calls::dialog::Dialog;
use crate::calls::leases::LeaseReports;
use crate::calls::pin::PinnedGeneration;
use crate::calls::provider_failure::{ProviderFailureReport, report_provider_failure};
use crate::calls::request_options::RequestOptions;
use crate::calls::requests::RequestRouter;
use crate::calls::resource_lookup::{LookupItem, unavailable_item_error};
use crate::calls::route::{CatalogVersion, InstanceRouter};
use crate::calls::router::CallRouter;
use crate::calls::servers::{instance_snapshots, instance_stderr};
use crate::calls::skills::{list_skills, read_skill_file};
use crate::calls::spill::SpillStore;
use crate::calls::supervisor_handle::SupervisorHandle;
use crate::calls::tool_call::ToolCall;
use crate::calls::tool_lookup::unavailable_tool_error;
use crate::config::approval::Approval;
use crate::config::desired::{ConfigUpdate, DesiredServers};
use crate::config::watch::{FollowHandle, FollowRequest};
use crate::error::HostError;
use crate::notifications::dialog_callers::CallerRegistration;
use crate::notifications::log_levels::LogLevels;
use crate::notifications::stream::NotificationStream;
use crate::state::dialog_id::DialogId;
use crate::state::event::HostEvent;
use crate::state::known_eras::KnownEras;
use crate::state::published::{HostSnapshot, InstanceSnapshot, InstanceStderr, ServerState, ServerStatus};
use crate::supervisor::clock_jump::ClockMonitor;
use crate::supervisor::command::SupervisorCommand;
use crate::supervisor::connection_count::ConnectionCounter;
use crate::supervisor::connector::{Connector, Dialer, SharedState, default_dialer};
use crate::supervisor::dialog::{DialogGuard, LeaseSnapshot};
use crate::supervisor::dialog_end::{DialogEnd, DialogEndCounter};
use crate::supervisor::instance::CloseLimits;
use crate::supervisor::machine::{MachineEvent, MachineSettings};
use crate::supervisor::publishers::{Publishers, Senders};
use crate::supervisor::task::{SupervisorInputs, SupervisorTask};
use options::{CatalogOptions, HostOptions, ProcessOptions, ServerRequestOptions, TelemetryOptions};

/// The capacity of the command queue of the supervisor task.
const COMMAND_QUEUE_CAPACITY: usize = 64;

/// A running host: it runs servers, publishes a catalog of their tools, and routes calls.
///
/// A server that fails to start or disconnects is restarted with growing delays, unless [`HostOptions::supervision`]
/// is off; after many failures restarts are suspended for longer. Meanwhile its calls fail at once with the reason.
/// Applying its configuration again starts it immediately. Lists that could not be read are retried.
///
/// If the host itself fails, which is a bug, every server is [`ServerState::Failed`], a problem is published, and
/// calls return that error.
///
/// All methods may be called concurrently. Dropping the host ends all servers without waiting, even if a [`Dialog`]
/// or [`PinnedGeneration`] remains; [`Host::shutdown`] waits.
pub struct Host {
    commands: mpsc::Sender<SupervisorCommand>,
    /// The ends of dialogs for which `commands` has no room: they are sent by a drop, which cannot wait.
    overflow: mpsc::UnboundedSender<DialogEnd>,
    updates: mpsc::Sender<ConfigUpdate>,
    senders: Arc<Senders>,
    router: Arc<CallRouter>,
    supervisor_task: JoinHandle<()>,
    tool_budget: ToolBudget,
}

impl Host {
    /// Starts a host without servers. First it ends processes that killed hosts left behind.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn start(options: HostOptions) -> Host {
        Host::with_dialer(options, default_dialer())
    }

    /// Starts a host with another dialer.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn with_dialer(options: HostOptions, dialer: Dialer) -> Host {
        let HostOptions {
            client,
            processes: ProcessOptions { receipts, own_executable, drain, shutdown_grace },
            connections,
            server_requests: ServerRequestOptions { handlers, declared_capabilities },
            catalog: CatalogOptions { builtins, admin_tools, approval, tool_budget },
            supervision,
            leases,
            reminder,
            spill,
            result_bytes,
            list_items,
            approvals,
            calls,
            telemetry: TelemetryOptions { log_level, trace, contents, wall_clock },
        } = options;
        let shared = Arc::new(SharedState::new(LogLevels::new(log_level), Arc::clone(&wall_clock)));
        let connector = Connector {
            client,
            receipts: receipts.map(ReceiptDirectory::new),
            sse_servers: SseServerCache::default(),
            authorities: connections.authorities,
            // A command must be Unicode; otherwise the name is looked up like any other.
            own_executable: own_executable.and_then(|it| it.into_os_string().into_string().ok()),
            handlers,
            declared_capabilities,
            eras: connections.eras,
            shared: Arc::clone(&shared),
            dialer,
            connections: ConnectionCounter::default(),
            approvals,
            known_eras: KnownEras::default(),
            #[cfg(feature = "oauth")]
            logins: connections.logins,
        };
        let own_tools = match admin_tools {
            AdminTools::Disabled => Vec::new(),
            AdminTools::Enabled => vec![Arc::new(admin::toolset())],
        };
        let senders = Arc::new(Senders::new());
        let (commands, command_receiver) = mpsc::channel(COMMAND_QUEUE_CAPACITY);
        let (overflow, overflow_receiver) = mpsc::unbounded_channel();
        let (updates, config_updates) = mpsc::channel(1);
        let idle_timeout = leases.idle_timeout;
        connector.shared.approval.write().clone_from(&approval);
        let supervisor_task = SupervisorTask::new(
            MachineSettings { builtins, supervision, leases, own_tools, approval, tool_budget, list_items },
            Arc::new(connector),
            Publishers::new(Arc::clone(&senders)),
            ClockMonitor::new(wall_clock),
            CloseLimits { drain, grace: shutdown_grace },
        );
        let spills = SpillStore::new(spill);
        spills.remove_stale();
        let supervisor_task = tokio::spawn(supervisor_task.run(SupervisorInputs {
            commands: command_receiver,
            overflow: overflow_receiver,
            config_updates,
        }));
        let supervisor = SupervisorHandle {
            routing_table: senders.routing_table.subscribe(),
            leases: senders.leases.subscribe(),
            commands: commands.clone(),
            dialog_ends: DialogEndCounter::default(),
            shared,
        };
        let router = Arc::new(CallRouter {
            requests: RequestRouter { instances: InstanceRouter { supervisor, trace } },
            validators: ValidatorCache::new(),
            spills,
            result_bytes,
            lease_reports: LeaseReports {
                reminder_text: reminder.unwrap_or_else(|| admin::default_reminder(admin_tools)),
                idle_timeout,
            },
            admin_tools,
            policy: calls,
            records_contents: contents,
        });
        Host { commands, overflow, updates, senders, router, supervisor_task, tool_budget }
    }

    /// Runs these servers and no others. Returns when that is published, with new and changed servers in
    /// [`ServerState::Starting`]; they start concurrently. No effect after a shutdown. Cancel-safe: a sent command is
    /// executed.
    ///
    /// Do not apply a [refused](crate::config::load::LoadedConfig::refused) file: it has no servers, so all would
    /// stop. Without it the last valid configuration remains.
    pub async fn apply(&self, desired: DesiredServers) {
        let (reply, published) = oneshot::channel();
        // Without a permit the host has shut down or failed, and starts no servers.
        let Ok(permit) = self.commands.reserve().await else {
            self.senders.republish_host_failure(&desired);
            return;
        };
        permit.send(SupervisorCommand::Event(Box::new(MachineEvent::Configure(desired)), Some(reply)));
        // No reply means that the host has shut down or failed meanwhile, which is published.
        let _ = published.await;
    }

    /// Returns the limits on each list of tools.
    pub fn tool_budget(&self) -> ToolBudget {
        self.tool_budget
    }

    /// Sets the catalog views in use. Missing toolsets that they name (DM-107) and tools that the limits on lists leave
    /// out of them are published as problems. Returns when published.
    pub async fn set_views(&self, views: Vec<NamedView>) {
        SupervisorCommand::send_event(&self.commands, MachineEvent::SetViews(views)).await;
    }

    /// Sets the approved definitions. By the policy, tools that changed, are new, or belong to servers never approved
    /// are shown with a problem or hidden; `None` approves everything. Returns when published.
    pub async fn set_approval(&self, approval: Option<Approval>) {
        SupervisorCommand::send_event(&self.commands, MachineEvent::SetApproval(approval)).await;
    }

    /// Runs the servers of these files and applies their changes (DM-091). Returns when the first read is published.
    /// Dropping the future follows nothing.
    ///
    /// A file that cannot be used changes nothing and is published as a problem (DM-121, DM-124). Do not combine it
    /// with [`Host::apply`] or another follow: the next change would override it.
    pub async fn follow(&self, request: FollowRequest) -> FollowHandle {
        FollowHandle::begin(request, self.updates.clone()).await
    }

    /// Waits until no server is [`ServerState::Starting`]: new servers and, after a reload, changed ones.
    /// Restarts of failed servers are not waited for. Cancel-safe.
    pub async fn wait_until_ready(&self) {
        let mut published = self.subscribe();
        let is_settled =
            |it: &Arc<HostSnapshot>| it.servers.iter().all(|it| it.state != ServerState::Starting);
        // A host that has ended starts nothing.
        let _ = published.wait_for(is_settled).await;
    }

    /// Like [`wait_until_ready`](Host::wait_until_ready), for these servers. Returns their statuses in the order of
    /// `servers`, without those that are not configured. Cancel-safe.
    pub async fn wait_for_servers(&self, servers: &[ServerId]) -> Vec<ServerStatus> {
        let of = |it: &Arc<HostSnapshot>| -> Vec<ServerStatus> {
            servers.iter().filter_map(|id| it.server(id).cloned()).collect()
        };
        let mut published = self.subscribe();
        let settled = |it: &Arc<HostSnapshot>| of(it).iter().all(|it| it.state != ServerState::Starting);
        match published.wait_for(settled).await {
            Ok(it) => of(&it),
            // The last snapshot remains after the end of the host.
            Err(_) => of(&self.snapshot()),
        }
    }

    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.senders.snapshot.borrow())
    }

    /// Returns why a tool is not available, if one of the servers that `may_own` accepts is down and can have it, by
    /// its last lists or by the prefix of its names.
    pub fn unavailable_tool(&self, name: &str, may_own: impl Fn(&ServerId) -> bool) -> Option<HostError> {
        unavailable_tool_error(&self.senders.routing_table.borrow(), name, may_own)
    }

    /// Returns why a prompt is not available, as [`Host::unavailable_tool`] does, by the last lists of its server.
    pub fn unavailable_prompt(&self, name: &str, may_own: impl Fn(&ServerId) -> bool) -> Option<HostError> {
        unavailable_item_error(&self.senders.routing_table.borrow(), LookupItem::Prompt(name), may_own)
    }

    /// Returns why a resource is not available, as [`Host::unavailable_prompt`] does.
    pub fn unavailable_resource(&self, uri: &str, may_own: impl Fn(&ServerId) -> bool) -> Option<HostError> {
        unavailable_item_error(&self.senders.routing_table.borrow(), LookupItem::Resource(uri), may_own)
    }

    /// Adapts the current tools to a model provider: what its API does not accept is adapted, or left out
    /// with a problem (DM-063). [`Projection::to_tools_json`] is the `tools` array of a request.
    pub fn tools_for(&self, provider: Provider) -> Projection {
        self.snapshot().tools_for(provider)
    }

    /// Returns a receiver of each new snapshot. A slow receiver gets the latest one.
    pub fn subscribe(&self) -> watch::Receiver<Arc<HostSnapshot>> {
        self.senders.snapshot.subscribe()
    }

    /// Returns a stream of all events from now on. A slow reader loses the oldest ones and receives their number.
    pub fn events(&self) -> NotificationStream<HostEvent> {
        self.senders.events.subscribe()
    }

    /// Calls a tool. Errors are in the result. Dropping the future cancels the call at its server.
    ///
    /// A call of a server that is not shared uses the instance of its dialog, started with the first call (DM-074).
    /// Calls without a dialog share one.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        self.router.call(call, CatalogVersion::Latest).await
    }

    /// Renders a prompt. `name` is its exposed name, or its original name if only one server has it; `arguments` is a
    /// JSON object of strings. Fails before sending if a required argument is missing. Dropping the future cancels
    /// the request. (HD-081)
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<PromptResult, HostError> {
        self.router.requests.get_prompt(name, arguments, options, CatalogVersion::Latest).await
    }

    /// Reads a resource from the server in `options`, else from the server that lists the URI, else from the one with
    /// the best matching template. Hidden resources cannot be read. Dropping the future cancels the request.
    pub async fn read_resource(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<ResourceResult, HostError> {
        self.router.requests.read_resource(uri, options, CatalogVersion::Latest).await
    }

    /// Lists the skills of a server (SEP-2640), all pages within the server's limits; invalid ones are logged
    /// and left out. Fails if the server does not declare skills. Dropping the future cancels the request.
    pub async fn list_skills(
        &self,
        server: &ServerId,
        options: RequestOptions,
    ) -> Result<Vec<Skill>, HostError> {
        list_skills(&self.router.requests, server, options).await
    }

    /// Reads a file of the skill whose `SKILL.md` has the URI `skill`: `SKILL.md` itself, or another file
    /// that the server lists for it. Fails if the size or the hash differs from that of the list. A skill
    /// without a list is not checked. Dropping the future cancels the request.
    pub async fn read_skill_file(
        &self,
        skill: &str,
        file: &str,
        options: RequestOptions,
    ) -> Result<ResourceResult, HostError> {
        read_skill_file(&self.router.requests, skill, file, options).await
    }

    /// Completes an argument of a prompt (by exposed name) or of a resource template.
    pub async fn complete(
        &self,
        reference: &CompletionReference,
        argument: &CompletionArgument,
        options: RequestOptions,
    ) -> Result<Completion, HostError> {
        self.router.requests.complete(reference, argument, options).await
    }

    /// Pins the current generation for a turn of an agent, so that its model can call what it was shown.
    pub fn pin(&self) -> PinnedGeneration {
        PinnedGeneration::new(&self.router, None)
    }

    /// Starts a dialog, or returns another handle of a running one. The leases belong to all handles: they are released
    /// when the last handle and the last turn are dropped.
    pub fn dialog(&self, id: DialogId) -> Dialog {
        self.open_dialog(id, None)
    }

    /// Starts a dialog with a caller that answers server requests of its calls and leased servers, also between
    /// calls. A caller of the request's own takes precedence. If several handles of a dialog have callers,
    /// the last one counts.
    pub fn dialog_with_caller(&self, id: DialogId, caller: Arc<Caller>) -> Dialog {
        let registration = self.router.supervisor().shared.callers.register(id.clone(), caller);
        self.open_dialog(id, Some(registration))
    }

    /// Opens a handle of a dialog, which keeps the registration of its caller.
    fn open_dialog(&self, id: DialogId, registration: Option<CallerRegistration>) -> Dialog {
        let (commands, overflow) = (self.commands.clone(), self.overflow.clone());
        let ends = self.router.supervisor().dialog_ends.clone();
        ends.add_handle(&id);
        let subjects = Arc::clone(&self.router.supervisor().shared.subjects);
        let guard = DialogGuard { id, ends, commands, overflow, subjects, _registration: registration };
        Dialog { router: Arc::clone(&self.router), guard: Arc::new(guard) }
    }

    /// Returns the running instances, shared and leased, by server and dialog.
    pub fn instances(&self) -> Vec<InstanceSnapshot> {
        instance_snapshots(self.router.supervisor())
    }

    /// Returns the last lines that the running instances of a server wrote to standard error.
    pub fn stderr(&self, server: &ServerId) -> Vec<InstanceStderr> {
        instance_stderr(self.router.supervisor(), server)
    }

    /// Returns the current leases, by server and dialog.
    pub fn leases(&self) -> Vec<LeaseSnapshot> {
        self.router.lease_reports.snapshots(self.router.supervisor())
    }

    /// Releases a dialog's lease of a server, and returns when its calls have ended and its instance is closed. Returns
    /// false if there was none. Fails for an unknown server (DM-077). Cancel-safe: the release continues.
    pub async fn release(&self, dialog: &DialogId, server: &ServerId) -> Result<bool, HostError> {
        self.router.supervisor().release(dialog, server).await
    }

    /// Restarts a server, also one that is disabled or suspended, and returns when it accepts calls, or its error.
    /// Running calls continue; its leases are released. Cancel-safe: the restart continues.
    pub async fn restart(&self, server: &ServerId) -> Result<(), HostError> {
        self.router.supervisor().restart(server).await
    }

    /// Disables a server until it is restarted or its entry changes. Running calls
    /// may finish within [`ProcessOptions::drain`].
    pub async fn disable(&self, server: &ServerId) -> Result<(), HostError> {
        self.router.supervisor().disable(server).await
    }

    /// Reports a failed request to a language model; returns whether to retry or stop (DM-066, DM-067). A stopped
    /// dialog is published as a problem, and its calls are refused until [`Host::resume`] or its end. Cancel-safe:
    /// the stop continues.
    pub async fn report_provider_failure(&self, report: ProviderFailureReport) -> RetryDecision {
        report_provider_failure(self.router.supervisor(), report).await
    }

    /// Returns the reason why a dialog is stopped, if it is. Check it before each request to the model.
    pub fn stop_reason(&self, dialog: &DialogId) -> Option<HostError> {
        self.router.supervisor().stop_reason(dialog)
    }

    /// Resumes a stopped dialog. Returns when its problem is withdrawn.
    pub async fn resume(&self, dialog: &DialogId) {
        self.router.supervisor().resume(dialog).await;
    }

    /// Refuses new calls, gives running ones the grace period, closes all servers concurrently, and returns when
    /// nothing is left. May be called repeatedly. Cancel-safe: the shutdown continues.
    pub async fn shutdown(&self) {
        // Fails if the host has shut down already.
        let _ = self.commands.send(SupervisorCommand::event(MachineEvent::Close)).await;
        self.commands.closed().await;
        self.router.spills.close().await;
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("published", &self.snapshot()).finish_non_exhaustive()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.supervisor_task.abort();
        // Also if a dialog or a pinned generation remains.
        self.router.spills.close_blocking();
    }
}
