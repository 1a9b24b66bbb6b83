//! The one task that owns what is wanted and what runs.
//!
//! It decides nothing: the machine does. This shell feeds it events in batches, publishes one snapshot for each batch,
//! and only then carries out its actions. All tasks of a host are in its one `JoinSet`, so nothing outlives it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_model::{Kind, ServerId};
use mcp_registry::{Builtins, Problem};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::connector::Connector;
use crate::follow::follow;
use crate::instance::Instance;
use crate::machine::{Action, Event, Machine, Ticket};
use crate::outlets::Outlets;
use crate::{Failure, Wanted};

/// What a running server is to the machine.
pub(crate) type Shared = Arc<Instance>;

/// Something the host asks of its committer.
pub(crate) enum Command {
    /// Run these servers; answers when that is published.
    Apply(Box<Wanted>, oneshot::Sender<()>),
    /// Run these servers if they are given, and know what is wrong with where they come from; answers when both is
    /// published.
    Adopt {
        /// What to run; as before where `None`.
        wanted: Option<Box<Wanted>>,
        /// Everything that is wrong with the files.
        problems: Vec<Problem>,
        /// The answer.
        answer: oneshot::Sender<()>,
    },
    /// The arguments of a tool could not be checked.
    Unvalidated {
        /// The tool's server.
        server: ServerId,
        /// The tool's own name.
        tool: String,
        /// Why not.
        reason: String,
    },
    /// End everything, then yourself.
    Shutdown,
}

/// The task's state.
pub(crate) struct Committer {
    machine: Machine<Shared>,
    connector: Arc<Connector>,
    outlets: Outlets,
    grace: Duration,
    tasks: JoinSet<Option<Event<Shared>>>,
    jobs: HashMap<Id, (Job, AbortHandle)>,
}

/// What a task is for.
enum Job {
    Start(Ticket),
    Follow(Ticket),
    Retire,
}

impl Committer {
    pub(crate) fn new(
        builtins: Builtins,
        connector: Arc<Connector>,
        outlets: Outlets,
        grace: Duration,
    ) -> Committer {
        let machine = Machine::new(builtins);
        Committer { machine, connector, outlets, grace, tasks: JoinSet::new(), jobs: HashMap::new() }
    }

    /// Works until it is told to shut down and everything has ended, or the host is gone.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        self.reap().await;
        let mut closing = false;
        loop {
            let mut events = Vec::new();
            let mut answers = Vec::new();
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => take(command, &mut events, &mut answers),
                    // The host was dropped: whatever runs is dropped with this task.
                    None => return,
                },
                Some(joined) = self.tasks.join_next_with_id() => events.extend(self.joined(joined)),
            }
            // Whatever has happened meanwhile belongs to the same publication.
            while let Ok(command) = commands.try_recv() {
                take(command, &mut events, &mut answers);
            }
            while let Some(joined) = self.tasks.try_join_next_with_id() {
                events.extend(self.joined(joined));
            }
            for event in &events {
                match event {
                    Event::Config(wanted) => self.outlets.wanted(wanted),
                    Event::Close => closing = true,
                    Event::Source(_)
                    | Event::Ready(..)
                    | Event::Failed(..)
                    | Event::Lists(..)
                    | Event::Died(..)
                    | Event::Unvalidated { .. } => {}
                }
            }
            let actions: Vec<_> = events.into_iter().flat_map(|it| self.machine.handle(it)).collect();
            self.publish();
            for action in actions {
                self.carry_out(action);
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
        if !self.machine.is_changed() {
            return;
        }
        let snapshot = self.machine.snapshot(SystemTime::now());
        let published = &snapshot.published;
        tracing::debug!(
            generation = published.generation,
            tools = published.catalog.tools().len(),
            "published"
        );
        self.outlets.publish(snapshot);
    }

    fn carry_out(&mut self, action: Action<Shared>) {
        match action {
            Action::Start(ticket, server) => {
                let connector = Arc::clone(&self.connector);
                let job = Job::Start(ticket.clone());
                self.spawn(job, async move {
                    Some(match connector.connect(&server).await {
                        Ok(started) => Event::Ready(ticket, started),
                        Err(failure) => Event::Failed(ticket, failure),
                    })
                });
            }
            Action::Abort(ticket) => {
                for (job, handle) in self.jobs.values() {
                    if matches!(job, Job::Start(it) if *it == ticket) {
                        handle.abort();
                    }
                }
            }
            Action::Follow { ticket, instance, server, listed } => {
                let job = Job::Follow(ticket.clone());
                self.spawn(job, async move { Some(follow(ticket, &instance, &server, listed).await) });
            }
            Action::Retire(instance) => {
                // At once, not when the task comes to run: a call that still holds the old snapshot is refused.
                instance.gate.retire();
                let grace = self.grace;
                self.spawn(Job::Retire, async move {
                    instance.drain_and_close(grace).await;
                    None
                });
            }
        }
    }

    fn spawn(&mut self, job: Job, task: impl Future<Output = Option<Event<Shared>>> + Send + 'static) {
        let handle = self.tasks.spawn(task);
        self.jobs.insert(handle.id(), (job, handle));
    }

    fn joined(&mut self, joined: Result<(Id, Option<Event<Shared>>), JoinError>) -> Option<Event<Shared>> {
        let error = match joined {
            Ok((id, event)) => {
                self.jobs.remove(&id);
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
            Failure::new(Kind::Connection, message)
        };
        match job {
            Job::Start(ticket) => Some(Event::Failed(ticket.clone(), failure(&ticket))),
            Job::Follow(ticket) => Some(Event::Died(ticket.clone(), failure(&ticket))),
            Job::Retire => None,
        }
    }

    /// Waits for what is being closed; everything else is given up.
    async fn wind_up(mut self) {
        for (job, handle) in self.jobs.values() {
            match job {
                Job::Start(_) | Job::Follow(_) => handle.abort(),
                Job::Retire => {}
            }
        }
        while let Some(joined) = self.tasks.join_next_with_id().await {
            // A start may have finished in the moment it was given up: what it started is closed as well.
            let event = self.joined(joined);
            let actions: Vec<_> = event.into_iter().flat_map(|it| self.machine.handle(it)).collect();
            for action in actions {
                self.carry_out(action);
            }
        }
        self.connector.wires.ended().await;
    }
}

fn take(command: Command, events: &mut Vec<Event<Shared>>, answers: &mut Vec<oneshot::Sender<()>>) {
    match command {
        Command::Apply(wanted, answer) => {
            events.push(Event::Config(*wanted));
            answers.push(answer);
        }
        Command::Adopt { wanted, problems, answer } => {
            events.push(Event::Source(problems));
            events.extend(wanted.map(|it| Event::Config(*it)));
            answers.push(answer);
        }
        Command::Unvalidated { server, tool, reason } => {
            events.push(Event::Unvalidated { server, tool, reason });
        }
        Command::Shutdown => events.push(Event::Close),
    }
}
