//! Starts of servers: a resolved server becomes a running instance with its lists, or an error.

use std::sync::Arc;
#[cfg(feature = "oauth")]
use std::sync::Weak;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, Era, ErrorKind, LogLevel, ServerId, Sharing};
use mcp_host_registry::{ListKind, ServerLists};
#[cfg(feature = "oauth")]
use mcp_host_transport::Authorization;
use mcp_host_transport::{
    Authorities, ClientCapabilities, ClientInfo, ConnectError, Dial, DialOptions, Eras, Handlers,
    ListChangeCounts, NoRoots, OnSessionNotification, ReceiptDirectory, Session, SessionNotification,
    SessionOptions, SseServerCache, StartFacts, dialer,
};
use parking_lot::RwLock;
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use crate::config::approval::{Approval, server_identity};
use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::notifications::dialog_callers::{DialogCallers, merge_handlers};
use crate::notifications::log_levels::LogLevels;
use crate::notifications::stream::{NotificationRouter, ServerNotification};
use crate::notifications::subscriptions::{InstanceKey, Subscriptions};
use crate::state::approved_servers::{ApprovedServers, PendingServer};
use crate::state::dialog_id::DialogId;
use crate::state::known_eras::KnownEras;
use crate::state::server_info_cache::ServerInfoCache;
use crate::state::start_identity::start_identity;
use crate::state::subject_tokens::SubjectTokens;
use crate::supervisor::clock_jump::WallClock;
use crate::supervisor::connection_count::ConnectionCounter;
use crate::supervisor::instance::{Instance, InstanceParts};
use crate::supervisor::list_reads::ListReads;
use crate::supervisor::lists::{ListSnapshot, ListUpdate, enabled_lists};
use crate::supervisor::machine::StartedInstance;
use crate::supervisor::server_error::server_error;
use crate::supervisor::task_registry::TaskRegistry;
use crate::telemetry::metrics::HostMetrics;
use crate::telemetry::spans;

/// A function that creates the dial of a server. The default is [`mcp_host_transport::dialer`]; hosts with transports
/// of their own, and tests, pass another.
pub type Dialer =
    Arc<dyn Fn(&ResolvedServer, &DialOptions) -> Result<Arc<dyn Dial>, ConnectError> + Send + Sync>;

/// The command that is replaced by the host's own executable.
const SELF_COMMAND: &str = "mcp-host";

/// The time that a server has to close after a failed start.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The state that the starts and the calls of a host share.
pub(crate) struct SharedState {
    pub(crate) callers: Arc<DialogCallers>,
    pub(crate) subjects: Arc<SubjectTokens>,
    pub(crate) notifications: NotificationRouter<ServerNotification>,
    pub(crate) log_levels: LogLevels,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) server_info: ServerInfoCache,
    pub(crate) tasks: TaskRegistry<Instance>,
    pub(crate) wall_clock: WallClock,
    pub(crate) metrics: HostMetrics,
    /// The lock file in effect, which each start is compared with.
    pub(crate) approval: RwLock<Option<Approval>>,
}

impl SharedState {
    pub(crate) fn new(log_levels: LogLevels, wall_clock: WallClock) -> SharedState {
        SharedState {
            callers: Arc::default(),
            subjects: Arc::default(),
            notifications: NotificationRouter::new(),
            log_levels,
            subscriptions: Arc::default(),
            server_info: ServerInfoCache::default(),
            tasks: TaskRegistry::default(),
            wall_clock,
            metrics: HostMetrics::default(),
            approval: RwLock::new(None),
        }
    }
}

/// Starts the servers of a host. Its fields are the settings of all starts.
pub(crate) struct Connector {
    pub(crate) client: ClientInfo,
    pub(crate) receipts: Option<ReceiptDirectory>,
    /// The cache of URLs that support only HTTP with SSE.
    pub(crate) sse_servers: SseServerCache,
    pub(crate) authorities: Authorities,
    /// The path of the host's executable, which replaces the command `mcp-host`.
    pub(crate) own_executable: Option<String>,
    pub(crate) handlers: Handlers,
    /// The capabilities that a legacy handshake of a shared instance declares.
    pub(crate) declared_capabilities: Option<ClientCapabilities>,
    /// The eras to try.
    pub(crate) eras: Eras,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) dialer: Dialer,
    pub(crate) connections: ConnectionCounter,
    /// The servers that the user approved.
    pub(crate) approvals: Option<ApprovedServers>,
    pub(crate) known_eras: KnownEras,
    #[cfg(feature = "oauth")]
    pub(crate) logins: Option<crate::state::logins::Logins>,
}

/// The source of a new instance's lists.
#[derive(Debug, Clone)]
pub(crate) enum ListSource {
    /// Read them from the server.
    Read,
    /// Use these lists, and do not read them.
    Known(Arc<ServerLists>),
}

/// Returns the dialer of mcp-transport.
pub(crate) fn default_dialer() -> Dialer {
    Arc::new(|server, options| dialer(&server.endpoint, options))
}

impl Connector {
    /// Starts or connects to the server and reads its lists within `limits.startup`; a server of both
    /// eras that starts slowly may have this time twice ([`Session::connect`]). Nothing remains after a failure.
    /// Dropping the future aborts the start.
    pub(crate) async fn connect(
        &self,
        server: &Arc<ResolvedServer>,
        lists: ListSource,
        dialog: Option<DialogId>,
    ) -> Result<StartedInstance<Arc<Instance>>, HostError> {
        let id = &server.spec.id;
        let span = tracing::info_span!(
            "connect",
            server = %id,
            transport = server.endpoint.kind().as_str(),
            outcome = Empty,
            duration = Empty,
            era = Empty
        );
        async {
            let guard = spans::SpanGuard::begin();
            let outcome = self.connect_and_list(server, lists, dialog).await;
            let era = outcome.as_ref().map(|it| it.era);
            spans::record_connect(&self.shared.metrics, id.as_str(), era, guard);
            outcome
        }
        .instrument(span)
        .await
    }

    /// Does the work of [`Connector::connect`], without its span and metrics.
    async fn connect_and_list(
        &self,
        server: &Arc<ResolvedServer>,
        lists: ListSource,
        dialog: Option<DialogId>,
    ) -> Result<StartedInstance<Arc<Instance>>, HostError> {
        self.check_approval(server).await?;
        let spec = &server.spec;
        let is_of_user = dialog.is_some() && server.endpoint.is_per_user();
        let to_host_error = |cause: ConnectError| {
            let needs_explanation = server.endpoint.is_per_user() && is_unauthorized(&cause);
            let mut error = connect_error(server, cause);
            if needs_explanation {
                explain_authorization(&mut error, dialog.as_ref());
            }
            error
        };
        #[cfg_attr(not(feature = "oauth"), expect(unused_mut, reason = "only a login changes them"))]
        let mut dial_options = self.dial_options(server);
        #[cfg(feature = "oauth")]
        {
            dial_options.authorization = self.authorization(server, dialog.as_ref());
        }
        let dial = (self.dialer)(&self.with_own_executable(server), &dial_options).map_err(to_host_error)?;
        let level = self.shared.log_levels.level(&spec.id);
        let options = self.session_options(server, dialog.as_ref(), level);
        let session = Session::connect(self.connections.wrap(dial), options).await.map_err(to_host_error)?;
        let listing = match lists {
            ListSource::Read => self.read_lists(&session, server, session.start_deadline()).await,
            ListSource::Known(lists) => {
                // The lists of a user's instance are not read, because they may not be those of other users.
                let changes = match is_of_user {
                    true => *session.list_changes().borrow(),
                    false => changes_to_reread(&session),
                };
                Ok(ListSnapshot { lists, ..ListSnapshot::empty(changes) })
            }
        };
        match listing {
            Ok(mut listing) => {
                let era = session.era();
                listing.identity = server_identity(&session.server());
                listing.declares_nothing = session.server().capabilities.is_empty();
                if !is_of_user {
                    self.shared.server_info.insert(&spec.id, session.server());
                }
                self.known_eras.insert(&spec.id, &server.endpoint, era);
                let (server, process) = (Arc::clone(server), dial_options.process);
                let (id, kind) = (spec.id.as_str(), server.endpoint.kind());
                let gauge = self.shared.metrics.count_connection(id, kind, session.version());
                let created = (self.shared.wall_clock)();
                let parts =
                    InstanceParts { session, server, process, created, gauge, current_level: level, dialog };
                Ok(StartedInstance { instance: Arc::new(Instance::new(parts)), era, listing })
            }
            Err(mut error) => {
                let ended = session.close(CLOSE_TIMEOUT).await;
                // Evidence explains a silent server better than the timeout.
                if error.kind == ErrorKind::Timeout {
                    error.message.push_str(&excerpt(ended.evidence.to_string()));
                }
                Err(error)
            }
        }
    }

    /// The options to dial a server, without an authorization.
    fn dial_options(&self, server: &ResolvedServer) -> DialOptions {
        let mut options = DialOptions::default();
        options.limits = server.spec.limits.clone();
        options.receipts = self.receipts.clone();
        options.sse_servers = self.sse_servers.clone();
        options.authorities = self.authorities.clone();
        options.extra_secrets = server.config.iter().chain(&server.secrets.values).cloned().collect();
        options
    }

    /// The options of a session with a server, for a dialog if it is leased.
    fn session_options(
        &self,
        server: &ResolvedServer,
        dialog: Option<&DialogId>,
        log_level: Option<LogLevel>,
    ) -> SessionOptions {
        let ResolvedServer { spec, endpoint, config, .. } = server;
        let (handlers, declared_capabilities) = self.handlers_for(dialog, spec.sharing);
        let mut options = SessionOptions::default();
        options.client = self.client.clone();
        options.limits = spec.limits.clone();
        options.eras = self.eras;
        options.config = config.clone();
        options.handlers = handlers;
        options.client_capabilities = declared_capabilities;
        options.on_notification = Some(self.notification_sink(spec.id.clone(), dialog.cloned()));
        options.log_level = log_level;
        options.known_era = self.known_eras.get(&spec.id, endpoint);
        options
    }

    /// Fails if the server is not what the lock file approves, or needs an approval that it lacks. Read before each
    /// start, so that an entry or a script that was changed meanwhile does not start.
    async fn check_approval(&self, server: &Arc<ResolvedServer>) -> Result<(), HostError> {
        let lock = self.shared.approval.read().clone().filter(|it| it.lock.programs.is_some());
        if lock.is_none() && !server.needs_approval {
            return Ok(());
        }
        let (approvals, checked) = (self.approvals.clone(), Arc::clone(server));
        blocking_check(server, move || {
            // The scripts of the project are read once for both.
            let identity = start_identity(&checked);
            if let Some(approval) = lock {
                approval.check_record(&checked.spec.id, &identity.record)?;
            }
            match approvals {
                _ if !checked.needs_approval => Ok(()),
                Some(approvals) => approvals.check_identity(&checked, identity),
                None => Err(PendingServer::new(&checked).error()),
            }
        })
        .await
    }

    /// Returns the authorization of an instance. For a server with token exchange, the instance of a dialog exchanges
    /// the token of its user, and the instance without a dialog, which lists the tools, has a token of the host.
    #[cfg(feature = "oauth")]
    fn authorization(
        &self,
        server: &ResolvedServer,
        dialog: Option<&DialogId>,
    ) -> Option<Arc<dyn Authorization>> {
        let (logins, id, endpoint) = (self.logins.as_ref()?, &server.spec.id, &server.endpoint);
        match dialog.filter(|_| endpoint.is_per_user()) {
            Some(dialog) => {
                let subject = self.shared.subjects.get(dialog);
                let subject = subject.as_ref().map_or_else(Weak::new, Arc::downgrade);
                logins.exchange(id, endpoint, &self.authorities, subject)
            }
            None => logins.authorization(id, endpoint, &self.authorities),
        }
    }

    /// Returns the handlers and the declared capabilities of an instance. A leased instance has those of its dialog's
    /// caller; a shared one has those of the host.
    fn handlers_for(
        &self,
        dialog: Option<&DialogId>,
        sharing: Sharing,
    ) -> (Handlers, Option<ClientCapabilities>) {
        match dialog.and_then(|it| self.shared.callers.caller(it)) {
            Some(caller) => (merge_handlers(&caller.handlers, &self.handlers), caller.capabilities.clone()),
            // A shared instance must not receive the roots of one caller. It declares roots if a request for them
            // leads to an instance per dialog.
            None => match (&self.declared_capabilities, &self.handlers.roots) {
                (Some(declared), None) => {
                    let (roots, declared) = match sharing {
                        Sharing::Shared => (NoRoots::Refused, declared.without("roots")),
                        Sharing::Auto | Sharing::PerOwner => (NoRoots::Empty, declared.clone()),
                    };
                    let mut handlers = self.handlers.clone();
                    handlers.roots = Some(Arc::new(roots));
                    (handlers, Some(declared))
                }
                (declared, _) => (self.handlers.clone(), declared.clone()),
            },
        }
    }

    /// Returns a function that publishes the notifications of an instance.
    fn notification_sink(&self, server: ServerId, dialog: Option<DialogId>) -> OnSessionNotification {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |SessionNotification { event, caller: owner, .. }| {
            shared.notifications.publish(|| ServerNotification {
                server: server.clone(),
                dialog: dialog.clone(),
                owner,
                event,
            });
        })
    }

    /// Sends the current log level and subscriptions to a new instance.
    pub(crate) async fn apply_settings(&self, instance: &Instance) {
        if let Err(error) = instance.apply_log_level(&self.shared.log_levels).await {
            tracing::warn!(%error, "the log level was not set");
        }
        let InstanceKey { server, dialog } = instance.key();
        for uri in instance.sync_subscriptions(&self.shared.subscriptions).await {
            // Changes since the end of the previous instance were not reported.
            let event = mcp_host_transport::ServerEvent::ResourceUpdated { uri };
            let (server, dialog) = (server.clone(), dialog.clone());
            self.shared.notifications.publish(|| ServerNotification { server, dialog, owner: None, event });
        }
    }

    /// Reads the lists of a new instance. Fails if its tools cannot be listed. A failure of another list is a problem
    /// of the server, and the read is retried later.
    async fn read_lists(
        &self,
        session: &Session,
        server: &ResolvedServer,
        deadline: Instant,
    ) -> Result<ListSnapshot, HostError> {
        let kinds = enabled_lists(server);
        // Taken before the lists are read, so that later changes cause another read.
        let seen = *session.list_changes().borrow();
        let metrics = &self.shared.metrics;
        let updates = ListReads { session, server, kinds: &kinds, deadline, metrics }.run().await;
        if let Some(ListUpdate::Failed(_, error)) =
            updates.iter().find(|update| matches!(update, ListUpdate::Failed(ListKind::Tool, _)))
        {
            return Err(error.clone());
        }
        let updates = updates.into_iter();
        let listing = updates.fold(ListSnapshot::empty(seen), ListSnapshot::with_update);
        Ok(listing.finish_read(&kinds, Instant::now()))
    }

    /// Returns the server, with the command `mcp-host` replaced by the path of the host's executable.
    fn with_own_executable(&self, server: &ResolvedServer) -> ResolvedServer {
        let mut server = server.clone();
        if let (Endpoint::Stdio(endpoint), Some(own)) = (&mut server.endpoint, &self.own_executable)
            && endpoint.command == SELF_COMMAND
        {
            endpoint.command.clone_from(own);
        }
        server
    }
}

/// Returns the changes that the known lists of a new instance include. A modern server announces changes only while its
/// stream is open, so for such a server the counts are older than the current ones: its lists are read again.
fn changes_to_reread(session: &Session) -> ListChangeCounts {
    let now = *session.list_changes().borrow();
    let previous = |count: u64| count.wrapping_sub(1);
    match session.era() {
        Era::Legacy => now,
        Era::Modern => {
            let mut counts = ListChangeCounts::default();
            counts.tools = previous(now.tools);
            counts.prompts = previous(now.prompts);
            counts.resources = previous(now.resources);
            counts
        }
    }
}

/// Runs a check that reads files before a start.
async fn blocking_check(
    server: &ResolvedServer,
    check: impl FnOnce() -> Result<(), HostError> + Send + 'static,
) -> Result<(), HostError> {
    tokio::task::spawn_blocking(check).await.unwrap_or_else(|error| {
        let message = format!("the check of its approval failed: {error}");
        Err(HostError::of_server(ErrorKind::Config, server.spec.id.as_str(), message))
    })
}

/// Returns the error of a failed connection (HD-116, HD-FR021), with the server's name and command or URL.
fn connect_error(server: &ResolvedServer, error: ConnectError) -> HostError {
    let failure = server_error(server, error.kind(), &error).with_opening(error.message_opening());
    HostError { help: connect_help(server, &error), connect_error: Some(Arc::new(error)), ..failure }
}

/// Returns what the user can try after a failed connection, in words of the server's configuration.
pub fn connect_help(server: &ResolvedServer, error: &ConnectError) -> Option<String> {
    let mut facts = StartFacts::default();
    facts.launcher = server.endpoint.package_launcher();
    facts.limit = server.spec.origin.start_limit;
    facts.command = match &server.endpoint {
        Endpoint::Stdio(stdio) => Some(&stdio.command),
        Endpoint::Sse(_) | Endpoint::WebSocket(_) | Endpoint::Http(_) => None,
    };
    error.help_for(facts)
}

fn is_unauthorized(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Refused(refused) if matches!(refused.status(), Some(401 | 403)))
}

/// Completes the error of a server with token exchange that refuses the token. Removes the help, which is about
/// configured headers.
fn explain_authorization(error: &mut HostError, dialog: Option<&DialogId>) {
    error.help = None;
    if dialog.is_none() {
        error.message.push_str(
            "; the host lists the tools of this server with a token of its own: allow its client the grant \
             `client_credentials` for this server",
        );
    }
}
