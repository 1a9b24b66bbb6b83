//! Exhaustive interleavings: all orders of concurrent commands, ends of starts, and events of running servers.
//!
//! After each step, an instance is routed to, leased or retired exactly once, and each waiter has at most one reply.
//! At the end the state is that of the last command in every order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, UNIX_EPOCH};

use mcp_host_model::{Era, ErrorKind, ServerId};
use mcp_host_registry::ProblemKind;
use tokio::time::Instant;

use crate::config::desired::DesiredServers;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::dialog_end::DialogEnd;
use crate::supervisor::lease_policy::LeasePolicy;
use crate::supervisor::machine::tests::fixture::{listing, server};
use crate::supervisor::machine::{
    LeaseReply, LeaseRequest, LeaseTable, Machine, MachineAction, MachineEvent, MachineSettings, RouteTarget,
    StartTicket, StartedInstance, Supervision, WaiterId,
};
use mcp_host_registry::ActiveProblem;

/// Which failures happen in addition to the commands.
#[derive(Clone, Copy, PartialEq)]
enum Failures {
    /// All starts succeed.
    None,
    /// A start may fail, a server may disconnect or change its lists, each once.
    Some,
}

/// A running interleaving.
struct Interleaving<'a> {
    machine: Machine<u64>,
    now: Instant,
    /// The remaining commands of each actor.
    actors: Vec<std::slice::Iter<'a, &'a str>>,
    /// Running starts, including aborted ones that may still succeed.
    starts: Vec<(StartTicket, Aborted)>,
    /// Created instances and how often each was retired.
    instances: BTreeMap<u64, usize>,
    watched: BTreeMap<u64, StartTicket>,
    /// The number of replies per waiter.
    waiters: BTreeMap<WaiterId, usize>,
    /// The dialog and server of each waiter.
    requests: BTreeMap<WaiterId, (String, String)>,
    leases: LeaseTable<u64>,
    /// All servers ever configured.
    configured: BTreeSet<String>,
    remaining_failures: Vec<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
enum Aborted {
    No,
    Yes,
}

/// A possible next step.
enum Choice {
    Command(usize),
    Succeeds(usize),
    Fails(usize),
    Disconnects(u64),
    ChangesLists(u64),
}

impl<'a> Interleaving<'a> {
    fn new(actors: &'a [&'a [&'a str]], failures: Failures) -> Interleaving<'a> {
        let settings = MachineSettings {
            supervision: Supervision::Off,
            leases: LeasePolicy {
                idle_timeout: Some(Duration::from_secs(20)),
                max_leases: 9,
                ..LeasePolicy::default()
            },
            ..MachineSettings::default()
        };
        let remaining_failures = match failures {
            Failures::None => Vec::new(),
            Failures::Some => vec!["fail", "disconnect", "lists"],
        };
        Interleaving {
            machine: Machine::new(settings),
            now: Instant::now(),
            actors: actors.iter().map(|it| it.iter()).collect(),
            starts: Vec::new(),
            instances: BTreeMap::new(),
            watched: BTreeMap::new(),
            waiters: BTreeMap::new(),
            requests: BTreeMap::new(),
            leases: LeaseTable::empty(),
            configured: BTreeSet::new(),
            remaining_failures,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        let actors = (0..self.actors.len()).filter(|it| self.actors[*it].len() > 0).map(Choice::Command);
        let mut res: Vec<Choice> = actors.collect();
        for at in 0..self.starts.len() {
            res.push(Choice::Succeeds(at));
            if self.remaining_failures.contains(&"fail") {
                res.push(Choice::Fails(at));
            }
        }
        for instance in self.watched.keys() {
            if self.remaining_failures.contains(&"disconnect") {
                res.push(Choice::Disconnects(*instance));
            }
            if self.remaining_failures.contains(&"lists") {
                res.push(Choice::ChangesLists(*instance));
            }
        }
        res
    }

    /// Takes a step that may occur repeatedly.
    fn take_repeatable(&mut self, choice: Choice) {
        let failure = match choice {
            Choice::Fails(_) => Some("fail"),
            Choice::Disconnects(_) => Some("disconnect"),
            Choice::ChangesLists(_) => Some("lists"),
            Choice::Command(_) | Choice::Succeeds(_) => None,
        };
        let left = self.remaining_failures.iter().filter(|it| Some(**it) == failure).count();
        self.take(choice);
        if let Some(failure) = failure {
            self.remaining_failures.extend(std::iter::repeat_n(failure, left - 1));
        }
    }

    fn take(&mut self, choice: Choice) {
        match choice {
            Choice::Command(at) => {
                let step = self.actors[at].next().expect("a chosen actor has a command left");
                self.command(step);
            }
            Choice::Succeeds(at) => {
                let (ticket, _) = self.starts.remove(at);
                let instance = ticket.number;
                self.instances.insert(instance, 0);
                let started = StartedInstance { instance, era: Era::Legacy, listing: listing("t") };
                self.handle(MachineEvent::Started(ticket, started));
            }
            Choice::Fails(at) => {
                self.remaining_failures.retain(|it| *it != "fail");
                let (ticket, _) = self.starts.remove(at);
                self.handle(MachineEvent::StartFailed(
                    ticket,
                    HostError::new(ErrorKind::Connection, "no start"),
                ));
            }
            Choice::Disconnects(instance) => {
                self.remaining_failures.retain(|it| *it != "disconnect");
                let ticket = self.watched.remove(&instance).expect("a chosen instance is watched");
                let lost = HostError::new(ErrorKind::Connection, "lost");
                self.handle(MachineEvent::outage(ticket, lost));
            }
            Choice::ChangesLists(instance) => {
                self.remaining_failures.retain(|it| *it != "lists");
                let ticket = self.watched.remove(&instance).expect("a chosen instance is watched");
                self.handle(MachineEvent::ListsRead(ticket, listing("t,u")));
            }
        }
        self.check();
    }

    /// `configure a=1.1 b=1.1`, `lease d a`, `release d a`, `end d`, `restart a`, `disable a`.
    fn command(&mut self, step: &str) {
        let words: Vec<&str> = step.split_whitespace().collect();
        match words[..] {
            ["configure", ref servers @ ..] => {
                self.configured.extend(servers.iter().map(|it| (*it).to_owned()));
                let servers = servers.iter().map(|it| server(it)).collect();
                self.handle(MachineEvent::Configure(DesiredServers::new(servers)));
            }
            ["lease", dialog, server] => self.lease(dialog, server),
            ["release", dialog, server] => {
                let waiter = self.new_waiter(dialog, server);
                self.handle(MachineEvent::ReleaseLease {
                    dialog: DialogId::new(dialog),
                    server: id(server),
                    waiter,
                });
            }
            ["end", dialog] => {
                self.handle(MachineEvent::DialogEnded(DialogEnd { dialog: DialogId::new(dialog), number: 0 }))
            }
            ["restart", server] => self.handle(MachineEvent::Restart(id(server))),
            ["disable", server] => self.handle(MachineEvent::Disable(id(server))),
            _ => panic!("no such step: {step}"),
        }
    }

    fn new_waiter(&mut self, dialog: &str, server: &str) -> WaiterId {
        let waiter = self.waiters.len() as WaiterId;
        self.waiters.insert(waiter, 0);
        self.requests.insert(waiter, (dialog.to_owned(), server.to_owned()));
        waiter
    }

    /// A call looks up its server and requests a leased instance if needed.
    fn lease(&mut self, dialog: &str, server: &str) {
        let routing_table = self.machine.next_routing_table(UNIX_EPOCH);
        let Some(RouteTarget::Leased(base)) =
            routing_table.routes.get(&id(server)).map(|it| it.target.clone())
        else {
            return;
        };
        let waiter = self.new_waiter(dialog, server);
        self.handle(MachineEvent::RequestLease {
            request: LeaseRequest { dialog: DialogId::new(dialog), server: id(server), base },
            ends_seen: 0,
            waiter,
        });
    }

    fn handle(&mut self, event: MachineEvent<u64>) {
        let actions = self.machine.handle(event, self.now);
        if let Some(table) = self.machine.lease_table() {
            self.leases = table;
        }
        for action in actions {
            match action {
                MachineAction::Start(ticket, _) | MachineAction::StartLeased(ticket, ..) => {
                    self.starts.push((ticket, Aborted::No))
                }
                MachineAction::AbortStart(ticket) => {
                    let start = self.starts.iter_mut().find(|it| it.0 == ticket);
                    let start = start.expect("only running starts are aborted");
                    assert!(start.1 == Aborted::No, "nothing is aborted twice");
                    start.1 = Aborted::Yes;
                }
                MachineAction::Watch { ticket, instance, .. } => {
                    self.watched.insert(instance, ticket);
                }
                MachineAction::SetLimits(..) | MachineAction::Probe { .. } | MachineAction::CheckIdle(..) => {
                }
                MachineAction::Reply(waiter, reply) => self.record_reply(waiter, &reply),
                MachineAction::Retire { instance, waiter, .. } => {
                    *self.instances.get_mut(&instance).expect("only created instances are retired") += 1;
                    self.watched.remove(&instance);
                    if let Some(waiter) = waiter {
                        self.record_reply(waiter, &LeaseReply::Released);
                    }
                }
            }
        }
    }

    fn record_reply(&mut self, waiter: WaiterId, reply: &LeaseReply<u64>) {
        *self.waiters.get_mut(&waiter).expect("only waiters get replies") += 1;
        if *reply == LeaseReply::Stale {
            let (dialog, server) = self.requests[&waiter].clone();
            self.lease(&dialog, &server);
        }
    }

    fn check(&mut self) {
        let routing_table = self.machine.next_routing_table(UNIX_EPOCH);
        let mut used = BTreeSet::new();
        for (server, route) in &routing_table.routes {
            if let RouteTarget::Shared(instance) = route.target {
                assert!(used.insert(instance), "an instance belongs to one server: {server}");
            }
        }
        for ((_, server), held) in &self.leases.active {
            assert!(used.insert(held.instance), "a leased instance belongs to one dialog");
            let target = routing_table.routes.get(server).map(|it| &it.target);
            assert!(
                matches!(target, Some(RouteTarget::Leased(base)) if *base == held.base),
                "leased on what is there"
            );
        }
        // DM-124: problems are current.
        for ActiveProblem { problem, .. } in &routing_table.snapshot.problems {
            let server = problem.server.as_ref().map(ServerId::as_str).unwrap_or_default();
            let status = routing_table.snapshot.servers.iter().find(|it| it.id == server);
            let status = status.expect("a problem is of a server that is there");
            let is_down = status.error.is_some();
            assert!(problem.kind != ProblemKind::ServerError || is_down, "{problem:?} of {status:?}");
        }
        for (instance, retired) in &self.instances {
            let want = usize::from(!used.contains(instance));
            assert_eq!(*retired, want, "instance {instance} is used or was retired once");
        }
        assert!(self.waiters.values().all(|it| *it <= 1), "a waiter gets one reply");
        let mut starting = BTreeSet::new();
        for (ticket, aborted) in &self.starts {
            let leased = self.machine.leases.is_starting(ticket);
            assert!(
                *aborted == Aborted::Yes || leased || starting.insert(ticket.server.clone()),
                "a server is started once at a time"
            );
        }
        // Names and instance belong to the same configuration (DM-105, DM-106).
        for (server, route) in &routing_table.routes {
            let fits = |it: &&String| {
                let configured = crate::supervisor::machine::tests::fixture::server(it);
                let wanted = crate::config::desired::desired_server(&configured);
                wanted.id == server
                    && wanted == crate::config::desired::desired_server(&route.server)
                    && it.starts_with(server.as_str())
            };
            assert!(self.configured.iter().any(|it| fits(&it)), "{server} runs as it was configured once");
        }
    }

    /// Lets all starts succeed, describes the state, and shuts down.
    fn finish(mut self) -> String {
        while !self.starts.is_empty() {
            self.take(Choice::Succeeds(0));
        }
        let routing_table = self.machine.next_routing_table(UNIX_EPOCH);
        let servers =
            routing_table.snapshot.servers.iter().map(|it| format!("{}:{}", it.id, it.state.as_str()));
        let tools =
            routing_table.snapshot.catalog.tools().iter().map(|it| format!("{}/{}", it.server, it.name));
        let res = servers.chain(tools).collect::<Vec<_>>().join(" ");
        assert!(self.waiters.values().all(|it| *it == 1), "every waiter gets a reply");
        self.handle(MachineEvent::Close);
        self.check();
        assert!(self.instances.values().all(|it| *it == 1), "every instance is retired");
        res
    }
}

fn id(server: &str) -> ServerId {
    ServerId::parse(server).unwrap()
}

/// Runs all orders; returns the final states and the number of orders.
fn run_all_orders(actors: &[&[&str]], failures: Failures) -> (BTreeSet<String>, usize) {
    let mut path: Vec<(usize, usize)> = Vec::new();
    let (mut ends, mut count) = (BTreeSet::new(), 0);
    loop {
        let mut run = Interleaving::new(actors, failures);
        let mut depth = 0;
        loop {
            let mut choices = run.choices();
            if choices.is_empty() {
                break;
            }
            if depth == path.len() {
                path.push((0, choices.len()));
            }
            run.take(choices.swap_remove(path[depth].0));
            depth += 1;
        }
        ends.insert(run.finish());
        count += 1;
        // Next path: the last step with another choice takes it.
        while path.last().is_some_and(|(chosen, of)| chosen + 1 == *of) {
            path.pop();
        }
        match path.last_mut() {
            Some(last) => last.0 += 1,
            None => return (ends, count),
        }
    }
}

/// Expects `configure` in every order without failures, and no lost or duplicated instance with failures. At least
/// `orders` orders exist.
#[track_caller]
fn check(actors: &[&[&str]], want: &str, orders: usize) {
    let (ends, without) = run_all_orders(actors, Failures::None);
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [want]);
    let (_, with) = run_all_orders(actors, Failures::Some);
    assert!(without + with >= orders, "{without} and {with}");
}

#[test]
fn dm_101_start_ends_after_its_configuration_changed() {
    check(&[&["configure a=1.1", "configure a=2.1"]], "a:ready a/a__t", 20);
    check(&[&["configure a=1.1", "configure a=2.2", "configure a=1.3"]], "a:ready a/a__t-3", 100);
}

#[test]
fn dm_105_command_and_filter_change_while_new_start_fails() {
    check(&[&["configure a=1.1", "configure a=2.2", "configure a=2.3"]], "a:ready a/a__t-3", 100);
}

#[test]
fn dm_032_late_server_with_precedence_takes_the_name() {
    check(&[&["configure a=1.1-bare b=1.1-bare"]], "a:ready b:ready a/t", 10);
    check(
        &[&["configure a=1.1-bare b=1.1-bare", "configure b=1.1-bare a=1.1-bare"]],
        "b:ready a:ready b/t",
        50,
    );
}

#[test]
fn hd_115_lists_change_while_server_is_replaced() {
    check(&[&["configure a=1.1", "configure a=2.1"], &["restart a"]], "a:ready a/a__t", 100);
}

#[test]
fn dm_074_concurrent_first_calls_of_dialogs() {
    check(&[&["configure a=1.1-own"], &["lease d a"], &["lease d a"], &["lease e a"]], "a:ready a/a__t", 100);
}

#[test]
fn dm_077_release_during_start() {
    check(&[&["configure a=1.1-own"], &["lease d a", "release d a"], &["lease d a"]], "a:ready a/a__t", 100);
}

#[test]
fn dialog_ends_at_any_time() {
    check(&[&["configure a=1.1-own"], &["lease d a", "lease d a"], &["end d"]], "a:ready a/a__t", 100);
}

#[test]
fn lease_during_replacement() {
    check(&[&["configure a=1.1-own", "configure a=2.1-own"], &["lease d a"]], "a:ready a/a__t", 100);
    check(&[&["configure a=1.1-own", "configure a=1.1"], &["lease d a"]], "a:ready a/a__t", 100);
}

#[test]
fn lease_during_disable_and_restart() {
    check(&[&["configure a=1.1-own", "disable a", "restart a"], &["lease d a"]], "a:ready a/a__t", 100);
}

/// The commands of random interleavings.
const COMMANDS: [&str; 18] = [
    "configure a=1.1",
    "configure a=2.1",
    "configure a=1.2",
    "configure a=1.1-own",
    "configure a=2.1-own",
    "configure a=1.1 b=1.1",
    "configure b=1.1-own a=1.1",
    "configure",
    "lease d a",
    "lease e a",
    "lease d b",
    "release d a",
    "release e a",
    "end d",
    "end e",
    "restart a",
    "disable a",
    "disable b",
];

proptest::proptest! {
    /// Random longer interleavings lose and duplicate nothing either.
    #[test]
    fn random_interleavings_lose_and_duplicate_nothing(
        commands in proptest::collection::vec(proptest::collection::vec(0..COMMANDS.len(), 0..7), 1..4),
        choices in proptest::collection::vec(0usize..1000, 0..60),
    ) {
        let commands: Vec<Vec<&str>> = commands.iter().map(|it| it.iter().map(|at| COMMANDS[*at]).collect()).collect();
        let actors: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
        let mut run = Interleaving::new(&actors, Failures::Some);
        // Several failures of each kind.
        run.remaining_failures = ["fail", "disconnect", "lists"].repeat(4);
        for choice in choices {
            let mut open = run.choices();
            if open.is_empty() {
                break;
            }
            let taken = open.swap_remove(choice % open.len());
            run.take_repeatable(taken);
        }
        run.finish();
    }
}
