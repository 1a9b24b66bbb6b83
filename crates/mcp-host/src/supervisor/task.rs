//! The supervisor task owns the desired state and all running instances.
//!
//! The state machine makes the decisions. This task passes it events in batches, publishes one snapshot per batch, and
//! then executes the actions. The tasks that it spawns are in its `JoinSet`, so none outlives it.
//!
//! A dialog is a conversation with leased instances of its own. A lease is an instance that is reserved for one dialog.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use mcp_host_config::ResolvedServer;
use mcp_host_model::ErrorKind;
use mcp_host_registry::ReloadPlan;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;

use crate::config::desired::ConfigUpdate;
use crate::error::HostError;
use crate::notifications::subscriptions::InstanceKey;
use crate::state::event::HostEventKind;
use crate::supervisor::clock_jump::ClockMonitor;
use crate::supervisor::command::SupervisorCommand;
use crate::supervisor::connector::{Connector, ListSource};
use crate::supervisor::dialog_end::DialogEnd;
use crate::supervisor::event_batcher::EventBatcher;
use crate::supervisor::instance::{CloseLimits, Instance, InstanceRef};
use crate::supervisor::instance_watch::watch;
use crate::supervisor::machine::{
    LeaseReply, Machine, MachineAction, MachineEvent, MachineSettings, StartTicket, WaiterId,
    saturating_after,
};
use crate::supervisor::publishers::Publishers;
use crate::telemetry::metrics::{LeaseGauge, ReloadOutcome};

/// The state machine, the instances and the tasks of a host.
pub(crate) struct SupervisorTask {
    machine: Machine<InstanceRef>,
    connector: Arc<Connector>,
    publishers: Publishers,
    clocks: ClockMonitor,
    limits: CloseLimits,
    /// The spawned tasks. Each returns an event for the machine, if it has one.
    tasks: JoinSet<Option<MachineEvent<InstanceRef>>>,
    tasks_by_id: HashMap<Id, (TaskKind, AbortHandle)>,
    /// The pending replies to lease requests.
    waiters: HashMap<WaiterId, oneshot::Sender<LeaseReply<InstanceRef>>>,
    last_waiter: WaiterId,
    /// The metric of the number of leases.
    lease_gauge: LeaseGauge,
    /// Has one permit, the turn to begin a start.
    start_turns: Arc<Semaphore>,
    /// The started instances. Those that no longer exist are removed with the next start.
    instances: Vec<Weak<Instance>>,
    /// The deadline of the shutdown; `None` until it begins.
    shutdown_deadline: watch::Sender<Option<Instant>>,
}

/// The input channels of the supervisor task.
pub(crate) struct SupervisorInputs {
    pub(crate) commands: mpsc::Receiver<SupervisorCommand>,
    /// The ends of dialogs that were sent while the command queue was full.
    pub(crate) overflow: mpsc::UnboundedReceiver<DialogEnd>,
    pub(crate) config_updates: mpsc::Receiver<ConfigUpdate>,
}

/// The events of one round of the task, and the replies to send after it.
#[derive(Default)]
struct Batch {
    events: Vec<MachineEvent<InstanceRef>>,
    replies: Vec<oneshot::Sender<()>>,
    /// The reply to an update from configuration files.
    update_reply: Option<oneshot::Sender<ReloadPlan>>,
}

/// The purpose of a task.
enum TaskKind {
    /// Starts an instance.
    Start(StartTicket),
    /// Waits for changed lists or the end of an instance.
    Watch(StartTicket),
    /// Pings an instance.
    Probe(StartTicket),
    /// Sends log levels and subscriptions to instances.
    ApplySettings,
    /// Closes an instance, then replies to the waiter.
    Retire(Option<WaiterId>),
}

impl SupervisorTask {
    pub(crate) fn new(
        settings: MachineSettings,
        connector: Arc<Connector>,
        publishers: Publishers,
        clocks: ClockMonitor,
        limits: CloseLimits,
    ) -> SupervisorTask {
        SupervisorTask {
            machine: Machine::new(settings),
            connector,
            publishers,
            clocks,
            limits,
            tasks: JoinSet::new(),
            tasks_by_id: HashMap::new(),
            waiters: HashMap::new(),
            last_waiter: 0,
            lease_gauge: LeaseGauge::default(),
            start_turns: Arc::new(Semaphore::new(1)),
            instances: Vec::new(),
            shutdown_deadline: watch::Sender::new(None),
        }
    }

    /// Runs until a shutdown is complete or the host is dropped.
    pub(crate) async fn run(mut self, mut inputs: SupervisorInputs) {
        self.kill_orphans().await;
        let mut batcher = EventBatcher::new();
        loop {
            let Some(batch) = self.receive(&mut inputs, batcher.due()).await else { return };
            let Batch { events, replies, update_reply } = batch;
            batcher.extend(events);
            let now = Instant::now();
            let is_starting = self.tasks_by_id.values().any(|it| matches!(it.0, TaskKind::Start(_)));
            if is_starting && batcher.should_wait(|it| self.machine.lease_dialog(it).is_some(), now) {
                continue;
            }
            let mut events = batcher.take(now);
            events.extend(self.clocks.check().map(MachineEvent::ClockJumped));
            events.push(MachineEvent::Tick);
            let is_closing = events.iter().any(|event| matches!(event, MachineEvent::Close));
            let started = self.register_effects(&events);
            let (mut actions, mut plan) = (Vec::new(), None);
            for event in events {
                let is_reload = matches!(event, MachineEvent::Configure(_));
                actions.extend(self.machine.handle(event, now));
                if is_reload {
                    // An update precedes the commands of its batch, so its plan is the first.
                    plan.get_or_insert(self.machine.take_reload_plan());
                }
            }
            self.publish();
            batcher.record_publication(now.elapsed());
            for action in actions {
                self.execute(action);
            }
            for instance in started {
                self.apply_settings(instance);
            }
            // The receivers may have stopped waiting.
            for reply in replies {
                let _ = reply.send(());
            }
            if let Some(reply) = update_reply {
                let _ = reply.send(plan.unwrap_or_default());
            }
            if is_closing {
                self.publishers.expect_shutdown();
                return self.shut_down().await;
            }
        }
    }

    /// Waits for input, for the next time that the machine needs, or until the pending batch is `due`. Returns
    /// everything that has arrived; `None` if the host was dropped, which drops everything.
    async fn receive(&mut self, inputs: &mut SupervisorInputs, due: Option<Instant>) -> Option<Batch> {
        let SupervisorInputs { commands, overflow, config_updates } = inputs;
        let subscriptions = Arc::clone(&self.connector.shared.subscriptions);
        let (mut batch, mut ends) = (Batch::default(), Vec::new());
        // A pending batch is due so soon that the clock check can wait.
        let clocks = self.clocks.next_check();
        let next = self.machine.next_wake().map_or(clocks, |it| it.min(clocks));
        let wake = due.unwrap_or(next);
        tokio::select! {
            command = commands.recv() => self.accept_command(command?, &mut batch),
            Some(update) = config_updates.recv() => self.accept_update(update, &mut batch),
            Some(dialog) = overflow.recv() => ends.push(dialog),
            keys = subscriptions.take_removed() => self.sync_subscriptions(&keys),
            Some(joined) = self.tasks.join_next_with_id() => batch.events.extend(self.handle_finished_task(joined)),
            () = tokio::time::sleep_until(wake) => {}
        }
        // Everything that has arrived is published together. Dialog ends from the overflow channel are received
        // first and handled after the commands queued before them.
        while let Ok(dialog) = overflow.try_recv() {
            ends.push(dialog);
        }
        while let Ok(command) = commands.try_recv() {
            self.accept_command(command, &mut batch);
        }
        batch.events.extend(ends.into_iter().map(MachineEvent::DialogEnded));
        while let Some(joined) = self.tasks.try_join_next_with_id() {
            batch.events.extend(self.handle_finished_task(joined));
        }
        Some(batch)
    }

    /// Registers the instances that have started, and the desired servers. Returns the instances.
    fn register_effects(&mut self, events: &[MachineEvent<InstanceRef>]) -> Vec<InstanceRef> {
        let mut started_now = Vec::new();
        for event in events {
            if let MachineEvent::Started(_, started) = event {
                self.instances.retain(|it| it.strong_count() > 0);
                self.instances.push(Arc::downgrade(&started.instance));
                started_now.push(Arc::clone(&started.instance));
            }
            if let MachineEvent::SetApproval(approval) = event {
                self.connector.shared.approval.write().clone_from(approval);
            }
            if let MachineEvent::Configure(wanted) = event {
                self.publishers.set_desired(wanted);
            }
        }
        started_now
    }

    /// Sends log levels and subscriptions to a new instance.
    fn apply_settings(&mut self, instance: InstanceRef) {
        let connector = Arc::clone(&self.connector);
        self.spawn(TaskKind::ApplySettings, async move {
            connector.apply_settings(&instance).await;
            None
        });
    }

    /// Removes ended subscriptions from the instances with these keys.
    fn sync_subscriptions(&mut self, keys: &HashSet<InstanceKey>) {
        let running = self.instances.iter().filter_map(Weak::upgrade);
        let affected: Vec<InstanceRef> = running.filter(|it| keys.contains(&it.key())).collect();
        for instance in affected.into_iter().filter(|it| !it.is_over()) {
            let connector = Arc::clone(&self.connector);
            self.spawn(TaskKind::ApplySettings, async move {
                instance.sync_subscriptions(&connector.shared.subscriptions).await;
                None
            });
        }
    }

    /// Ends the processes of hosts that crashed or were killed.
    async fn kill_orphans(&self) {
        let Some(receipts) = self.connector.receipts.clone() else { return };
        match tokio::task::spawn_blocking(move || receipts.reap()).await {
            Ok(Ok(reaped)) => {
                for process in reaped {
                    tracing::warn!(
                        command = process.command,
                        processes = process.processes,
                        "ended processes of a killed host"
                    );
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the process receipts of killed hosts"),
            Err(error) => tracing::error!(%error, "the search for processes of killed hosts failed"),
        }
    }

    /// Publishes what has changed: the snapshot, the leases and the host events.
    fn publish(&mut self) {
        let at = self.clocks.wall();
        if self.machine.is_changed() {
            self.publish_snapshot(at);
        }
        if let Some(table) = self.machine.lease_table() {
            self.lease_gauge.set(table.active.len());
            self.publishers.publish_leases(table);
        }
        // Sent after publication, so that a receiver finds the new state.
        for event in self.machine.take_events(at) {
            tracing::debug!(server = event.server, kind = ?event.kind, "host event");
            if matches!(event.kind, HostEventKind::Starting { failures } if failures > 0) {
                self.connector.shared.metrics.record_restart(&event.server);
            }
            self.publishers.send_event(event);
        }
    }

    fn publish_snapshot(&mut self, at: SystemTime) {
        let routing_table = self.machine.next_routing_table(at);
        let snapshot = &routing_table.snapshot;
        tracing::debug!(
            generation = snapshot.generation,
            tools = snapshot.catalog.tools().len(),
            "published"
        );
        self.connector.shared.metrics.set_generation(snapshot.generation);
        self.publishers.publish(routing_table);
    }

    fn execute(&mut self, action: MachineAction<InstanceRef>) {
        match action {
            MachineAction::Start(ticket, server) => self.start(ticket, server, ListSource::Read),
            MachineAction::StartLeased(ticket, server, lists) => {
                self.start(ticket, server, ListSource::Known(lists));
            }
            MachineAction::Reply(waiter, reply) => self.reply(waiter, reply),
            MachineAction::CheckIdle(ticket, instance) => {
                // A task keeps its instance, also between the requests about it.
                let has_tasks = self.connector.shared.tasks.has_tasks(&instance, Instant::now());
                let idle_since = instance.idle_since().filter(|_| !has_tasks);
                let event = MachineEvent::IdleChecked(ticket, idle_since);
                let actions = self.machine.handle(event, Instant::now());
                self.publish();
                for action in actions {
                    self.execute(action);
                }
            }
            MachineAction::AbortStart(ticket) => {
                for (kind, handle) in self.tasks_by_id.values() {
                    if matches!(kind, TaskKind::Start(it) if *it == ticket) {
                        handle.abort();
                    }
                }
            }
            MachineAction::Watch { ticket, instance, listing } => {
                let (kind, shared) = (TaskKind::Watch(ticket.clone()), Arc::clone(&self.connector.shared));
                let is_supervised = self.machine.is_supervised();
                self.spawn(kind, async move {
                    Some(watch(ticket, &instance, *listing, &shared.metrics, is_supervised).await)
                });
            }
            MachineAction::SetLimits(instance, server) => instance.set_limits(server),
            MachineAction::Probe { ticket, instance, timeout } => {
                self.spawn(TaskKind::Probe(ticket.clone()), async move {
                    Some(match instance.ping(timeout).await {
                        Ok(()) => MachineEvent::ProbeSucceeded(ticket),
                        Err(failure) => MachineEvent::outage(ticket, failure),
                    })
                });
            }
            MachineAction::Retire { instance, drain, waiter } => {
                // Immediately, not when the task first runs: a call with the old routing table must be refused.
                instance.close_gate(drain);
                let (limits, shutdown) = (self.limits, self.shutdown_deadline.subscribe());
                let shared = Arc::clone(&self.connector.shared);
                self.spawn(TaskKind::Retire(waiter), async move {
                    instance.drain_and_close(drain, limits, &shared.tasks, shutdown).await;
                    None
                });
            }
        }
    }

    /// Spawns a start of a server. Many starts begin one after the other, and other tasks run in between, so that calls
    /// need not wait for all of them. A leased start, for which a call waits, begins at once.
    fn start(&mut self, ticket: StartTicket, server: Arc<ResolvedServer>, lists: ListSource) {
        let connector = Arc::clone(&self.connector);
        let dialog = self.machine.lease_dialog(&ticket);
        let turns = Some(Arc::clone(&self.start_turns)).filter(|_| dialog.is_none());
        self.spawn(TaskKind::Start(ticket.clone()), async move {
            if let Some(turns) = turns {
                let turn = turns.acquire().await;
                tokio::task::yield_now().await;
                drop(turn);
            }
            Some(match connector.connect(&server, lists, dialog).await {
                Ok(started) => MachineEvent::Started(ticket, started),
                Err(failure) => MachineEvent::StartFailed(ticket, failure),
            })
        });
    }

    fn spawn(
        &mut self,
        kind: TaskKind,
        task: impl Future<Output = Option<MachineEvent<InstanceRef>>> + Send + 'static,
    ) {
        // Boxed, because a spawned future is moved several times.
        let handle = self.tasks.spawn(Box::pin(task));
        self.tasks_by_id.insert(handle.id(), (kind, handle));
    }

    /// Returns the event of a task that has ended. A task that panicked becomes a failure of its server.
    fn handle_finished_task(
        &mut self,
        joined: Result<(Id, Option<MachineEvent<InstanceRef>>), JoinError>,
    ) -> Option<MachineEvent<InstanceRef>> {
        let error = match joined {
            Ok((id, event)) => {
                if let Some((TaskKind::Retire(Some(waiter)), _)) = self.tasks_by_id.remove(&id) {
                    self.reply(waiter, LeaseReply::Released);
                }
                return event;
            }
            Err(error) => error,
        };
        let (kind, _) = self.tasks_by_id.remove(&error.id())?;
        if error.is_cancelled() {
            return None;
        }
        tracing::error!(%error, "a task of the host failed");
        let failure = |ticket: &StartTicket| {
            let detail = "its task failed because of a bug in this host";
            HostError::of_server(ErrorKind::Connection, ticket.server.as_str(), detail)
        };
        match kind {
            TaskKind::Start(ticket) => Some(MachineEvent::StartFailed(ticket.clone(), failure(&ticket))),
            TaskKind::Watch(ticket) => Some(MachineEvent::outage(ticket.clone(), failure(&ticket))),
            TaskKind::Probe(ticket) => Some(MachineEvent::ProbeSucceeded(ticket)),
            TaskKind::ApplySettings | TaskKind::Retire(_) => None,
        }
    }

    /// Adds a command to the batch.
    fn accept_command(&mut self, command: SupervisorCommand, batch: &mut Batch) {
        let Batch { events, replies, .. } = batch;
        match command {
            SupervisorCommand::Event(event, reply) => {
                if matches!(*event, MachineEvent::Configure(_)) {
                    self.connector.shared.metrics.record_reload(ReloadOutcome::Applied);
                }
                events.push(*event);
                replies.extend(reply);
            }
            SupervisorCommand::Lease { request, ends_seen, reply } => {
                let waiter = self.register_waiter(reply);
                events.push(MachineEvent::RequestLease { request, ends_seen, waiter });
            }
            SupervisorCommand::Release(dialog, server, reply) => {
                let waiter = self.register_waiter(reply);
                events.push(MachineEvent::ReleaseLease { dialog, server, waiter });
            }
        }
    }

    /// Adds an update from configuration files to the batch.
    fn accept_update(&mut self, update: ConfigUpdate, batch: &mut Batch) {
        let ConfigUpdate { desired, approval, problems, outcome, published } = update;
        if let Some(outcome) = outcome {
            self.connector.shared.metrics.record_reload(outcome);
        }
        batch.events.push(MachineEvent::SetFileProblems(problems));
        batch.events.extend(approval.map(|it| MachineEvent::SetApproval(Some(it))));
        batch.events.extend(desired.map(MachineEvent::Configure));
        batch.update_reply = Some(published);
    }

    /// Registers a reply that the machine will send by its id.
    fn register_waiter(&mut self, reply: oneshot::Sender<LeaseReply<InstanceRef>>) -> WaiterId {
        self.last_waiter += 1;
        self.waiters.insert(self.last_waiter, reply);
        self.last_waiter
    }

    fn reply(&mut self, waiter: WaiterId, reply: LeaseReply<InstanceRef>) {
        if let Some(sender) = self.waiters.remove(&waiter) {
            // The receiver may have stopped waiting.
            let _ = sender.send(reply);
        }
    }

    /// Waits until all instances are closed. Aborts all other tasks.
    async fn shut_down(mut self) {
        self.shutdown_deadline.send_replace(Some(saturating_after(Instant::now(), self.limits.grace)));
        for (kind, handle) in self.tasks_by_id.values() {
            if !matches!(kind, TaskKind::Retire(_)) {
                handle.abort();
            }
        }
        while let Some(joined) = self.tasks.join_next_with_id().await {
            // A start may have finished before its abort: its instance is closed as well.
            let event = self.handle_finished_task(joined);
            let now = Instant::now();
            let actions: Vec<_> = event.into_iter().flat_map(|it| self.machine.handle(it, now)).collect();
            for action in actions {
                self.execute(action);
            }
        }
        self.connector.connections.close().await;
    }
}

impl Drop for SupervisorTask {
    /// Ends the remaining instances, even if callers still hold them: the host was dropped or has shut down.
    fn drop(&mut self) {
        self.connector.shared.notifications.close();
        self.connector.connections.abort();
        // After a panic the machine is not used; `Publishers` reports the failure.
        if !self.publishers.is_shutdown_expected() && !std::thread::panicking() {
            self.publishers.expect_shutdown();
            // Publishes the state after a shutdown. The actions are not needed: the transports are aborted.
            let _ = self.machine.handle(MachineEvent::Close, Instant::now());
            self.publish();
        }
        for instance in self.instances.drain(..).filter_map(|it| it.upgrade()) {
            instance.abort();
        }
    }
}
