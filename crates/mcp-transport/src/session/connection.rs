//! A running wire with its engine, and the tasks that belong to them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_model::{Era, LogLevel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answering::Answering;
use super::cache::{Reads, Updates};
use super::listen::{Acknowledged, Ear};
use super::notification_router::{self, Hearing};
use super::resubscribe::Opened;
use super::server::Announced;
use super::{
    ListChangeCounts, Negotiated, OnSessionNotification, SessionOptions, SessionState, dispatch, listen,
};
use crate::error::end::{Disconnect, DisconnectReason};
use crate::rpc::engine::{Audience, Engine};
use crate::transport::{Dial, Epoch, FrameSink, Link, ShutdownSignal};

/// How much longer than its grace a wire may take to end before it is cut off.
const OVERTIME: Duration = Duration::from_secs(2);

/// A grace longer than this is no grace, and might be more than the clock can count.
const LONGEST_GRACE: Duration = Duration::from_secs(60 * 60);

/// A wire that runs. Dropping it ends the connection without waiting for that.
pub(crate) struct Wire {
    engine: Arc<Engine>,
    stop: watch::Sender<Option<Instant>>,
    ended: watch::Receiver<Option<Arc<Disconnect>>>,
    changes: watch::Sender<ListChangeCounts>,
    /// The resources whose changes are to be heard.
    subscriptions: watch::Sender<BTreeSet<String>>,
    acknowledged: watch::Sender<Acknowledged>,
    state: watch::Sender<SessionState>,
    said: Option<OnSessionNotification>,
    /// Something of the handshake was answered.
    heard: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

/// What has come of a server during its handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// An answer at least.
    Something,
    /// No answer.
    Nothing,
}

/// What of a session its wire works with.
pub(crate) struct Parts {
    pub(crate) answering: Arc<Answering>,
    pub(crate) reads: Arc<Reads>,
}

impl Wire {
    /// Starts the wire's tasks.
    pub(crate) fn start(dial: &Arc<dyn Dial>, options: &SessionOptions, parts: &Parts) -> Wire {
        let listener = options.handlers.listener.as_ref();
        let audience = if listener.is_some() { Audience::Listening } else { Audience::Nobody };
        let (engine, out, incoming) = Engine::new(audience, Some(Arc::clone(dial)));
        let (stop, stopped) = ShutdownSignal::new();
        let (tell_end, ended) = watch::channel(None);
        let changes = watch::Sender::new(ListChangeCounts::default());
        let link =
            Link { outbound: out, inbound: Arc::clone(&engine) as Arc<dyn FrameSink>, shutdown: stopped };
        let transport = dial.dial();
        let mut tasks = JoinSet::new();
        let driver = Driver { engine: Arc::clone(&engine), tell_end, state: options.state.clone() };
        tasks.spawn(async move {
            let ended = transport.run(link).await;
            driver.tell(ended);
        });
        let timed = Arc::clone(&engine);
        tasks.spawn(async move { timed.keep_time().await });
        let (hearing, waiting) = Hearing::new(listener, options.on_notification.clone(), Arc::clone(dial));
        if let (Some(listener), Some(waiting)) = (listener, waiting) {
            tasks.spawn(notification_router::run(Arc::clone(listener), waiting));
        }
        let acknowledged = watch::Sender::default();
        let outlets = dispatch::Outlets {
            answering: Arc::clone(&parts.answering),
            hearing,
            changes: changes.clone(),
            acknowledged: acknowledged.clone(),
            updates: Updates(Arc::clone(&parts.reads)),
        };
        tasks.spawn(dispatch::run(Arc::clone(&engine), incoming, outlets));
        Wire {
            engine,
            stop,
            ended,
            changes,
            subscriptions: watch::Sender::default(),
            acknowledged,
            state: options.state.clone(),
            said: options.on_notification.clone(),
            heard: AtomicBool::new(false),
            tasks: Mutex::new(tasks),
        }
    }

    /// Something of the handshake was answered, whatever the answer says.
    pub(crate) fn hear(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Was anything of the handshake answered?
    pub(crate) fn heard(&self) -> Heard {
        if self.heard.load(Ordering::Relaxed) { Heard::Something } else { Heard::Nothing }
    }

    /// Tells that the handshake is done, unless the connection has ended meanwhile.
    pub(crate) fn connected(&self) {
        self.state.send_replace(SessionState::Connected);
        // The driver closes the engine before it looks at the state: one of the two sees the other.
        if let Some(ended) = self.engine.ended() {
            tell_state(&self.state, &ended);
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Asks a server of the modern era to tell the changes that it can tell.
    pub(crate) fn listen(&self, negotiated: &Arc<Negotiated>) {
        if negotiated.version.era() == Era::Legacy {
            return;
        }
        self.spawn(listen::run(Ear {
            engine: Arc::clone(&self.engine),
            negotiated: Arc::clone(negotiated),
            announced: negotiated.server.capabilities.announced(),
            changes: self.changes.clone(),
            resources: self.subscriptions.subscribe(),
            acknowledged: self.acknowledged.clone(),
            said: self.said.clone(),
        }));
    }

    /// Asks a server of the legacy era that sends log messages for those that are wanted (SK-16). It need not answer.
    pub(crate) fn ask_for_logs(
        &self,
        negotiated: &Arc<Negotiated>,
        (level, limit): (Option<LogLevel>, Duration),
        epoch: Epoch,
    ) {
        let Some(level) = level else { return };
        if negotiated.version.era() == Era::Legacy && negotiated.server.capabilities.logging {
            let opened = self.opened(negotiated, limit, epoch);
            self.spawn(opened.set_log_level(level));
        }
    }

    /// Has a session of the legacy era tell what the one before it was asked to tell of resources.
    pub(crate) fn subscribe_again(&self, negotiated: &Arc<Negotiated>, limit: Duration, epoch: Epoch) {
        let resources = self.subscriptions.borrow().clone();
        if negotiated.version.era() == Era::Legacy && !resources.is_empty() {
            let opened = self.opened(negotiated, limit, epoch);
            self.spawn(opened.subscribe(resources, self.said.clone()));
        }
    }

    fn opened(&self, negotiated: &Arc<Negotiated>, limit: Duration, epoch: Epoch) -> Opened {
        Opened { engine: Arc::clone(&self.engine), negotiated: Arc::clone(negotiated), epoch, limit }
    }

    /// The resources whose changes are to be heard.
    pub(crate) fn subscriptions(&self) -> &watch::Sender<BTreeSet<String>> {
        &self.subscriptions
    }

    /// What the server has agreed to tell of them.
    pub(crate) fn acknowledged(&self) -> watch::Receiver<Acknowledged> {
        self.acknowledged.subscribe()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are over need no place any more.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// What was known of the lists is old: nobody heard what changed meanwhile.
    pub(crate) fn lists_are_old(&self) {
        self.changes.send_modify(|it| it.add(Announced::ALL));
    }

    pub(crate) fn changes(&self) -> watch::Receiver<ListChangeCounts> {
        self.changes.subscribe()
    }

    /// Resolves when the wire has ended. Cancel-safe.
    pub(crate) async fn ended(&self) -> Arc<Disconnect> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => Arc::clone(ended.as_ref().expect("that is what was waited for")),
            Err(_) => {
                self.engine.ended().unwrap_or_else(|| Arc::new(Disconnect::new(DisconnectReason::Stopped)))
            }
        }
    }

    /// Asks the wire to end, waits for it, and cuts it off when it takes longer than `grace` and a little.
    pub(crate) async fn stop(&self, grace: Duration) -> Arc<Disconnect> {
        let deadline = Instant::now() + grace.min(LONGEST_GRACE);
        self.stop.send_if_modified(|it| {
            // An earlier deadline counts, so that a second close can only be quicker.
            let sooner = it.is_none_or(|asked| deadline < asked);
            if sooner {
                *it = Some(deadline);
            }
            sooner
        });
        if let Ok(ended) = tokio::time::timeout_at(deadline + OVERTIME, self.ended()).await {
            return ended;
        }
        let ended = Arc::new(Disconnect::new(DisconnectReason::Stopped));
        self.engine.close(Arc::clone(&ended));
        tell_state(&self.state, &ended);
        // Dropping the wire's future releases what it holds, by its contract.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        ended
    }
}

/// A connection that was there is there no more; one that never was keeps the word of whoever tried.
fn tell_state(state: &watch::Sender<SessionState>, ended: &Disconnect) {
    state.send_if_modified(|it| {
        if *it != SessionState::Connected {
            return false;
        }
        *it = match &ended.reason {
            DisconnectReason::Stopped => SessionState::Disconnected,
            DisconnectReason::PeerClosed
            | DisconnectReason::NotStarted(_)
            | DisconnectReason::Stalled(_)
            | DisconnectReason::Broken(_) => SessionState::Error(ended.to_string()),
        };
        true
    });
}

/// Tells the end, also when the wire's task panics or is cut off.
struct Driver {
    engine: Arc<Engine>,
    tell_end: watch::Sender<Option<Arc<Disconnect>>>,
    state: watch::Sender<SessionState>,
}

impl Driver {
    fn tell(&self, mut ended: Disconnect) {
        if self.tell_end.borrow().is_some() {
            return;
        }
        // The engine also counts what looked like a message and was none.
        ended.evidence.noise_bytes = self.engine.counters().0;
        let ended = Arc::new(ended);
        self.engine.close(Arc::clone(&ended));
        tell_state(&self.state, &ended);
        self.tell_end.send_replace(Some(ended));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.tell(Disconnect::new(DisconnectReason::Broken("the connection was cut off".to_owned())));
    }
}
