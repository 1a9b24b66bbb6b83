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
use crate::session::negotiated::Negotiated;
use crate::session::options::SessionOptions;
use crate::session::session_state::SessionState;
use crate::session::subscriptions::listen_stream::{self, ListenStream, SubscriptionAck};
use crate::session::subscriptions::resubscribe::DetachedRequest;
use crate::transport::{Dial, Epoch, FrameSink, Link, ShutdownSender, ShutdownSignal, force_time};

/// How long to wait for the drop of an aborted transport. Only one that blocks its thread takes longer.
const ABORT_TIMEOUT: Duration = Duration::from_millis(100);

/// The maximum grace period; a longer one might overflow the clock.
const MAX_GRACE: Duration = Duration::from_secs(60 * 60);

/// A running connection. Dropping it ends the connection without waiting.
pub(crate) struct Connection {
    pub(super) engine: Arc<Engine>,
    stop: ShutdownSender,
    disconnect: watch::Receiver<Option<Arc<Disconnect>>>,
    pub(super) changes: watch::Sender<ListChangeCounts>,
    pub(super) first_request: watch::Sender<Option<Method>>,
    /// The subscribed resources.
    pub(super) subscriptions: watch::Sender<BTreeSet<String>>,
    pub(super) acknowledged: watch::Sender<SubscriptionAck>,
    state: watch::Sender<SessionState>,
    on_notification: Option<OnSessionNotification>,
    /// Whether the server responded during the handshake.
    has_response: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
    /// The runtime of the tasks. A request may be dropped outside of it.
    runtime: Handle,
}

/// The parts of a session that its connection uses.
pub(crate) struct SessionParts {
    pub(crate) responder: Arc<RequestResponder>,
    pub(crate) read_results: Arc<ResourceCache>,
}

impl Connection {
    /// Starts the transport and the tasks.
    pub(crate) fn start(dial: &Arc<dyn Dial>, options: &SessionOptions, parts: &SessionParts) -> Connection {
        let listener = options.handlers.listener.as_ref();
        let (engine, out, incoming) = Engine::new(listener.is_some(), Some(Arc::clone(dial)));
        let (stop, stopped) = ShutdownSignal::new();
        let (end_sender, disconnect) = watch::channel(None);
        let changes = watch::Sender::new(ListChangeCounts::default());
        let link =
            Link { outbound: out, inbound: Arc::clone(&engine) as Arc<dyn FrameSink>, shutdown: stopped };
        let transport = dial.dial();
        let mut tasks = JoinSet::new();
        let driver =
            TransportDriver { engine: Arc::clone(&engine), end_sender, state: options.state.clone() };
        tasks.spawn(async move {
            let disconnect = transport.run(link).await;
            driver.finish(disconnect);
        });
        let deadline_engine = Arc::clone(&engine);
        tasks.spawn(async move { deadline_engine.run_deadlines().await });
        let (router, queue) =
            ServerEventRouter::new(listener.is_some(), options.on_notification.clone(), Arc::clone(dial));
        if let (Some(listener), Some(queue)) = (listener, queue) {
            tasks.spawn(server_event_router::run(Arc::clone(listener), queue));
        }
        let acknowledged = watch::Sender::default();
        let first_request = watch::Sender::default();
        let targets = incoming::DispatchTargets {
            responder: Arc::clone(&parts.responder),
            router,
            changes: changes.clone(),
            acknowledged: acknowledged.clone(),
            read_results: Arc::clone(&parts.read_results),
            first_request: first_request.clone(),
        };
        tasks.spawn(incoming::run(Arc::clone(&engine), incoming, targets));
        Connection {
            engine,
            stop,
            disconnect,
            changes,
            first_request,
            subscriptions: watch::Sender::default(),
            acknowledged,
            state: options.state.clone(),
            on_notification: options.on_notification.clone(),
            has_response: AtomicBool::new(false),
            tasks: Mutex::new(tasks),
            runtime: Handle::current(),
        }
    }

    /// Records a response to the handshake, even an error.
    pub(crate) fn record_response(&self) {
        self.has_response.store(true, Ordering::Relaxed);
    }

    /// Whether the server responded during the handshake.
    pub(crate) fn has_response(&self) -> bool {
        self.has_response.load(Ordering::Relaxed)
    }

    /// Sets the state to connected, unless the connection has ended meanwhile.
    pub(crate) fn set_connected(&self) {
        self.state.send_replace(SessionState::Connected);
        // The driver closes the engine before it updates the state, so either it or this check sees the other.
        if let Some(disconnect) = self.engine.disconnect() {
            update_state(&self.state, &disconnect);
        }
    }

    /// Opens the notification stream of a modern server.
    pub(crate) fn open_notification_stream(&self, negotiated: &Arc<Negotiated>) {
        if negotiated.version.era() == Era::Legacy {
            return;
        }
        self.spawn(listen_stream::run(ListenStream {
            engine: Arc::clone(&self.engine),
            negotiated: Arc::clone(negotiated),
            list_changes_supported: negotiated.server.capabilities.list_changes_supported(),
            changes: self.changes.clone(),
            resources: self.subscriptions.subscribe(),
            acknowledged: self.acknowledged.clone(),
            on_notification: self.on_notification.clone(),
        }));
    }

    /// Sends what a new or reopened legacy session does not know: the log level, if the server sends log messages
    /// (SK-16), and the resource subscriptions. The responses are not required.
    pub(crate) fn restore(
        &self,
        negotiated: &Arc<Negotiated>,
        level: Option<LogLevel>,
        limit: Duration,
        epoch: Epoch,
    ) {
        if negotiated.version.era() != Era::Legacy {
            return;
        }
        let engine = Arc::clone(&self.engine);
        let request = DetachedRequest { engine, negotiated: Arc::clone(negotiated), epoch, limit };
        if let Some(level) = level.filter(|_| negotiated.server.capabilities.logging) {
            self.spawn(request.clone().set_log_level(level));
        }
        let resources = self.subscriptions.borrow().clone();
        if !resources.is_empty() {
            self.spawn(request.subscribe(resources, self.on_notification.clone()));
        }
    }

    /// Runs a request whose response nothing waits for, until the connection ends.
    pub(crate) fn send_detached<F: Future<Output = ()> + Send + 'static>(
        &self,
        request: impl FnOnce(Arc<Engine>) -> F,
    ) {
        self.spawn(request(Arc::clone(&self.engine)));
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        // Remove finished tasks.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// Resolves when the connection has ended. Cancel-safe.
    pub(crate) async fn disconnected(&self) -> Arc<Disconnect> {
        let mut disconnect = self.disconnect.clone();
        match disconnect.wait_for(Option::is_some).await {
            Ok(disconnect) => Arc::clone(disconnect.as_ref().expect("that is what was waited for")),
            Err(_) => self
                .engine
                .disconnect()
                .unwrap_or_else(|| Arc::new(Disconnect::new(DisconnectReason::Stopped))),
        }
    }

    /// Shuts the transport down within `grace`. A part of it is reserved for ending the server by force.
    pub(crate) async fn close(&self, grace: Duration) -> Arc<Disconnect> {
        let grace = grace.min(MAX_GRACE);
        let force_time = force_time(grace);
        self.shutdown(grace - force_time, force_time).await
    }

    /// Shuts the transport down within `grace`, and aborts it if it takes longer by `force_time`.
    pub(crate) async fn shutdown(&self, grace: Duration, force_time: Duration) -> Arc<Disconnect> {
        let deadline = Instant::now() + grace;
        // A second close can only shorten the shutdown.
        self.stop.request(deadline);
        if let Ok(disconnect) = tokio::time::timeout_at(deadline + force_time, self.disconnected()).await {
            return disconnect;
        }
        let disconnect = self.engine.close(Disconnect::new(DisconnectReason::Stopped));
        update_state(&self.state, &disconnect);
        // Dropping the transport's future releases everything, by its contract.
        self.tasks.lock().abort_all();
        let _ = tokio::time::timeout(ABORT_TIMEOUT, self.disconnected()).await;
        disconnect
    }
}

/// Updates the state of a connected session. A session that never connected keeps the error of the attempt.
fn update_state(state: &watch::Sender<SessionState>, disconnect: &Disconnect) {
    state.send_if_modified(|it| {
        if *it != SessionState::Connected {
            return false;
        }
        *it = match &disconnect.reason {
            DisconnectReason::Stopped => SessionState::Disconnected,
            DisconnectReason::PeerClosed
            | DisconnectReason::NotStarted(_)
            | DisconnectReason::Stalled(_)
            | DisconnectReason::Broken(_) => SessionState::Error(disconnect.to_string()),
        };
        true
    });
}

/// Reports the end of the connection, also when the transport's task panics or is aborted.
struct TransportDriver {
    engine: Arc<Engine>,
    end_sender: watch::Sender<Option<Arc<Disconnect>>>,
    state: watch::Sender<SessionState>,
}

impl TransportDriver {
    fn finish(&self, disconnect: Disconnect) {
        if self.end_sender.borrow().is_some() {
            return;
        }
        let disconnect = self.engine.close(disconnect);
        update_state(&self.state, &disconnect);
        self.end_sender.send_replace(Some(disconnect));
    }
}

impl Drop for TransportDriver {
    fn drop(&mut self) {
        let reason = match self.engine.disconnect() {
            // The transport was aborted by a shutdown.
            Some(disconnect) => disconnect.reason.clone(),
            None => DisconnectReason::Broken("the connection was cut off".to_owned()),
        };
        self.finish(Disconnect::new(reason));
    }
}
