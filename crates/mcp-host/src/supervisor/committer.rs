//! The one task that owns what is wanted and what runs.
//!
//! It decides nothing: the machine does. This shell feeds it events in batches, publishes one snapshot for each batch,
//! and only then carries out its actions. All tasks of a host are in its one `JoinSet`, so nothing outlives it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use mcp_model::{ErrorKind, ServerId};
use mcp_registry::{Problem, ViewFilter};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;

use crate::config::approval::Approval;
use crate::config::desired::DesiredServers;
use crate::event::{HostEvent, HostEventKind};
use crate::failure::HostError;
use crate::metrics::{Leased, Reload};
use crate::notifications::subscriptions::Post;
use crate::supervisor::clock_jump::Clocks;
use crate::supervisor::connector::{Connector, Wish};
use crate::supervisor::dialog::DialogEnd;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::follow::follow;
use crate::supervisor::instance::Instance;
use crate::supervisor::machine::{
    Action, Answer, Event, Machine, News, Settings, Ticket, Waiter, Wanting, later,
};
use crate::supervisor::pending::Pending;
use crate::supervisor::publishers::Outlets;

/// What a running server is to the machine.
pub(crate) type Shared = Arc<Instance>;

/// Something the host asks of its committer.
pub(crate) enum Command {
    /// Run these servers; answers when that is published.
    Apply(Box<DesiredServers>, oneshot::Sender<()>),
    /// Run these servers if they are given, and know what is wrong with where they come from; answers when both is
    /// published.
    Adopt {
        /// What to run; as before where `None`.
        wanted: Option<Box<DesiredServers>>,
        /// What is approved of servers; as before where `None`.
        approval: Option<Approval>,
        /// Everything that is wrong with the files.
        problems: Vec<Problem>,
        /// What became of what the files said anew, if they did.
        outcome: Option<Reload>,
        /// The answer.
        answer: oneshot::Sender<()>,
    },
    /// A call found something out that does not wait for an answer.
    Found(Event<Shared>),
    /// A dialog is stopped, or may go on; answers when that is published.
    Dialog(Event<Shared>, oneshot::Sender<()>),
    /// These views of the catalog are in use; answers when that is published.
    Views(Vec<ViewFilter>, oneshot::Sender<()>),
    /// This is approved of servers; answers when that is published.
    Approve(Option<Approval>, oneshot::Sender<()>),
    /// A call of a dialog needs an instance.
    Lease(Wanting, u64, oneshot::Sender<Answer<Shared>>),
    /// A dialog gives an instance back; answers when it is closed.
    Release(DialogId, ServerId, oneshot::Sender<Answer<Shared>>),
    /// Start this server anew; answers when that is published.
    Restart(ServerId, oneshot::Sender<()>),
    /// Let this server run no more; answers when that is published.
    Disable(ServerId, oneshot::Sender<()>),
    /// End everything, then yourself.
    Shutdown,
}

/// The task's state.
pub(crate) struct Committer {
    machine: Machine<Shared>,
    connector: Arc<Connector>,
    outlets: Outlets,
    clocks: Clocks,
    grace: Duration,
    tasks: JoinSet<Option<Event<Shared>>>,
    jobs: HashMap<Id, (Job, AbortHandle)>,
    /// Who waits for an answer about a lease.
    waiters: HashMap<Waiter, oneshot::Sender<Answer<Shared>>>,
    last_waiter: Waiter,
    /// How many leases there are, as was last told.
    held: Leased,
    /// Everything that was started and is still known to somebody.
    instances: Vec<Weak<Instance>>,
    /// When everything that runs is over, once that is known.
    end: watch::Sender<Option<Instant>>,
}

/// What comes to a committer from outside.
pub(crate) struct Inputs {
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) over: mpsc::UnboundedReceiver<DialogEnd>,
}

/// One round of work.
#[derive(Default)]
struct Batch {
    events: Vec<Event<Shared>>,
    answers: Vec<oneshot::Sender<()>>,
}

/// What a task is for.
enum Job {
    Start(Ticket),
    Follow(Ticket),
    Probe(Ticket),
    Settle,
    Retire(Option<Waiter>),
}

impl Committer {
    pub(crate) fn new(
        settings: Settings,
        connector: Arc<Connector>,
        outlets: Outlets,
        clocks: Clocks,
        grace: Duration,
    ) -> Committer {
        let machine = Machine::new(settings);
        Committer {
            machine,
            connector,
            outlets,
            clocks,
            grace,
            tasks: JoinSet::new(),
            jobs: HashMap::new(),
            waiters: HashMap::new(),
            last_waiter: 0,
            held: Leased::default(),
            instances: Vec::new(),
            end: watch::Sender::new(None),
        }
    }

    /// Works until it is told to shut down and everything has ended, or the host is gone.
    pub(crate) async fn run(mut self, inputs: Inputs) {
        let Inputs { mut commands, mut over } = inputs;
        self.reap().await;
        let (mut closing, mut pending) = (false, Pending::new());
        let subscriptions = Arc::clone(&self.connector.subscriptions);
        loop {
            let mut batch = Batch::default();
            let mut ends = Vec::new();
            // Where something is due, that is so soon that the clocks can wait.
            let clocks = self.clocks.next();
            let next = self.machine.next_wake().map_or(clocks, |it| it.min(clocks));
            let wake = pending.due().unwrap_or(next);
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.take(command, &mut batch),
                    // The host was dropped: whatever runs is dropped with this task.
                    None => return,
                },
                Some(dialog) = over.recv() => ends.push(dialog),
                posts = subscriptions.left() => self.leave(&posts),
                Some(joined) = self.tasks.join_next_with_id() => batch.events.extend(self.joined(joined)),
                () = tokio::time::sleep_until(wake) => {}
            }
            // Whatever has happened meanwhile belongs to the same publication. The ends of dialogs that found no room
            // among the commands are looked at first, and come after what was queued before them.
            while let Ok(dialog) = over.try_recv() {
                ends.push(dialog);
            }
            while let Ok(command) = commands.try_recv() {
                self.take(command, &mut batch);
            }
            batch.events.extend(ends.into_iter().map(Event::DialogOver));
            while let Some(joined) = self.tasks.try_join_next_with_id() {
                batch.events.extend(self.joined(joined));
            }
            let Batch { events, answers } = batch;
            pending.extend(events);
            let now = Instant::now();
            let is_starting = self.jobs.values().any(|it| matches!(it.0, Job::Start(_)));
            if is_starting && pending.waits(|it| self.machine.lessee(it).is_some(), now) {
                continue;
            }
            let mut events = pending.take(now);
            events.extend(self.clocks.look().map(Event::Woke).into_iter().chain([Event::Tick]));
            let mut started_now = Vec::new();
            for event in &events {
                if let Event::Ready(_, started) = event {
                    self.instances.retain(|it| it.strong_count() > 0);
                    self.instances.push(Arc::downgrade(&started.instance));
                    started_now.push(Arc::clone(&started.instance));
                }
                if let Event::Config(wanted) = event {
                    self.outlets.wanted(wanted);
                }
                closing |= matches!(event, Event::Close);
            }
            let actions: Vec<_> = events.into_iter().flat_map(|it| self.machine.handle(it, now)).collect();
            self.publish();
            for action in actions {
                self.carry_out(action);
            }
            for instance in started_now {
                self.settle(instance);
            }
            for answer in answers {
                // Whoever asked may have stopped waiting.
                let _ = answer.send(());
            }
            if closing {
                self.outlets.end_asked();
                return self.wind_up().await;
            }
        }
    }

    /// Has an instance that was started do what is wanted of it beside calls.
    fn settle(&mut self, instance: Shared) {
        let connector = Arc::clone(&self.connector);
        self.spawn(Job::Settle, async move {
            connector.settle(&instance).await;
            None
        });
    }

    /// Has those that run at these posts tell no more of what nobody wants any more.
    fn leave(&mut self, posts: &HashSet<Post>) {
        let running = self.instances.iter().filter_map(Weak::upgrade);
        let meant: Vec<Shared> = running.filter(|it| posts.contains(&it.post())).collect();
        for instance in meant.into_iter().filter(|it| !it.is_over()) {
            let connector = Arc::clone(&self.connector);
            self.spawn(Job::Settle, async move {
                instance.follow_subscriptions(&connector.subscriptions).await;
                None
            });
        }
    }

    /// Ends what hosts that died have left behind.
    async fn reap(&self) {
        let Some(receipts) = self.connector.receipts.clone() else { return };
        match tokio::task::spawn_blocking(move || receipts.reap()).await {
            Ok(Ok(reaped)) => {
                for it in reaped {
                    tracing::warn!(
                        command = it.command,
                        processes = it.processes,
                        "left behind by a host that died; ended"
                    );
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "receipts of dead hosts cannot be read"),
            Err(error) => tracing::error!(%error, "looking for what dead hosts left behind failed"),
        }
    }

    fn publish(&mut self) {
        let at = self.clocks.wall();
        if self.machine.is_changed() {
            self.publish_snapshot(at);
        }
        if let Some(table) = self.machine.lease_table() {
            self.held.are(table.held.len());
            self.outlets.lease(table);
        }
        // Told after it is published, so that who hears of it finds it.
        for News { server, what } in self.machine.take_news() {
            tracing::debug!(server, ?what, "it happened");
            if matches!(what, HostEventKind::Starting { failures } if failures > 0) {
                self.connector.meter.restarted(&server);
            }
            self.outlets.tell(HostEvent { at, server, kind: what });
        }
    }

    fn publish_snapshot(&mut self, at: SystemTime) {
        let snapshot = self.machine.snapshot(at);
        let published = &snapshot.published;
        tracing::debug!(
            generation = published.generation,
            tools = published.catalog.tools().len(),
            "published"
        );
        self.connector.meter.published(published.generation);
        self.outlets.publish(snapshot);
    }

    fn carry_out(&mut self, action: Action<Shared>) {
        match action {
            Action::Start(ticket, server) => {
                let connector = Arc::clone(&self.connector);
                let job = Job::Start(ticket.clone());
                self.spawn(job, async move {
                    Some(match connector.connect(&server, Wish::Read, None).await {
                        Ok(started) => Event::Ready(ticket, started),
                        Err(failure) => Event::Failed(ticket, failure),
                    })
                });
            }
            Action::Open(ticket, server, lists) => {
                let connector = Arc::clone(&self.connector);
                let job = Job::Start(ticket.clone());
                let dialog = self.machine.lessee(&ticket);
                self.spawn(job, async move {
                    Some(match connector.connect(&server, Wish::Known(lists), dialog).await {
                        Ok(started) => Event::Ready(ticket, started),
                        Err(failure) => Event::Failed(ticket, failure),
                    })
                });
            }
            Action::Answer(waiter, answer) => self.answer(waiter, answer),
            Action::Look(ticket, instance) => {
                let event = Event::Seen(ticket, instance.unused());
                let actions = self.machine.handle(event, Instant::now());
                self.publish();
                for action in actions {
                    self.carry_out(action);
                }
            }
            Action::Abort(ticket) => {
                for (job, handle) in self.jobs.values() {
                    if matches!(job, Job::Start(it) if *it == ticket) {
                        handle.abort();
                    }
                }
            }
            Action::Follow { ticket, instance, listed } => {
                let job = Job::Follow(ticket.clone());
                let meter = Arc::clone(&self.connector.meter);
                self.spawn(job, async move { Some(follow(ticket, &instance, listed, &meter).await) });
            }
            Action::Limit(instance, server) => instance.limit(server),
            Action::Probe { ticket, instance, within } => {
                self.spawn(Job::Probe(ticket.clone()), async move {
                    Some(match instance.probe(within).await {
                        Ok(()) => Event::Alive(ticket),
                        Err(failure) => Event::Died(ticket, failure),
                    })
                });
            }
            Action::Retire { instance, drain, waiter } => {
                // At once, not when the task comes to run: a call that still holds the old snapshot is refused.
                instance.shut(drain);
                let (grace, end) = (self.grace, self.end.subscribe());
                self.spawn(Job::Retire(waiter), async move {
                    instance.drain_and_close(drain, grace, end).await;
                    None
                });
            }
        }
    }

    fn spawn(&mut self, job: Job, task: impl Future<Output = Option<Event<Shared>>> + Send + 'static) {
        // Boxed, for it is large, and what is spawned is copied eight times on its way.
        let handle = self.tasks.spawn(Box::pin(task));
        self.jobs.insert(handle.id(), (job, handle));
    }

    fn joined(&mut self, joined: Result<(Id, Option<Event<Shared>>), JoinError>) -> Option<Event<Shared>> {
        let error = match joined {
            Ok((id, event)) => {
                if let Some((Job::Retire(Some(waiter)), _)) = self.jobs.remove(&id) {
                    self.answer(waiter, Answer::Released);
                }
                return event;
            }
            Err(error) => error,
        };
        let (job, _) = self.jobs.remove(&error.id())?;
        if error.is_cancelled() {
            return None;
        }
        tracing::error!(%error, "a task of the host failed");
        let failure = |ticket: &Ticket| {
            let message = format!("server '{}': a defect of this host ended its task", ticket.server);
            HostError::new(ErrorKind::Connection, message)
        };
        match job {
            Job::Start(ticket) => Some(Event::Failed(ticket.clone(), failure(&ticket))),
            Job::Follow(ticket) => Some(Event::Died(ticket.clone(), failure(&ticket))),
            Job::Probe(ticket) => Some(Event::Alive(ticket)),
            Job::Settle | Job::Retire(_) => None,
        }
    }

    fn take(&mut self, command: Command, batch: &mut Batch) {
        let Batch { events, answers } = batch;
        match command {
            Command::Apply(wanted, answer) => {
                self.connector.meter.reloaded(Reload::Taken);
                events.push(Event::Config(*wanted));
                answers.push(answer);
            }
            Command::Adopt { wanted, approval, problems, outcome, answer } => {
                if let Some(outcome) = outcome {
                    self.connector.meter.reloaded(outcome);
                }
                events.push(Event::Source(problems));
                events.extend(approval.map(|it| Event::Approved(Some(it))));
                events.extend(wanted.map(|it| Event::Config(*it)));
                answers.push(answer);
            }
            Command::Found(event) => events.push(event),
            Command::Dialog(event, answer) => {
                events.push(event);
                answers.push(answer);
            }
            Command::Views(views, answer) => {
                events.push(Event::Views(views));
                answers.push(answer);
            }
            Command::Approve(approval, answer) => {
                events.push(Event::Approved(approval));
                answers.push(answer);
            }
            Command::Lease(wanting, asked, answer) => {
                events.push(Event::Lease(wanting, asked, self.waits(answer)));
            }
            Command::Release(dialog, server, answer) => {
                events.push(Event::Release(dialog, server, self.waits(answer)));
            }
            Command::Restart(server, answer) => {
                events.push(Event::Restart(server));
                answers.push(answer);
            }
            Command::Disable(server, answer) => {
                events.push(Event::Disable(server));
                answers.push(answer);
            }
            Command::Shutdown => events.push(Event::Close),
        }
    }

    fn waits(&mut self, answer: oneshot::Sender<Answer<Shared>>) -> Waiter {
        self.last_waiter += 1;
        self.waiters.insert(self.last_waiter, answer);
        self.last_waiter
    }

    fn answer(&mut self, waiter: Waiter, answer: Answer<Shared>) {
        if let Some(sender) = self.waiters.remove(&waiter) {
            // Whoever asked may have stopped waiting.
            let _ = sender.send(answer);
        }
    }

    /// Waits for what is being closed; everything else is given up.
    async fn wind_up(mut self) {
        self.end.send_replace(Some(later(Instant::now(), self.grace)));
        for (job, handle) in self.jobs.values() {
            match job {
                Job::Start(_) | Job::Follow(_) | Job::Probe(_) | Job::Settle => handle.abort(),
                Job::Retire(_) => {}
            }
        }
        while let Some(joined) = self.tasks.join_next_with_id().await {
            // A start may have finished in the moment it was given up: what it started is closed as well.
            let event = self.joined(joined);
            let now = Instant::now();
            let actions: Vec<_> = event.into_iter().flat_map(|it| self.machine.handle(it, now)).collect();
            for action in actions {
                self.carry_out(action);
            }
        }
        self.connector.wires.ended().await;
    }
}

impl Drop for Committer {
    /// Its host is gone, or has shut down. Whatever still runs ends now, whoever holds it: a dialog, or a turn.
    fn drop(&mut self) {
        self.connector.hub.end();
        self.connector.wires.cut();
        // A machine that has panicked is not asked again: the outlets have a word for that.
        if !self.outlets.is_end_asked() && !std::thread::panicking() {
            self.outlets.end_asked();
            // What it would have done is done here, all at once.
            let _ = self.machine.handle(Event::Close, Instant::now());
            self.publish();
        }
        for instance in self.instances.drain(..).filter_map(|it| it.upgrade()) {
            instance.cut();
        }
    }
}
