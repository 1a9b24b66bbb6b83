//! The model: the expected outcome of each call, derived from the events only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::calls::{Flag, Kind, Making, Terms, timed_out};
use crate::error::Expiry;
use crate::transport::{Epoch, RequestId};

/// The default timeout of a request, and the timeout for opening a session. A list uses the longer one.
pub(super) const REQUEST: Duration = Duration::from_millis(50);
pub(super) const STARTUP: Duration = Duration::from_millis(60);

/// A call.
pub(super) struct Call {
    pub(super) making: Option<Making>,
    pub(super) flag: Arc<Flag>,
    pub(super) terms: Terms,
    /// When its current request started; each page of a list is one.
    pub(super) begun: Instant,
    /// The deadline of a whole list.
    pub(super) whole: Option<Instant>,
    pub(super) stage: Stage,
    pub(super) repeated: bool,
    pub(super) reopened: bool,
    pub(super) pages: Vec<String>,
    pub(super) progress: Arc<AtomicUsize>,
    pub(super) want_progress: usize,
}

/// The stage of a call, and the expected result of its next poll.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// It sends a request, or ends because the connection is closed.
    Sends,
    /// Pending: its request is in flight.
    Waits(Waits),
    /// The session was lost and must be reopened, by this call or another.
    Reopens { asked: Instant, epoch: Epoch },
    /// It ends with one of these texts.
    Ends { words: Vec<String>, request: RequestId, due: Instant },
    /// It has ended or was dropped.
    Over,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    pub(super) request: RequestId,
    pub(super) epoch: Epoch,
    pub(super) idle: Option<(Instant, Duration)>,
    /// Number of open server requests that may belong to it; they pause its idle deadline.
    pub(super) asked: usize,
}

/// The outcome of a request.
#[derive(Debug, Clone)]
pub(super) enum Told {
    Result(String),
    /// A result followed by another page, for a list.
    Page(String),
    Error(String),
    Odd,
    Lost,
    TooLarge,
    NotExecuted,
}

impl Call {
    pub(super) fn new(making: Making, terms: Terms, progress: Arc<AtomicUsize>, any: &Arc<Notify>) -> Call {
        let now = Instant::now();
        Call {
            making: Some(making),
            flag: Arc::new(Flag { woken: AtomicBool::new(true), any: Arc::clone(any) }),
            terms,
            begun: now,
            whole: (terms.kind == Kind::Prompts).then(|| now + STARTUP.max(REQUEST)),
            stage: Stage::Sends,
            repeated: false,
            reopened: false,
            pages: Vec::new(),
            progress,
            want_progress: 0,
        }
    }

    pub(super) fn waits(&self) -> Option<&Waits> {
        match &self.stage {
            Stage::Waits(waits) => Some(waits),
            Stage::Sends | Stage::Reopens { .. } | Stage::Ends { .. } | Stage::Over => None,
        }
    }

    pub(super) fn waits_mut(&mut self) -> Option<&mut Waits> {
        match &mut self.stage {
            Stage::Waits(waits) => Some(waits),
            Stage::Sends | Stage::Reopens { .. } | Stage::Ends { .. } | Stage::Over => None,
        }
    }

    /// The timeout of one request.
    fn limit(&self) -> Duration {
        match self.terms.kind {
            Kind::Prompts => REQUEST,
            Kind::Tool | Kind::Raw | Kind::Ping | Kind::Read => {
                self.terms.deadline.map_or(REQUEST, Duration::from_millis)
            }
        }
    }

    /// The current deadlines.
    fn deadlines(&self) -> Vec<(Instant, Expiry)> {
        let absolute = Some((self.begun + self.limit(), Expiry::Absolute(self.limit())));
        let whole = self.whole.map(|it| (it, Expiry::Absolute(STARTUP.max(REQUEST))));
        let idle = self.waits().filter(|it| it.asked == 0).and_then(|it| it.idle);
        [absolute, whole, idle.map(|(at, limit)| (at, Expiry::Idle(limit)))].into_iter().flatten().collect()
    }

    /// The earliest deadline.
    pub(super) fn due(&self) -> Instant {
        self.deadlines().into_iter().map(|it| it.0).min().expect("each call has a deadline")
    }

    /// The possible expiries; the absolute deadline takes precedence.
    pub(super) fn expiries(&self) -> Vec<String> {
        let (due, deadlines) = (self.due(), self.deadlines());
        let first: Vec<Expiry> = deadlines.into_iter().filter(|it| it.0 == due).map(|it| it.1).collect();
        let is_absolute = |it: &Expiry| matches!(it, Expiry::Absolute(_));
        let any_absolute = first.iter().any(is_absolute);
        first.into_iter().filter(|it| !any_absolute || is_absolute(it)).map(timed_out).collect()
    }

    /// Records the sent request.
    pub(super) fn sent(&mut self, request: RequestId, epoch: Epoch) {
        let idle = match self.terms.kind {
            Kind::Prompts => None,
            Kind::Tool | Kind::Raw | Kind::Ping | Kind::Read => self.terms.idle.map(Duration::from_millis),
        };
        let idle = idle.map(|it| (Instant::now() + it, it));
        self.stage = Stage::Waits(Waits { request, epoch, idle, asked: 0 });
    }

    /// Records progress.
    pub(super) fn heard(&mut self) {
        if let Some((at, limit)) = self.waits_mut().and_then(|it| it.idle.as_mut()) {
            *at = Instant::now() + *limit;
        }
    }

    /// Records the outcome of the request in flight.
    pub(super) fn tell(&mut self, told: Told) {
        let Waits { request, epoch, .. } = *self.waits().expect("it waits");
        let due = self.due();
        let ends = |word: &str| Stage::Ends { words: vec![word.to_owned()], request, due };
        let kind = self.terms.kind;
        self.stage = match told {
            Told::Page(text) if kind == Kind::Prompts => {
                self.pages.push(text);
                (self.begun, self.repeated, self.reopened) = (Instant::now(), false, false);
                Stage::Sends
            }
            Told::Result(text) | Told::Page(text) => {
                self.pages.push(text);
                ends(&self.pages.join(" + "))
            }
            Told::Error(text) => ends(&text),
            Told::Odd => ends(kind.odd()),
            Told::Lost if kind.replays(self.terms.replay) && !self.repeated => {
                self.repeated = true;
                Stage::Sends
            }
            Told::Lost => ends(kind.lost()),
            Told::TooLarge => ends("too large"),
            Told::NotExecuted if self.reopened => {
                ends("the server loses the session as soon as it is opened")
            }
            Told::NotExecuted => {
                self.reopened = true;
                Stage::Reopens { asked: Instant::now(), epoch }
            }
        };
    }

    /// Whether progress was reported as often as expected.
    pub(super) fn check_progress(&self) {
        assert_eq!(self.progress.load(Ordering::Relaxed), self.want_progress, "progress of {:?}", self.terms);
    }
}
