//! Every order in which things can happen at once, tried one after the other: what several hands do (each in its own
//! order), when starts end and how, what running servers do by themselves.
//!
//! After each step nothing may be lost or doubled: an instance is routed to, leased, or was retired, and one of these
//! only; a waiter is answered once. At the end everything comes to what was wanted last, in whatever order it came.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, UNIX_EPOCH};

use mcp_model::{Era, ErrorKind, ServerId};
use mcp_registry::ProblemKind;
use tokio::time::Instant;

use super::{
    Action, Answer, Event, LeaseTable, Machine, Place, Settings, Started, Supervision, Ticket, Waiter,
    Wanting,
};
use crate::ActiveProblem;
use crate::config::desired::DesiredServers;
use crate::failure::HostError;
use crate::fixture::{listed, server};
use crate::supervisor::dialog::DialogEnd;
use crate::supervisor::dialog::{DialogId, LeasePolicy};

/// What may go on by itself.
#[derive(Clone, Copy, PartialEq)]
enum Weather {
    /// Every start succeeds.
    Fair,
    /// A start may fail, a server may die or change its lists, each once in a story.
    Foul,
}

/// A story under way.
struct Story<'a> {
    machine: Machine<u64>,
    now: Instant,
    /// What is left to do for each hand.
    hands: Vec<std::slice::Iter<'a, &'a str>>,
    /// Starts that may still end, aborted ones too: an abort may come too late.
    starts: Vec<(Ticket, Aborted)>,
    /// Instances that the machine was given, and how often each was retired.
    instances: BTreeMap<u64, usize>,
    followed: BTreeMap<u64, Ticket>,
    /// How often each waiter was answered.
    waiters: BTreeMap<Waiter, usize>,
    /// Whom each waiter waits for.
    asked: BTreeMap<Waiter, (String, String)>,
    leases: LeaseTable<u64>,
    /// Runtime and exposure of all that was ever wanted.
    wanted: BTreeSet<String>,
    blows: Vec<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
enum Aborted {
    No,
    Yes,
}

/// One thing that can happen next.
enum Choice {
    Hand(usize),
    Succeeds(usize),
    Fails(usize),
    Dies(u64),
    Lists(u64),
}

impl<'a> Story<'a> {
    fn new(hands: &'a [&'a [&'a str]], weather: Weather) -> Story<'a> {
        let settings = Settings {
            supervision: Supervision::Off,
            leases: LeasePolicy { idle_timeout: Some(Duration::from_secs(20)), max_leases: 9 },
            ..Settings::default()
        };
        let blows = match weather {
            Weather::Fair => Vec::new(),
            Weather::Foul => vec!["fail", "die", "lists"],
        };
        Story {
            machine: Machine::new(settings),
            now: Instant::now(),
            hands: hands.iter().map(|it| it.iter()).collect(),
            starts: Vec::new(),
            instances: BTreeMap::new(),
            followed: BTreeMap::new(),
            waiters: BTreeMap::new(),
            asked: BTreeMap::new(),
            leases: LeaseTable::empty(),
            wanted: BTreeSet::new(),
            blows,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        let hands = (0..self.hands.len()).filter(|it| self.hands[*it].len() > 0).map(Choice::Hand);
        let mut res: Vec<Choice> = hands.collect();
        for at in 0..self.starts.len() {
            res.push(Choice::Succeeds(at));
            if self.blows.contains(&"fail") {
                res.push(Choice::Fails(at));
            }
        }
        for instance in self.followed.keys() {
            if self.blows.contains(&"die") {
                res.push(Choice::Dies(*instance));
            }
            if self.blows.contains(&"lists") {
                res.push(Choice::Lists(*instance));
            }
        }
        res
    }

    /// Takes a choice, of whose sort there may be more.
    fn take_one(&mut self, choice: Choice) {
        let sort = match choice {
            Choice::Fails(_) => Some("fail"),
            Choice::Dies(_) => Some("die"),
            Choice::Lists(_) => Some("lists"),
            Choice::Hand(_) | Choice::Succeeds(_) => None,
        };
        let left = self.blows.iter().filter(|it| Some(**it) == sort).count();
        self.take(choice);
        if let Some(sort) = sort {
            self.blows.extend(std::iter::repeat_n(sort, left - 1));
        }
    }

    fn take(&mut self, choice: Choice) {
        match choice {
            Choice::Hand(at) => {
                let step = self.hands[at].next().expect("a hand that is chosen has something to do");
                self.hand(step);
            }
            Choice::Succeeds(at) => {
                let (ticket, _) = self.starts.remove(at);
                let instance = ticket.number;
                self.instances.insert(instance, 0);
                let started = Started { instance, era: Era::Legacy, listed: listed("t") };
                self.happens(Event::Ready(ticket, started));
            }
            Choice::Fails(at) => {
                self.blows.retain(|it| *it != "fail");
                let (ticket, _) = self.starts.remove(at);
                self.happens(Event::Failed(ticket, HostError::new(ErrorKind::Connection, "no start")));
            }
            Choice::Dies(instance) => {
                self.blows.retain(|it| *it != "die");
                let ticket = self.followed.remove(&instance).expect("it was chosen from these");
                self.happens(Event::Died(ticket, HostError::new(ErrorKind::Connection, "lost")));
            }
            Choice::Lists(instance) => {
                self.blows.retain(|it| *it != "lists");
                let ticket = self.followed.remove(&instance).expect("it was chosen from these");
                self.happens(Event::Lists(ticket, listed("t,u")));
            }
        }
        self.check();
    }

    /// `want a=1.1 b=1.1`, `lease d a`, `release d a`, `over d`, `restart a`, `disable a`.
    fn hand(&mut self, step: &str) {
        let words: Vec<&str> = step.split_whitespace().collect();
        match words[..] {
            ["want", ref servers @ ..] => {
                self.wanted.extend(servers.iter().map(|it| (*it).to_owned()));
                let servers = servers.iter().map(|it| server(it)).collect();
                self.happens(Event::Config(DesiredServers { servers, failed: Vec::new() }));
            }
            ["lease", dialog, server] => self.lease(dialog, server),
            ["release", dialog, server] => {
                let waiter = self.waits(dialog, server);
                self.happens(Event::Release(DialogId::new(dialog), id(server), waiter));
            }
            ["over", dialog] => {
                self.happens(Event::DialogOver(DialogEnd { dialog: DialogId::new(dialog), number: 0 }))
            }
            ["restart", server] => self.happens(Event::Restart(id(server))),
            ["disable", server] => self.happens(Event::Disable(id(server))),
            _ => panic!("no such step: {step}"),
        }
    }

    fn waits(&mut self, dialog: &str, server: &str) -> Waiter {
        let waiter = self.waiters.len() as Waiter;
        self.waiters.insert(waiter, 0);
        self.asked.insert(waiter, (dialog.to_owned(), server.to_owned()));
        waiter
    }

    /// A call looks up its server, and asks for an instance where it has to be leased.
    fn lease(&mut self, dialog: &str, server: &str) {
        let snapshot = self.machine.snapshot(UNIX_EPOCH);
        let Some(Place::Leased(base)) = snapshot.routes.get(&id(server)).map(|it| it.place.clone()) else {
            return;
        };
        let waiter = self.waits(dialog, server);
        self.happens(Event::Lease(
            Wanting { dialog: DialogId::new(dialog), server: id(server), base },
            0,
            waiter,
        ));
    }

    fn happens(&mut self, event: Event<u64>) {
        let actions = self.machine.handle(event, self.now);
        if let Some(table) = self.machine.lease_table() {
            self.leases = table;
        }
        for action in actions {
            match action {
                Action::Start(ticket, _) | Action::Open(ticket, ..) => {
                    self.starts.push((ticket, Aborted::No))
                }
                Action::Abort(ticket) => {
                    let start = self.starts.iter_mut().find(|it| it.0 == ticket);
                    let start = start.expect("what is aborted is being started");
                    assert!(start.1 == Aborted::No, "nothing is aborted twice");
                    start.1 = Aborted::Yes;
                }
                Action::Follow { ticket, instance, .. } => {
                    self.followed.insert(instance, ticket);
                }
                Action::Limit(..) | Action::Probe { .. } | Action::Look(..) => {}
                Action::Answer(waiter, answer) => self.answered(waiter, &answer),
                Action::Retire { instance, waiter, .. } => {
                    *self.instances.get_mut(&instance).expect("only what was given is retired") += 1;
                    self.followed.remove(&instance);
                    if let Some(waiter) = waiter {
                        self.answered(waiter, &Answer::Released);
                    }
                }
            }
        }
    }

    fn answered(&mut self, waiter: Waiter, answer: &Answer<u64>) {
        *self.waiters.get_mut(&waiter).expect("only who waits is answered") += 1;
        if *answer == Answer::Again {
            let (dialog, server) = self.asked[&waiter].clone();
            self.lease(&dialog, &server);
        }
    }

    fn check(&mut self) {
        let snapshot = self.machine.snapshot(UNIX_EPOCH);
        let mut used = BTreeSet::new();
        for (server, route) in &snapshot.routes {
            if let Place::Shared(instance) = route.place {
                assert!(used.insert(instance), "an instance belongs to one server: {server}");
            }
        }
        for ((_, server), held) in &self.leases.held {
            assert!(used.insert(held.instance), "a leased instance belongs to one dialog");
            let place = snapshot.routes.get(server).map(|it| &it.place);
            assert!(
                matches!(place, Some(Place::Leased(base)) if *base == held.base),
                "leased on what is there"
            );
        }
        // DM-124: what is told is so now.
        for ActiveProblem { problem, .. } in &snapshot.published.problems {
            let server = problem.server.as_ref().map(ServerId::as_str).unwrap_or_default();
            let status = snapshot.published.servers.iter().find(|it| it.id == server);
            let status = status.expect("a problem is of a server that is there");
            let is_down = status.error.is_some();
            assert!(problem.kind != ProblemKind::ServerError || is_down, "{problem:?} of {status:?}");
        }
        for (instance, retired) in &self.instances {
            let want = usize::from(!used.contains(instance));
            assert_eq!(*retired, want, "instance {instance} is used or was retired once");
        }
        assert!(self.waiters.values().all(|it| *it <= 1), "nobody is answered twice");
        let mut starting = BTreeSet::new();
        for (ticket, aborted) in &self.starts {
            let leased = self.machine.leases.is_starting(ticket);
            assert!(
                *aborted == Aborted::Yes || leased || starting.insert(ticket.server.clone()),
                "a server is started once at a time"
            );
        }
        // Names never belong to another configuration than the instance does (DM-105, DM-106).
        for (server, route) in &snapshot.routes {
            let fits = |it: &&String| {
                let wanted = super::desired(&crate::fixture::server(it));
                wanted.id == *server
                    && wanted == super::desired(&route.server)
                    && it.starts_with(server.as_str())
            };
            assert!(self.wanted.iter().any(|it| fits(&it)), "{server} runs as it was wanted once");
        }
    }

    /// Lets everything come to its end, and tells what is there then; then closes.
    fn ends(mut self) -> String {
        while !self.starts.is_empty() {
            self.take(Choice::Succeeds(0));
        }
        let snapshot = self.machine.snapshot(UNIX_EPOCH);
        let servers = snapshot.published.servers.iter().map(|it| format!("{}:{}", it.id, it.state.as_str()));
        let tools = snapshot.published.catalog.tools().iter().map(|it| format!("{}/{}", it.server, it.name));
        let res = servers.chain(tools).collect::<Vec<_>>().join(" ");
        assert!(self.waiters.values().all(|it| *it == 1), "everybody is answered");
        self.happens(Event::Close);
        self.check();
        assert!(self.instances.values().all(|it| *it == 1), "nothing is left over");
        res
    }
}

fn id(server: &str) -> ServerId {
    ServerId::parse(server).unwrap()
}

/// Tries all orders and gives what they come to, and how many there were.
fn all(hands: &[&[&str]], weather: Weather) -> (BTreeSet<String>, usize) {
    let mut path: Vec<(usize, usize)> = Vec::new();
    let (mut ends, mut count) = (BTreeSet::new(), 0);
    loop {
        let mut story = Story::new(hands, weather);
        let mut depth = 0;
        loop {
            let mut choices = story.choices();
            if choices.is_empty() {
                break;
            }
            if depth == path.len() {
                path.push((0, choices.len()));
            }
            story.take(choices.swap_remove(path[depth].0));
            depth += 1;
        }
        ends.insert(story.ends());
        count += 1;
        // The next path: the last choice that has another one takes it.
        while path.last().is_some_and(|(chosen, of)| chosen + 1 == *of) {
            path.pop();
        }
        match path.last_mut() {
            Some(last) => last.0 += 1,
            None => return (ends, count),
        }
    }
}

/// In every order, in fair weather, it comes to `want`, and in foul weather nothing is lost or doubled. There are at
/// least so many orders.
#[track_caller]
fn check(hands: &[&[&str]], want: &str, orders: usize) {
    let (ends, fair) = all(hands, Weather::Fair);
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [want]);
    let (_, foul) = all(hands, Weather::Foul);
    assert!(fair + foul >= orders, "{fair} and {foul}");
}

#[test]
fn dm_101_a_start_that_ends_after_its_spec_has_changed() {
    check(&[&["want a=1.1", "want a=2.1"]], "a:ready a/a__t", 20);
    check(&[&["want a=1.1", "want a=2.2", "want a=1.3"]], "a:ready a/a__t-3", 100);
}

#[test]
fn dm_105_command_and_filter_change_while_the_new_start_fails() {
    check(&[&["want a=1.1", "want a=2.2", "want a=2.3"]], "a:ready a/a__t-3", 100);
}

#[test]
fn dm_032_a_late_server_that_stands_earlier_takes_the_name() {
    check(&[&["want a=1.1-bare b=1.1-bare"]], "a:ready b:ready a/t", 10);
    check(&[&["want a=1.1-bare b=1.1-bare", "want b=1.1-bare a=1.1-bare"]], "b:ready a:ready b/t", 50);
}

#[test]
fn hd_115_lists_change_while_the_server_is_replaced() {
    check(&[&["want a=1.1", "want a=2.1"], &["restart a"]], "a:ready a/a__t", 100);
}

#[test]
fn dm_074_first_calls_of_dialogs_at_once() {
    check(&[&["want a=1.1-own"], &["lease d a"], &["lease d a"], &["lease e a"]], "a:ready a/a__t", 100);
}

#[test]
fn dm_077_a_release_during_the_start() {
    check(&[&["want a=1.1-own"], &["lease d a", "release d a"], &["lease d a"]], "a:ready a/a__t", 100);
}

#[test]
fn a_dialog_ends_during_everything() {
    check(&[&["want a=1.1-own"], &["lease d a", "lease d a"], &["over d"]], "a:ready a/a__t", 100);
}

#[test]
fn a_lease_against_a_swap() {
    check(&[&["want a=1.1-own", "want a=2.1-own"], &["lease d a"]], "a:ready a/a__t", 100);
    check(&[&["want a=1.1-own", "want a=1.1"], &["lease d a"]], "a:ready a/a__t", 100);
}

#[test]
fn a_lease_against_a_switch() {
    check(&[&["want a=1.1-own", "disable a", "restart a"], &["lease d a"]], "a:ready a/a__t", 100);
}

/// What hands can do in a story of chance.
const DEEDS: [&str; 18] = [
    "want a=1.1",
    "want a=2.1",
    "want a=1.2",
    "want a=1.1-own",
    "want a=2.1-own",
    "want a=1.1 b=1.1",
    "want b=1.1-own a=1.1",
    "want",
    "lease d a",
    "lease e a",
    "lease d b",
    "release d a",
    "release e a",
    "over d",
    "over e",
    "restart a",
    "disable a",
    "disable b",
];

proptest::proptest! {
    /// Longer stories than can be tried in every order, by chance: nothing is lost or doubled in any of them either.
    #[test]
    fn in_stories_of_chance_nothing_is_lost_or_doubled(
        deeds in proptest::collection::vec(proptest::collection::vec(0..DEEDS.len(), 0..7), 1..4),
        choices in proptest::collection::vec(0usize..1000, 0..60),
    ) {
        let deeds: Vec<Vec<&str>> = deeds.iter().map(|it| it.iter().map(|at| DEEDS[*at]).collect()).collect();
        let hands: Vec<&[&str]> = deeds.iter().map(Vec::as_slice).collect();
        let mut story = Story::new(&hands, Weather::Foul);
        // More than one blow of each sort.
        story.blows = ["fail", "die", "lists"].repeat(4);
        for choice in choices {
            let mut open = story.choices();
            if open.is_empty() {
                break;
            }
            let taken = open.swap_remove(choice % open.len());
            story.take_one(taken);
        }
        story.ends();
    }
}
