//! From a resolved server to a running one with its lists, or to a failure in words.

use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{Endpoint, Era, ErrorKind, Limits, ServerId};
use mcp_registry::{ListKind, ServerLists};
use mcp_transport::{
    Authorities, CallError, ClientCapabilities, ClientInfo, ConnectError, Dial, DialOptions, Eras, Handlers,
    ListChangeCounts, Listing, OnSessionNotification, ReceiptDirectory, Session, SessionNotification,
    SessionOptions, SseServerCache, dialer,
};
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use crate::config::approval::about as about_server;
use crate::failure::HostError;
use crate::failure::excerpt::excerpt;
use crate::metrics::Meter;
use crate::notifications::dialog_callers::{Voices, joined};
use crate::notifications::log_levels::Levels;
use crate::notifications::stream::{Hub, ServerNotification};
use crate::notifications::subscriptions::{Post, Subscriptions};
use crate::state::known_eras::KnownEras;
use crate::state::server_info_cache::Acquaintances;
use crate::supervisor::clock_jump::WallClock;
use crate::supervisor::connection_count::Wires;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::instance::{Instance, Parts};
use crate::supervisor::lists::{Fresh, Listed};
use crate::supervisor::machine::{Started, later, plural};
use crate::telemetry::spans;

/// Gives the wire for a server. The host's own is [`mcp_transport::dialer`]; a host with wires of its own, or a
/// test, brings another.
pub type Dialer =
    Arc<dyn Fn(&ResolvedServer, &DialOptions) -> Result<Arc<dyn Dial>, ConnectError> + Send + Sync>;

/// The command that stands for this very executable.
const OWN_COMMAND: &str = "mcp-host";

/// How long a server that is not wanted may take to end.
const PARTING: Duration = Duration::from_millis(500);

/// What every start of a host has in common.
pub(crate) struct Connector {
    pub(crate) client: ClientInfo,
    pub(crate) receipts: Option<ReceiptDirectory>,
    pub(crate) older_servers: SseServerCache,
    pub(crate) authorities: Authorities,
    pub(crate) own_executable: Option<String>,
    pub(crate) handlers: Handlers,
    /// What a legacy handshake of a shared instance declares.
    pub(crate) declared: Option<ClientCapabilities>,
    /// The eras to try.
    pub(crate) spoken: Eras,
    pub(crate) voices: Arc<Voices>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) levels: Arc<Levels>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) acquaintances: Arc<Acquaintances>,
    pub(crate) dialer: Dialer,
    pub(crate) wires: Wires,
    pub(crate) eras: KnownEras,
    pub(crate) wall_clock: WallClock,
    pub(crate) meter: Arc<Meter>,
    pub(crate) not_connected: Option<OnConnectFailure>,
    #[cfg(feature = "oauth")]
    pub(crate) logins: Option<crate::state::logins::Logins>,
}

/// A connection that did not come about, as it was seen.
#[derive(Debug, Clone, Copy)]
pub struct ConnectFailure<'a> {
    /// The server.
    pub server: &'a ServerId,
    /// What is published about it, a moment later.
    pub error: &'a HostError,
    /// What it was made from. A server that was connected and whose tools could not be listed has none, and is not
    /// told about here.
    pub cause: &'a ConnectError,
}

/// Hears of connections that did not come about, before that is published. Must not wait.
pub type OnConnectFailure = Arc<dyn Fn(ConnectFailure<'_>) + Send + Sync>;

/// Which lists a start is to bring.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    /// Those that the server has.
    Read,
    /// These, which are known.
    Known(Arc<ServerLists>),
}

/// The wires of mcp-transport.
pub(crate) fn own_wires() -> Dialer {
    Arc::new(|server, options| dialer(&server.endpoint, options))
}

impl Connector {
    /// Starts or reaches the server and reads its lists, all within `limits.startup`. A failure leaves nothing
    /// behind. Cancel-safe: dropping the future ends what was begun.
    pub(crate) async fn connect(
        &self,
        server: &Arc<ResolvedServer>,
        wish: Wish,
        dialog: Option<DialogId>,
    ) -> Result<Started<Arc<Instance>>, HostError> {
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
            let record = spans::Record::begin();
            let deadline = later(Instant::now(), server.spec.limits.startup);
            let outcome = self.connect_within(server, wish, dialog, deadline).await;
            let era = outcome.as_ref().map(|it| it.era);
            spans::connected(&self.meter, id.as_str(), era, record);
            outcome
        }
        .instrument(span)
        .await
    }

    async fn connect_within(
        &self,
        server: &Arc<ResolvedServer>,
        wish: Wish,
        dialog: Option<DialogId>,
        deadline: Instant,
    ) -> Result<Started<Arc<Instance>>, HostError> {
        let ResolvedServer { spec, endpoint: _, config } = &**server;
        let label = server.endpoint.label();
        let refused = |error: &ConnectError| {
            let failure = connect_failure(spec.id.as_str(), &label, error);
            if let Some(hears) = &self.not_connected {
                hears(ConnectFailure { server: &spec.id, error: &failure, cause: error });
            }
            failure
        };
        let dial_options = DialOptions {
            limits: spec.limits.clone(),
            receipts: self.receipts.clone(),
            sse_servers: self.older_servers.clone(),
            authorities: self.authorities.clone(),
            #[cfg(feature = "oauth")]
            authorization: self
                .logins
                .as_ref()
                .and_then(|it| it.authorization(&spec.id, &server.endpoint, &self.authorities)),
            extra_secrets: config.iter().cloned().collect(),
            ..DialOptions::default()
        };
        let dial = (self.dialer)(&self.named(server), &dial_options).map_err(|it| refused(&it))?;
        let level = self.levels.of(&spec.id);
        let (handlers, declared) = self.answering(dialog.as_ref());
        let options = SessionOptions {
            client: self.client.clone(),
            limits: spec.limits.clone(),
            eras: self.spoken,
            config: config.clone(),
            handlers,
            client_capabilities: declared,
            on_notification: Some(self.said(spec.id.clone(), dialog.clone())),
            log_level: level,
            known_era: self.eras.of(&spec.id, &label),
            ..SessionOptions::default()
        };
        let session = Session::connect(self.wires.counted(dial), options).await.map_err(|it| refused(&it))?;
        let listed = match wish {
            Wish::Read => self.list(&session, server, deadline).await,
            Wish::Known(lists) => Ok(Listed { lists, ..Listed::nothing(heard(&session)) }),
        };
        match listed {
            Ok(mut listed) => {
                let era = session.era();
                listed.about = about_server(&session.server());
                self.acquaintances.met(&spec.id, session.server());
                self.eras.learn(&spec.id, &label, era);
                let (server, process) = (Arc::clone(server), dial_options.process);
                let open = self.meter.opened(spec.id.as_str());
                let made = (self.wall_clock)();
                let parts = Parts { session, server, process, made, open, level, dialog };
                Ok(Started { instance: Arc::new(Instance::new(parts)), era, listed })
            }
            Err(mut failure) => {
                let ended = session.close(PARTING).await;
                // What was seen of a server that keeps silent says more than its silence.
                if failure.kind == ErrorKind::Timeout {
                    failure.message.push_str(&excerpt(ended.evidence.to_string()));
                }
                Err(failure)
            }
        }
    }

    /// Who answers what an instance asks on its own, and what it is told of that. What a dialog has leased is its own
    /// business; what is shared may be asked for by anybody's call.
    fn answering(&self, dialog: Option<&DialogId>) -> (Handlers, Option<ClientCapabilities>) {
        match dialog.and_then(|it| self.voices.of(it)) {
            Some(caller) => (joined(&caller.handlers, &self.handlers), caller.capabilities.clone()),
            None => (self.handlers.clone(), self.declared.clone()),
        }
    }

    /// Where it goes what an instance says on its own.
    fn said(&self, server: ServerId, dialog: Option<DialogId>) -> OnSessionNotification {
        let hub = Arc::clone(&self.hub);
        Arc::new(move |SessionNotification { event, caller: owner }| {
            hub.say(|| ServerNotification { server: server.clone(), dialog: dialog.clone(), owner, event });
        })
    }

    /// Tells an instance that has just been started what has come to be wanted of its server for longer than a call.
    pub(crate) async fn settle(&self, instance: &Instance) {
        if let Err(failure) = instance.follow_level(&self.levels).await {
            tracing::warn!(%failure, "the log level was not set");
        }
        let Post { server, dialog } = instance.post();
        for uri in instance.follow_subscriptions(&self.subscriptions).await {
            // Nobody has told what changed while there was no instance.
            let event = mcp_transport::ServerEvent::ResourceUpdated { uri };
            let (server, dialog) = (server.clone(), dialog.clone());
            self.hub.say(|| ServerNotification { server, dialog, owner: None, event });
        }
    }

    /// Reads the lists for the first time. A server whose tools cannot be listed cannot be used; prompts and resources
    /// that cannot be listed are a problem, are tried again later, and cost nobody the tools.
    async fn list(
        &self,
        session: &Session,
        server: &ResolvedServer,
        deadline: Instant,
    ) -> Result<Listed, HostError> {
        let kinds = kinds(server);
        // Looked at before the lists are read: what is announced meanwhile is read again.
        let seen = *session.list_changes().borrow();
        // Boxed: all servers start at once, and each start would have the room of three lists from its beginning to its end.
        let read = |kind| Box::pin(read_within(session, server, kind, deadline, &self.meter));
        let (tools, prompts, resources) = tokio::join!(
            maybe(kinds.contains(&ListKind::Tool).then(|| read(ListKind::Tool))),
            maybe(kinds.contains(&ListKind::Prompt).then(|| read(ListKind::Prompt))),
            maybe(kinds.contains(&ListKind::Resource).then(|| read(ListKind::Resource))),
        );
        if let Some(Fresh::Failed(ListKind::Tool, failure)) = tools {
            return Err(failure);
        }
        let read = [tools, prompts, resources].into_iter().flatten();
        Ok(read.fold(Listed::nothing(seen), Listed::with).after(&kinds, Instant::now()))
    }

    /// The server with this executable in place of the name that stands for it.
    fn named(&self, server: &ResolvedServer) -> ResolvedServer {
        let mut res = server.clone();
        if let (Endpoint::Stdio(endpoint), Some(own)) = (&mut res.endpoint, &self.own_executable)
            && endpoint.command == OWN_COMMAND
        {
            endpoint.command.clone_from(own);
        }
        res
    }
}

/// What a server whose lists are not read now has announced so far. One of the modern era tells its changes only once
/// it is listened to, a moment after the first call may begin: its lists are read again beside that, to miss none.
fn heard(session: &Session) -> ListChangeCounts {
    let now = *session.list_changes().borrow();
    let before = |it: u64| it.wrapping_sub(1);
    match session.era() {
        Era::Legacy => now,
        Era::Modern => ListChangeCounts {
            tools: before(now.tools),
            prompts: before(now.prompts),
            resources: before(now.resources),
        },
    }
}

async fn maybe<T>(future: Option<impl Future<Output = T>>) -> Option<T> {
    match future {
        Some(future) => Some(future.await),
        None => None,
    }
}

/// Which lists are read of a server (HD-029, HD-030).
pub(crate) fn kinds(server: &ResolvedServer) -> Vec<ListKind> {
    let discovery = server.spec.discovery;
    let all = [
        (ListKind::Tool, discovery.tools),
        (ListKind::Prompt, discovery.prompts),
        (ListKind::Resource, true),
    ];
    all.into_iter().filter(|(_, wanted)| *wanted).map(|(kind, _)| kind).collect()
}

/// Reads one list, at the latest until `deadline`.
pub(crate) async fn read_within(
    session: &Session,
    server: &ResolvedServer,
    kind: ListKind,
    deadline: Instant,
    meter: &Meter,
) -> Fresh {
    let span = tracing::info_span!(
        "list",
        server = %server.spec.id,
        list = kind.as_str(),
        outcome = Empty,
        duration = Empty,
        items = Empty,
        bytes = Empty
    );
    async {
        let (record, begun) = (spans::Record::begin(), Instant::now());
        let fresh = match tokio::time::timeout_at(deadline, read(session, kind)).await {
            Ok(Ok(fresh)) => fresh,
            Ok(Err(error)) => Fresh::Failed(kind, call_failure(server, &error)),
            Err(_) => Fresh::Failed(kind, list_timeout(server, kind, begun.elapsed())),
        };
        spans::listed(meter, server.spec.id.as_str(), &fresh, record);
        fresh
    }
    .instrument(span)
    .await
}

async fn read(session: &Session, kind: ListKind) -> Result<Fresh, CallError> {
    Ok(match kind {
        ListKind::Tool => Fresh::Tools(session.list_tools().await?),
        ListKind::Prompt => Fresh::Prompts(session.list_prompts().await?),
        ListKind::Resource => {
            let (resources, templates) =
                tokio::join!(session.list_resources(), session.list_resource_templates());
            // A server that refuses to tell its templates has resources all the same.
            let templates = match templates {
                Err(CallError::Rpc(error)) => {
                    tracing::debug!(%error, "no resource templates");
                    Listing::empty()
                }
                other => other?,
            };
            Fresh::Resources(resources?, templates)
        }
    })
}

/// Why there is no session, for its user (HD-116, HD-FR021): names the server and its command or URL.
fn connect_failure(id: &str, label: &str, error: &ConnectError) -> HostError {
    let message = format!("server '{id}' ({label}): {}", excerpt(error.to_string()));
    HostError { kind: error.kind(), message, help: error.help() }
}

/// Why a request brought nothing, for its user.
pub(crate) fn call_failure(server: &ResolvedServer, error: &CallError) -> HostError {
    HostError { help: error.help(), ..about(server, error.kind(), error) }
}

/// A failure of `server`, named as every message names it. What the server said of it has bounds.
pub(crate) fn about(server: &ResolvedServer, kind: ErrorKind, what: impl std::fmt::Display) -> HostError {
    let what = excerpt(what.to_string());
    HostError::new(kind, format!("server '{}' ({}): {what}", server.spec.id, server.endpoint.label()))
}

fn list_timeout(server: &ResolvedServer, kind: ListKind, after: Duration) -> HostError {
    let Limits { startup, .. } = &server.spec.limits;
    let help =
        format!("raise its start-up limit of {} s if the server is merely slow", startup.as_secs_f64());
    let what = format!("it did not list its {} within {:.1} s", plural(kind), after.as_secs_f64());
    HostError { help: Some(help), ..about(server, ErrorKind::Timeout, what) }
}
