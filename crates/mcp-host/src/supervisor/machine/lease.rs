//! Instances that belong to one dialog each: who gets one, who waits for one, and when they are given back (DM-074 to
//! DM-080).
//!
//! A lease stands on the base of its server: the start that last read its lists. When that is replaced, what was
//! leased on it goes, and whoever waited looks again.

mod backoff;

use std::collections::HashMap;
use std::sync::Arc;

use mcp_config::ResolvedServer;
use mcp_model::{Era, ErrorKind, ServerId, Sharing};
use mcp_registry::ServerLists;
use tokio::time::Instant;

use super::supervision::{later, next_probe};
use super::{Action, Drain, Machine, News, Phase, Started, Ticket};
use crate::event::{HostEventKind, ReleaseReason};
use crate::failure::HostError;
use crate::supervisor::dialog::DialogEnd;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::lists::Listed;

pub(super) use backoff::Past;

/// Somebody who waits for an answer.
pub(crate) type Waiter = u64;

/// What somebody who waited is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer<I> {
    /// Here is the instance.
    Granted(I),
    /// There is none.
    Refused(HostError),
    /// The server is another one by now.
    Again,
    /// What was leased is given back, and closed.
    Released,
    /// Nothing was leased.
    NotHeld,
}

/// What is leased now, for those who call.
#[derive(Debug, Clone)]
pub(crate) struct LeaseTable<I> {
    /// By dialog and server.
    pub(crate) held: HashMap<(DialogId, ServerId), Held<I>>,
    /// Who is to be reminded of which server, in the order of the first leases.
    pub(crate) reminders: Vec<(DialogId, ServerId)>,
}

/// One lease.
#[derive(Debug, Clone)]
pub(crate) struct Held<I> {
    /// The start that it stands on.
    pub(crate) base: u64,
    /// The instance.
    pub(crate) instance: I,
}

impl<I> LeaseTable<I> {
    /// That of a host without leases.
    pub(crate) fn empty() -> LeaseTable<I> {
        LeaseTable { held: HashMap::new(), reminders: Vec::new() }
    }
}

/// All leases.
pub(super) struct Leases<I> {
    held: Vec<Lease<I>>,
    reminders: Vec<(DialogId, ServerId)>,
    changed: bool,
}

struct Lease<I> {
    dialog: DialogId,
    /// How many dialogs had ended when it was last asked for: an end that was before that is not its dialog's.
    asked: u64,
    ticket: Ticket,
    base: u64,
    server: Arc<ResolvedServer>,
    state: State<I>,
}

enum State<I> {
    Starting(Vec<Waiter>),
    Live(Live<I>),
}

struct Live<I> {
    instance: I,
    era: Era,
    lists: Arc<ServerLists>,
    /// Since when it runs.
    since: Instant,
    /// When it is next looked at whether it lies unused.
    look: Option<Instant>,
    /// When it is next asked whether it lives.
    probe: Option<Instant>,
}

impl<I> Leases<I> {
    pub(super) fn new() -> Leases<I> {
        Leases { held: Vec::new(), reminders: Vec::new(), changed: false }
    }

    pub(super) fn next_wake(&self) -> impl Iterator<Item = Instant> {
        self.live().flat_map(|it| [it.look, it.probe]).flatten()
    }

    /// Is it a lease's start that is under way?
    #[cfg(test)]
    pub(super) fn is_starting(&self, ticket: &Ticket) -> bool {
        self.held.iter().any(|it| it.ticket == *ticket && matches!(it.state, State::Starting(_)))
    }

    fn live(&self) -> impl Iterator<Item = &Live<I>> {
        self.held.iter().filter_map(|it| match &it.state {
            State::Live(live) => Some(live),
            State::Starting(_) => None,
        })
    }

    fn live_by(&mut self, ticket: &Ticket) -> Option<(&mut Live<I>, u64, &DialogId)> {
        let lease = self.held.iter_mut().find(|it| it.ticket == *ticket)?;
        match &mut lease.state {
            State::Live(live) => Some((live, lease.base, &lease.dialog)),
            State::Starting(_) => None,
        }
    }
}

/// Who wants an instance of what.
#[derive(Debug, Clone)]
pub(crate) struct Wanting {
    /// The dialog.
    pub(crate) dialog: DialogId,
    /// The server.
    pub(crate) server: ServerId,
    /// The start whose lists the caller has seen.
    pub(crate) base: u64,
}

impl<I: Clone> Machine<I> {
    /// The leases, if they have changed since this was last asked.
    pub(crate) fn lease_table(&mut self) -> Option<LeaseTable<I>> {
        if !std::mem::take(&mut self.leases.changed) {
            return None;
        }
        let mut held = HashMap::new();
        for lease in &self.leases.held {
            if let State::Live(Live { instance, .. }) = &lease.state {
                let key = (lease.dialog.clone(), lease.ticket.server.clone());
                held.insert(key, Held { base: lease.base, instance: instance.clone() });
            }
        }
        Some(LeaseTable { held, reminders: self.leases.reminders.clone() })
    }

    /// Whose lease it is that a start is for.
    pub(crate) fn lessee(&self, ticket: &Ticket) -> Option<DialogId> {
        self.leases.held.iter().find(|it| it.ticket == *ticket).map(|it| it.dialog.clone())
    }

    /// A call of a dialog needs an instance.
    pub(super) fn lease(
        &mut self,
        wanting: Wanting,
        asked: u64,
        waiter: Waiter,
        now: Instant,
    ) -> Vec<Action<I>> {
        let Wanting { dialog, server, base } = wanting;
        if self.phase == Phase::Closed {
            return vec![Action::Answer(waiter, Answer::Refused(shut_down()))];
        }
        let slot = self.slots.iter().find(|it| it.name == server.as_str());
        let live = slot.and_then(|it| it.live.as_ref());
        let live = live.filter(|it| it.ticket.number == base && it.instance.is_none());
        let Some((base_ticket, entry, lists)) =
            live.map(|it| (it.ticket.clone(), Arc::clone(&it.server), Arc::clone(&it.listed.lists)))
        else {
            return vec![Action::Answer(waiter, Answer::Again)];
        };
        let own = self.leases.held.iter_mut().find(|it| it.dialog == dialog && it.base == base);
        let own = own.map(|it| {
            it.asked = it.asked.max(asked);
            &mut it.state
        });
        match own {
            Some(State::Live(live)) => {
                return vec![Action::Answer(waiter, Answer::Granted(live.instance.clone()))];
            }
            Some(State::Starting(waiting)) => {
                waiting.push(waiter);
                return Vec::new();
            }
            None => {}
        }
        if let Some(failure) = self.lease_refusal(&server, &dialog, now) {
            return vec![Action::Answer(waiter, Answer::Refused(failure))];
        }
        let most = self.settings.leases.max_leases;
        if self.leases.held.len() >= most {
            let message = format!(
                "server '{server}': {most} instances of servers are leased already; give one back (mcp_release), or \
                 end a dialog"
            );
            return vec![Action::Answer(
                waiter,
                Answer::Refused(HostError::new(ErrorKind::Connection, message)),
            )];
        }
        self.starts += 1;
        let server = entry;
        let ticket = Ticket { number: self.starts, ..base_ticket };
        self.leases.held.push(Lease {
            dialog,
            asked,
            ticket: ticket.clone(),
            base,
            server: Arc::clone(&server),
            state: State::Starting(vec![waiter]),
        });
        vec![Action::Open(ticket, server, lists)]
    }

    /// A start of a lease succeeded; without one that waits for it, `started` comes back.
    pub(super) fn lease_ready(
        &mut self,
        ticket: &Ticket,
        started: Started<I>,
        now: Instant,
    ) -> Result<Vec<Action<I>>, Box<Started<I>>> {
        let idle = self.settings.leases.idle_timeout;
        let waits = |it: &&mut Lease<I>| it.ticket == *ticket && matches!(it.state, State::Starting(_));
        let Some(lease) = self.leases.held.iter_mut().find(waits) else { return Err(Box::new(started)) };
        let Started { instance, era, listed } = started;
        let mut actions = vec![Action::Follow {
            ticket: ticket.clone(),
            instance: instance.clone(),
            listed: listed.clone(),
        }];
        let live = Live {
            instance: instance.clone(),
            era,
            lists: listed.lists,
            since: now,
            look: idle.map(|it| later(now, it)),
            probe: next_probe(&self.settings.supervision, &lease.server, now).filter(|_| era == Era::Legacy),
        };
        let State::Starting(waiting) = std::mem::replace(&mut lease.state, State::Live(live)) else {
            unreachable!("it was found by this")
        };
        let answers = waiting.into_iter().map(|it| Action::Answer(it, Answer::Granted(instance.clone())));
        actions.extend(answers);
        let owner = (lease.dialog.clone(), ticket.server.clone());
        self.lease_is_well(&owner.1, &owner.0, now);
        let leased = HostEventKind::Leased { dialog: owner.0.clone() };
        self.news.push(News::new(ticket.server.as_str(), leased));
        if owner.0 != DialogId::none() && !self.leases.reminders.contains(&owner) {
            self.leases.reminders.push(owner);
        }
        self.leases.changed = true;
        Ok(actions)
    }

    /// A leased instance has read its lists again: they are those of its server.
    pub(super) fn lease_lists(&mut self, ticket: Ticket, listed: Listed) -> Vec<Action<I>> {
        let Some((live, base, _)) = self.leases.live_by(&ticket) else { return Vec::new() };
        let is_news = live.lists != listed.lists;
        live.lists = Arc::clone(&listed.lists);
        let instance = live.instance.clone();
        let entry = self.slots.iter_mut().filter_map(|it| it.live.as_mut());
        if let Some(entry) = entry.into_iter().find(|it| it.ticket.number == base) {
            // What it says is as good as what the others have said; an old list of its own is no news.
            let differs = entry.listed.lists != listed.lists && is_news || entry.listed.notes != listed.notes;
            if differs {
                if entry.listed.lists.tools != listed.lists.tools {
                    entry.tool_notes.clear();
                }
                entry.listed.lists = Arc::clone(&listed.lists);
                entry.listed.notes.clone_from(&listed.notes);
                self.news.push(News::new(ticket.server.as_str(), HostEventKind::ListsChanged));
                self.touch();
            }
        }
        vec![Action::Follow { ticket, instance, listed }]
    }

    /// A leased instance was looked at: since when does nobody use it?
    pub(super) fn lease_seen(
        &mut self,
        ticket: &Ticket,
        unused: Option<Instant>,
        now: Instant,
    ) -> Vec<Action<I>> {
        let Some(idle) = self.settings.leases.idle_timeout else { return Vec::new() };
        let Some((live, ..)) = self.leases.live_by(ticket) else { return Vec::new() };
        let end = later(unused.unwrap_or(now), idle);
        if end > now {
            live.look = Some(end);
            return Vec::new();
        }
        self.end_leases(|it| it == ticket, Going::swapped(ReleaseReason::Idle))
    }

    /// A dialog gives back what it has leased of a server.
    pub(super) fn release(&mut self, dialog: &DialogId, server: &ServerId, waiter: Waiter) -> Vec<Action<I>> {
        self.leases.reminders.retain(|it| (&it.0, &it.1) != (dialog, server));
        self.leases.changed = true;
        let own: Vec<Ticket> = self
            .leases
            .held
            .iter()
            .filter(|it| it.dialog == *dialog && it.ticket.server == *server)
            .map(|it| it.ticket.clone())
            .collect();
        let going = Going {
            drain: Drain::Release,
            answer: Answer::Refused(released_meanwhile(server)),
            reason: ReleaseReason::Requested,
        };
        let mut actions = self.end_leases(|it| own.contains(it), going);
        let retired = actions
            .iter_mut()
            .find_map(|it| if let Action::Retire { waiter, .. } = it { Some(waiter) } else { None });
        match (retired, own.is_empty()) {
            // Told when the last call is over and it is closed.
            (Some(it), _) => *it = Some(waiter),
            (None, false) => actions.push(Action::Answer(waiter, Answer::Released)),
            (None, true) => actions.push(Action::Answer(waiter, Answer::NotHeld)),
        }
        actions
    }

    /// A dialog is over. What a later one of that name has asked for stays.
    pub(super) fn dialog_over(&mut self, end: &DialogEnd) -> Vec<Action<I>> {
        let alike = self.leases.held.iter().filter(|it| it.dialog == end.dialog);
        let (own, later): (Vec<_>, Vec<_>) = alike.partition(|it| it.asked <= end.number);
        let own: Vec<Ticket> = own.into_iter().map(|it| it.ticket.clone()).collect();
        let later: Vec<ServerId> = later.into_iter().map(|it| it.ticket.server.clone()).collect();
        if later.is_empty() {
            self.forget_falls(&end.dialog);
        }
        self.leases.reminders.retain(|it| it.0 != end.dialog || later.contains(&it.1));
        self.leases.changed = true;
        let failure = HostError::new(ErrorKind::Connection, "the dialog is over");
        let going = Going {
            drain: Drain::Shut,
            answer: Answer::Refused(failure),
            reason: ReleaseReason::DialogEnded,
        };
        self.end_leases(|it| own.contains(it), going)
    }

    /// What was leased of a server on another base than `base` goes.
    pub(super) fn rebase(&mut self, server: &ServerId, base: Option<u64>) -> Vec<Action<I>> {
        let old = self.leases.held.iter().filter(|it| it.ticket.server == *server && Some(it.base) != base);
        let old: Vec<Ticket> = old.map(|it| it.ticket.clone()).collect();
        self.end_leases(|it| old.contains(it), Going::swapped(ReleaseReason::ServerChanged))
    }

    /// All leases end, for the host does.
    pub(super) fn close_leases(&mut self) -> Vec<Action<I>> {
        let going = Going {
            drain: Drain::Shut,
            answer: Answer::Refused(shut_down()),
            reason: ReleaseReason::HostShutdown,
        };
        self.leases.reminders.clear();
        self.end_leases(|_| true, going)
    }

    /// Leased instances keep the limits that their server has now.
    pub(super) fn limit_leases(&mut self) -> Vec<Action<I>> {
        let mut actions = Vec::new();
        for lease in &mut self.leases.held {
            let entry = self.slots.iter().filter_map(|it| it.live.as_ref());
            let Some(entry) = entry.into_iter().find(|it| it.ticket.number == lease.base) else { continue };
            if let State::Live(live) = &lease.state
                && lease.server.spec.limits != entry.server.spec.limits
            {
                actions.push(Action::Limit(live.instance.clone(), Arc::clone(&entry.server)));
            }
            lease.server = Arc::clone(&entry.server);
        }
        actions
    }

    /// Does what is due at `now`.
    pub(super) fn tick_leases(&mut self, now: Instant) -> Vec<Action<I>> {
        let within = self.probe().map(|it| it.timeout);
        let mut actions = Vec::new();
        for lease in &mut self.leases.held {
            let (ticket, State::Live(live)) = (&lease.ticket, &mut lease.state) else { continue };
            if live.look.is_some_and(|it| it <= now) {
                live.look = None;
                actions.push(Action::Look(ticket.clone(), live.instance.clone()));
            }
            if let (Some(within), true) = (within, live.probe.is_some_and(|it| it <= now)) {
                live.probe = None;
                let (ticket, instance) = (ticket.clone(), live.instance.clone());
                actions.push(Action::Probe { ticket, instance, within });
            }
        }
        actions
    }

    /// This machine has slept: all are asked.
    pub(super) fn wake_leases(&mut self, now: Instant) -> Vec<Action<I>> {
        if self.probe().is_none() {
            return Vec::new();
        }
        for lease in &mut self.leases.held {
            if let State::Live(live) = &mut lease.state
                && live.era == Era::Legacy
            {
                live.probe = Some(now);
            }
        }
        self.tick_leases(now)
    }

    /// A leased instance lives.
    pub(super) fn lease_alive(&mut self, ticket: &Ticket, now: Instant) {
        let Some(lease) = self.leases.held.iter_mut().find(|it| it.ticket == *ticket) else { return };
        if let State::Live(live) = &mut lease.state {
            let next = next_probe(&self.settings.supervision, &lease.server, now);
            live.probe = next.filter(|_| live.era == Era::Legacy);
        }
    }

    fn end_leases(&mut self, which: impl Fn(&Ticket) -> bool, going: Going<I>) -> Vec<Action<I>> {
        let mut actions = Vec::new();
        let (gone, kept) =
            std::mem::take(&mut self.leases.held).into_iter().partition(|it| which(&it.ticket));
        self.leases.held = kept;
        let gone: Vec<Lease<I>> = gone;
        for Lease { dialog, ticket, state, .. } in gone {
            self.leases.changed = true;
            match state {
                State::Starting(waiting) => {
                    actions.push(Action::Abort(ticket));
                    actions.extend(waiting.into_iter().map(|it| Action::Answer(it, going.answer.clone())));
                }
                State::Live(live) => {
                    let what = HostEventKind::Released { dialog: dialog.clone(), reason: going.reason };
                    self.news.push(News::new(ticket.server.as_str(), what));
                    // A server that was lost comes back with the next call, and what is remembered of it stays.
                    match going.reason {
                        ReleaseReason::Lost | ReleaseReason::ServerChanged => {}
                        ReleaseReason::Requested
                        | ReleaseReason::DialogEnded
                        | ReleaseReason::Idle
                        | ReleaseReason::HostShutdown => {
                            self.leases.reminders.retain(|it| *it != (dialog.clone(), ticket.server.clone()));
                        }
                    }
                    actions.push(Action::retire(live.instance, going.drain));
                }
            }
        }
        actions
    }
}

/// How leases end.
struct Going<I> {
    drain: Drain,
    /// What those are told who wait for one that is being started.
    answer: Answer<I>,
    reason: ReleaseReason,
}

impl<I> Going<I> {
    fn swapped(reason: ReleaseReason) -> Going<I> {
        Going { drain: Drain::Swap, answer: Answer::Again, reason }
    }
}

/// Is each dialog to have an instance of its own?
pub(super) fn is_leased(server: &ResolvedServer) -> bool {
    match server.spec.sharing {
        Sharing::Shared => false,
        Sharing::PerOwner => true,
    }
}

fn shut_down() -> HostError {
    HostError::new(ErrorKind::Connection, "the host was shut down")
}

fn released_meanwhile(server: &ServerId) -> HostError {
    let message = format!("server '{server}': its lease was given back while it was being started");
    HostError::new(ErrorKind::Connection, message)
}

#[cfg(test)]
mod tests;
