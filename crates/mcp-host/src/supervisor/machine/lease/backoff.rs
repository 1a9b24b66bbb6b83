//! What a leased server is spared when its instances do not come up, or fall over soon: for a while calls are told why
//! at once, and nothing is started for them.
//!
//! A server that does not come up does so for nobody, and all dialogs wait together. One that falls over has been
//! called: that is between it and its dialog, whose own calls alone have to wait.
//!
//! Nobody waits for such a server, so nothing starts it by itself: the first call after the pause does. While that is
//! under way the others are still told why, so that a server that is down costs one process at a time, however many
//! dialogs call.

use std::time::Duration;

use mcp_model::ServerId;
use tokio::time::Instant;

use super::super::supervision::{Down, RestartPolicy, Supervision, Trouble};
use super::{Action, Answer, Drain, Going, Live, Machine, News, State, Ticket};
use crate::event::{HostEventKind, ReleaseReason};
use crate::failure::HostError;
use crate::supervisor::dialog::DialogId;

/// How many dialogs are remembered, of each server, whose instances have fallen over. Of more than these, what happens to
/// one is as good as a start that failed.
const MOST_FALLEN: usize = 1024;

/// What the instances of one leased server have been through.
#[derive(Debug, Default)]
pub(in crate::supervisor::machine) struct Past {
    /// Those of all dialogs: how they come up.
    starts: Tries,
    /// Those that had come up and have fallen over, by their dialog.
    fallen: Vec<(DialogId, Tries)>,
}

/// What went wrong with instances of one leased server, and how often in a row.
#[derive(Debug, Default)]
struct Tries {
    trouble: Trouble,
    /// Why the last one is not there; `None` once one is.
    failure: Option<HostError>,
    /// Since when they come up.
    well: Option<Instant>,
    /// The last start that had begun when something last went wrong: those before it fail for the same reason.
    counted: u64,
}

/// Something went wrong with an instance.
struct Setback<'a> {
    ticket: &'a Ticket,
    failure: HostError,
    down: Down,
}

impl Tries {
    /// Why a call gets no instance at `now`; `None` where one may be started for it.
    fn refusal(&self, is_tried: bool, now: Instant) -> Option<HostError> {
        let failure = self.failure.as_ref()?;
        let when = match self.trouble.next().and_then(|it| it.checked_duration_since(now)) {
            Some(left) if left > Duration::ZERO => {
                format!("the first call after {:.1} s starts it again", left.as_secs_f64())
            }
            Some(_) | None if is_tried => "it is being started again just now".to_owned(),
            Some(_) | None => return None,
        };
        Some(HostError { message: format!("{}; {when}", failure.message), ..failure.clone() })
    }

    /// One came up at `now`.
    fn well(&mut self, now: Instant) {
        self.failure = None;
        self.trouble.tried();
        self.well.get_or_insert(now);
    }

    /// One was lost, or did not come up. `starts` have begun until now.
    fn set_back(&mut self, policy: &RestartPolicy, setback: Setback<'_>, starts: u64, now: Instant) {
        let Setback { ticket, failure, down } = setback;
        let is_old = ticket.number <= self.counted && self.failure.is_some();
        self.failure = Some(failure);
        if is_old {
            return;
        }
        let well = self.well.take().map(|it| now.saturating_duration_since(it));
        let down = Down { uptime: down.uptime.or(well), ..down };
        self.trouble.setback(policy, ticket.server.as_str(), down, now);
        self.counted = starts;
    }
}

impl Past {
    /// Why an instance could not be had or kept, as long as that is so: the first such reason.
    pub(in crate::supervisor::machine) fn failure(&self) -> Option<&HostError> {
        let fallen = self.fallen.iter().filter_map(|it| it.1.failure.as_ref());
        self.starts.failure.iter().chain(fallen).next()
    }

    fn fallen(&mut self, dialog: &DialogId) -> Option<&mut Tries> {
        self.fallen.iter_mut().find(|it| it.0 == *dialog).map(|it| &mut it.1)
    }

    /// Where the fall of an instance of `dialog` is noted.
    fn of(&mut self, dialog: &DialogId) -> &mut Tries {
        let at = match self.fallen.iter().position(|it| it.0 == *dialog) {
            Some(at) => at,
            None if self.fallen.len() < MOST_FALLEN => {
                self.fallen.push((dialog.clone(), Tries::default()));
                self.fallen.len() - 1
            }
            None => return &mut self.starts,
        };
        &mut self.fallen[at].1
    }

    /// The dialog is over. Gives whether there was a reason to be told of.
    pub(super) fn forget(&mut self, dialog: &DialogId) -> bool {
        let was_down = self.fallen(dialog).is_some_and(|it| it.failure.is_some());
        self.fallen.retain(|it| it.0 != *dialog);
        was_down
    }
}

impl<I: Clone> Machine<I> {
    /// Why a call of `dialog` gets no instance of `server` at `now`.
    pub(super) fn lease_refusal(
        &mut self,
        server: &ServerId,
        dialog: &DialogId,
        now: Instant,
    ) -> Option<HostError> {
        let is_tried = self.leases.held.iter().any(|it| match it.state {
            State::Starting(_) => it.ticket.server == *server,
            State::Live(_) => false,
        });
        let past = self.past(server)?;
        let own = past.fallen(dialog).and_then(|it| it.refusal(false, now));
        past.starts.refusal(is_tried, now).or(own)
    }

    /// An instance of `dialog` came up.
    pub(super) fn lease_is_well(&mut self, server: &ServerId, dialog: &DialogId, now: Instant) {
        let Some(past) = self.past(server) else { return };
        let was_down = past.failure().is_some();
        past.starts.well(now);
        if let Some(own) = past.fallen(dialog) {
            own.well(now);
        }
        self.changed |= was_down;
    }

    /// A start of a lease failed.
    pub(in crate::supervisor::machine) fn lease_failed(
        &mut self,
        ticket: &Ticket,
        failure: HostError,
        now: Instant,
    ) -> Vec<Action<I>> {
        let Some(at) = self.leases.held.iter().position(|it| it.ticket == *ticket) else { return Vec::new() };
        let lease = self.leases.held.remove(at);
        let (server, dialog) = (ticket.server.as_str(), lease.dialog);
        self.news.push(News::new(server, HostEventKind::LeaseFailed { dialog, error: failure.clone() }));
        let down = Down { kind: failure.kind, uptime: None };
        self.lease_set_back(Setback { ticket, failure: failure.clone(), down }, None, now);
        match lease.state {
            State::Starting(waiting) => {
                waiting.into_iter().map(|it| Action::Answer(it, Answer::Refused(failure.clone()))).collect()
            }
            State::Live(live) => vec![Action::retire(live.instance, Drain::Swap)],
        }
    }

    /// A leased instance is gone. One that ran for long is replaced with its dialog's next call; one that fell over
    /// soon after a pause.
    pub(in crate::supervisor::machine) fn lease_died(
        &mut self,
        ticket: &Ticket,
        failure: HostError,
        now: Instant,
    ) -> Vec<Action<I>> {
        let Some((Live { since, .. }, _, dialog)) = self.leases.live_by(ticket) else { return Vec::new() };
        let dialog = dialog.clone();
        let uptime = now.saturating_duration_since(*since);
        let lasted = match &self.settings.supervision {
            Supervision::Off => true,
            Supervision::Restart(policy) => uptime >= policy.stable_after,
        };
        if !lasted {
            let down = Down { kind: failure.kind, uptime: Some(uptime) };
            self.lease_set_back(Setback { ticket, failure: failure.clone(), down }, Some(&dialog), now);
        }
        self.news.push(News::new(ticket.server.as_str(), HostEventKind::Lost(failure)));
        self.end_leases(|it| it == ticket, Going::swapped(ReleaseReason::Lost))
    }

    /// An instance is not there: one of `dialog`, which had come up, or else one that did not.
    fn lease_set_back(&mut self, setback: Setback<'_>, dialog: Option<&DialogId>, now: Instant) {
        let Supervision::Restart(policy) = &self.settings.supervision else { return };
        let server = setback.ticket.server.as_str();
        let Some(slot) = self.slots.iter_mut().find(|it| it.name == server) else { return };
        let tries = match dialog {
            Some(dialog) => slot.past.of(dialog),
            None => &mut slot.past.starts,
        };
        tries.set_back(policy, setback, self.starts, now);
        self.changed = true;
    }

    /// Nobody asks for a dialog any more that is over.
    pub(super) fn forget_falls(&mut self, dialog: &DialogId) {
        for slot in &mut self.slots {
            self.changed |= slot.past.forget(dialog);
        }
    }

    fn past(&mut self, server: &ServerId) -> Option<&mut Past> {
        let slot = self.slots.iter_mut().find(|it| it.name == server.as_str())?;
        Some(&mut slot.past)
    }
}
