//! A running transport with its engine and tasks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_host_model::{Era, LogLevel, Method};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::rpc::engine::Engine;
use crate::session::cache::ResourceCache;
use crate::session::incoming::request_responder::RequestResponder;
use crate::session::incoming::server_event_router::{OnSessionNotification, ServerEventRouter};
use crate::session::incoming::{self, server_event_router};
use crate::session::list_changes::ListChangeCounts;
use crate::session::negotiated::NegotiatedSession;
use crate::session::options::SessionOptions;
use crate::session::session_state::SessionState;
use crate::session::subscriptions::background_requests::BackgroundRequester;
use crate::session::subscriptions::listen_stream::{self, ListenStream, SubscriptionAck};
use crate::transport::{Dial, Epoch, FrameSink, Link, ShutdownSender, ShutdownSignal, force_time};

/// How long to wait for the drop of an aborted transport. Only one that blocks its thread takes longer.
const ABORT_TIMEOUT: Duration = Duration::from_millis(100);

/// The maximum grace period; a longer one might overflow the clock.
const MAX_GRACE: Duration = Duration::from_secs(60 * 60);

/// A running connection. Dropping it ends the connection without waiting.
pub(crate) struct SessionConnection {
    pub(super) engine: Arc<Engine>,
    shutdown_sender: ShutdownSender,
    /// How the transport ended; `None` while it runs.
    disconnect: watch::Receiver<Option<Arc<Disconnect>>>,
    pub(super) list_changes: watch::Sender<ListChangeCounts>,
    /// The method of the first server request.
    pub(super) first_server_request: watch::Sender<Option<Method>>,
    /// The URIs of the subscribed resources.
    pub(super) subscriptions: watch::Sender<BTreeSet<String>>,
    pub(super) subscription_ack: watch::Sender<SubscriptionAck>,
    state: watch::Sender<SessionState>,
    on_notification: Option<OnSessionNotification>,
    /// Whether the server responded during the handshake, even with an error.
    has_responded: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
    /// The runtime of the tasks. A request may be dropped outside of it.
    runtime: Handle,
}

/// The parts of a session that its connection uses.
pub(crate) struct SessionParts {
    pub(crate) responder: Arc<RequestResponder>,
    pub(crate) read_results: Arc<ResourceCache>,
}

impl SessionConnection {
    /// Starts the transport and the tasks.
    pub(crate) fn start(
        dial: &Arc<dyn Dial>,
        options: &SessionOptions,
        parts: &SessionParts,
    ) -> SessionConnection {
        let listener = options.handlers.listener.as_ref();
        let (engine, outbound, incoming) = Engine::new(listener.is_some(), Some(Arc::clone(dial)));
        let (shutdown_sender, shutdown) = ShutdownSignal::new();
        let (disconnect_sender, disconnect) = watch::channel(None);
        let list_changes = watch::Sender::new(ListChangeCounts::default());
        let link = Link { outbound, inbound: Arc::clone(&engine) as Arc<dyn FrameSink>, shutdown };
        let transport = dial.dial();
        let mut tasks = JoinSet::new();
        let state = options.state.clone();
        let reporter = DisconnectReporter { engine: Arc::clone(&engine), disconnect_sender, state };
        tasks.spawn(async move {
            let disconnect = transport.run(link).await;
            reporter.report(disconnect);
        });
        let timer_engine = Arc::clone(&engine);
        tasks.spawn(async move { timer_engine.run_timer().await });
        let (router, queue) =
            ServerEventRouter::new(listener.is_some(), options.on_notification.clone(), Arc::clone(dial));
        if let (Some(listener), Some(queue)) = (listener, queue) {
            tasks.spawn(server_event_router::deliver_events(Arc::clone(listener), queue));
        }
        let subscription_ack = watch::Sender::default();
        let first_server_request = watch::Sender::default();
        let targets = incoming::DispatchTargets {
            responder: Arc::clone(&parts.responder),
            router,
            list_changes: list_changes.clone(),
            subscription_ack: subscription_ack.clone(),
            read_results: Arc::clone(&parts.read_results),
            first_server_request: first_server_request.clone(),
        };
        tasks.spawn(incoming::dispatch_messages(Arc::clone(&engine), incoming, targets));
        SessionConnection {
            engine,
            shutdown_sender,
            disconnect,
            list_changes,
            first_server_request,
            subscriptions: watch::Sender::default(),
            subscription_ack,
            state: options.state.clone(),
            on_notification: options.on_notification.clone(),
            has_responded: AtomicBool::new(false),
            tasks: Mutex::new(tasks),
            runtime: Handle::current(),
        }
    }

    /// Records a response to the handshake, even an error.
    pub(crate) fn record_response(&self) {
        self.has_responded.store(true, Ordering::Relaxed);
    }

    /// Whether the server responded during the handshake, even with an error.
    pub(crate) fn has_responded(&self) -> bool {
        self.has_responded.load(Ordering::Relaxed)
    }

    /// Sets the state to connected, unless the connection has ended meanwhile.
    pub(crate) fn set_connected(&self) {
        self.state.send_replace(SessionState::Connected);
        // `DisconnectReporter` closes the engine before it sets the state. If it set the state before the line above,
        // the engine is closed by now, and the state is set again.
        if let Some(disconnect) = self.engine.disconnect() {
            set_disconnected(&self.state, &disconnect);
        }
    }

    /// Opens the notification stream of a modern server.
    pub(crate) fn open_notification_stream(&self, negotiated: &Arc<NegotiatedSession>) {
        if negotiated.version.era() == Era::Legacy {
            return;
        }
        self.spawn(listen_stream::run(ListenStream {
            engine: Arc::clone(&self.engine),
            negotiated: Arc::clone(negotiated),
            announced_lists: negotiated.server.capabilities.announced_lists(),
            list_changes: self.list_changes.clone(),
            resources: self.subscriptions.subscribe(),
            subscription_ack: self.subscription_ack.clone(),
            on_notification: self.on_notification.clone(),
        }));
    }

    /// Starts to send the settings that a new or reopened legacy session does not have: the log level, if the server
    /// sends log messages (SK-16), and the resource subscriptions. A refusal is only logged.
    pub(crate) fn send_settings(
        &self,
        negotiated: &Arc<NegotiatedSession>,
        level: Option<LogLevel>,
        timeout: Duration,
        epoch: Epoch,
    ) {
        if negotiated.version.era() != Era::Legacy {
            return;
        }
        let engine = Arc::clone(&self.engine);
        let requester = BackgroundRequester { engine, negotiated: Arc::clone(negotiated), epoch, timeout };
        if let Some(level) = level.filter(|_| negotiated.server.capabilities.logging) {
            self.spawn(requester.clone().set_log_level(level));
        }
        let resources = self.subscriptions.borrow().clone();
        if !resources.is_empty() {
            self.spawn(requester.subscribe(resources, self.on_notification.clone()));
        }
    }

    /// Runs a task until it is done or the connection is dropped.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        // Remove finished tasks.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// Resolves when the connection has ended. Cancel-safe.
    pub(crate) async fn disconnected(&self) -> Arc<Disconnect> {
        let mut disconnect = self.disconnect.clone();
        match disconnect.wait_for(Option::is_some).await {
            Ok(disconnect) => Arc::clone(disconnect.as_ref().expect("`wait_for` returned because it is set")),
            Err(_) => self
                .engine
                .disconnect()
                .unwrap_or_else(|| Arc::new(Disconnect::new(DisconnectReason::Stopped))),
        }
    }

    /// Shuts the transport down within `grace`. The end of that time is reserved for ending the server by force.
    pub(crate) async fn close(&self, grace: Duration) -> Arc<Disconnect> {
        let grace = grace.min(MAX_GRACE);
        let force_time = force_time(grace);
        self.shutdown(grace - force_time, force_time).await
    }

    /// Lets the transport shut down gracefully for `grace` and by force for `force_time`, then aborts it.
    pub(crate) async fn shutdown(&self, grace: Duration, force_time: Duration) -> Arc<Disconnect> {
        let deadline = Instant::now() + grace;
        // Of several deadlines, the earliest counts.
        self.shutdown_sender.request(deadline);
        if let Ok(disconnect) = tokio::time::timeout_at(deadline + force_time, self.disconnected()).await {
            return disconnect;
        }
        let disconnect = self.engine.close(Disconnect::new(DisconnectReason::Stopped));
        set_disconnected(&self.state, &disconnect);
        // Dropping the transport's future releases everything, by its contract.
        self.tasks.lock().abort_all();
        let _ = tokio::time::timeout(ABORT_TIMEOUT, self.disconnected()).await;
        disconnect
    }
}

/// Sets the state of a connected session to that of an ended one. Any other state is kept: a session that never
/// connected has the error of the attempt.
fn set_disconnected(state: &watch::Sender<SessionState>, disconnect: &Disconnect) {
    state.send_if_modified(|state| {
        if *state != SessionState::Connected {
            return false;
        }
        *state = match &disconnect.reason {
            DisconnectReason::Stopped => SessionState::Disconnected,
            DisconnectReason::PeerClosed
            | DisconnectReason::NotStarted(_)
            | DisconnectReason::Stalled(_)
            | DisconnectReason::Broken(_) => SessionState::Error(disconnect.to_string()),
        };
        true
    });
}

/// Reports how the transport ended to the engine and the session. Its drop reports the end of a transport whose task
/// panicked or was aborted.
struct DisconnectReporter {
    engine: Arc<Engine>,
    disconnect_sender: watch::Sender<Option<Arc<Disconnect>>>,
    state: watch::Sender<SessionState>,
}

impl DisconnectReporter {
    /// Reports the end. Only the first call counts.
    fn report(&self, disconnect: Disconnect) {
        if self.disconnect_sender.borrow().is_some() {
            return;
        }
        let disconnect = self.engine.close(disconnect);
        set_disconnected(&self.state, &disconnect);
        self.disconnect_sender.send_replace(Some(disconnect));
    }
}

impl Drop for DisconnectReporter {
    fn drop(&mut self) {
        let reason = match self.engine.disconnect() {
            // The transport was aborted by a shutdown.
            Some(disconnect) => disconnect.reason.clone(),
            None => DisconnectReason::Broken("the connection was cut off".to_owned()),
        };
        self.report(Disconnect::new(reason));
    }
}
