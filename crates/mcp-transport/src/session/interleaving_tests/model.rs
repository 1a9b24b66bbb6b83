//! What is to become of each call: a second opinion, made of the events alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::calls::{Flag, Kind, Making, Terms, timed_out};
use crate::rpc::deadline::Expiry;
use crate::transport::{Epoch, RequestId};

/// What a request may take that says nothing else, and what a session may take to open. A list has the longer of both.
pub(super) const REQUEST: Duration = Duration::from_millis(50);
pub(super) const STARTUP: Duration = Duration::from_millis(60);

/// One call.
pub(super) struct Call {
    pub(super) making: Option<Making>,
    pub(super) flag: Arc<Flag>,
    pub(super) terms: Terms,
    /// When its request began; each page of a list is one.
    pub(super) begun: Instant,
    /// When a list is over, whichever page it is at.
    pub(super) whole: Option<Instant>,
    pub(super) stage: Stage,
    pub(super) repeated: bool,
    pub(super) reopened: bool,
    pub(super) pages: Vec<String>,
    pub(super) progress: Arc<AtomicUsize>,
    pub(super) want_progress: usize,
}

/// How far a call is, and what its next poll has to come to.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// It sends a request, or is told that there is nobody to send it to.
    Sends,
    /// Nothing: its request is with the peer.
    Waits(Waits),
    /// Its session is forgotten, and has to be opened again, by this call or by another.
    Reopens { asked: Instant, epoch: Epoch },
    /// It ends with one of these words; its last request was this, and due then.
    Ends { words: Vec<String>, request: RequestId, due: Instant },
    /// It has ended, or was given up.
    Over,
}

/// A request that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    pub(super) request: RequestId,
    pub(super) epoch: Epoch,
    pub(super) idle: Option<(Instant, Duration)>,
    /// How many questions are open that may be about it: its silence does not count meanwhile.
    pub(super) asked: usize,
}

/// What a request is told.
#[derive(Debug, Clone)]
pub(super) enum Told {
    Result(String),
    /// A result behind which another page follows, where it is a list's.
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

    /// The time of one request of it.
    fn limit(&self) -> Duration {
        match self.terms.kind {
            Kind::Prompts => REQUEST,
            Kind::Tool | Kind::Raw | Kind::Ping | Kind::Read => {
                self.terms.deadline.map_or(REQUEST, Duration::from_millis)
            }
        }
    }

    /// Its deadlines, as things are.
    fn deadlines(&self) -> Vec<(Instant, Expiry)> {
        let absolute = Some((self.begun + self.limit(), Expiry::Absolute(self.limit())));
        let whole = self.whole.map(|it| (it, Expiry::Absolute(STARTUP.max(REQUEST))));
        let idle = self.waits().filter(|it| it.asked == 0).and_then(|it| it.idle);
        [absolute, whole, idle.map(|(at, limit)| (at, Expiry::Idle(limit)))].into_iter().flatten().collect()
    }

    /// When the first of them passes.
    pub(super) fn due(&self) -> Instant {
        self.deadlines().into_iter().map(|it| it.0).min().expect("each call has a deadline")
    }

    /// What it may be told then: an absolute deadline stands before that of silence.
    pub(super) fn expiries(&self) -> Vec<String> {
        let (due, deadlines) = (self.due(), self.deadlines());
        let first: Vec<Expiry> = deadlines.into_iter().filter(|it| it.0 == due).map(|it| it.1).collect();
        let is_absolute = |it: &Expiry| matches!(it, Expiry::Absolute(_));
        let any_absolute = first.iter().any(is_absolute);
        first.into_iter().filter(|it| !any_absolute || is_absolute(it)).map(timed_out).collect()
    }

    /// It has sent a request.
    pub(super) fn sent(&mut self, request: RequestId, epoch: Epoch) {
        let idle = match self.terms.kind {
            Kind::Prompts => None,
            Kind::Tool | Kind::Raw | Kind::Ping | Kind::Read => self.terms.idle.map(Duration::from_millis),
        };
        let idle = idle.map(|it| (Instant::now() + it, it));
        self.stage = Stage::Waits(Waits { request, epoch, idle, asked: 0 });
    }

    /// Something was heard of it.
    pub(super) fn heard(&mut self) {
        if let Some((at, limit)) = self.waits_mut().and_then(|it| it.idle.as_mut()) {
            *at = Instant::now() + *limit;
        }
    }

    /// Its request, which waits, is told this.
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

    /// Its progress was told as often as it should have been.
    pub(super) fn check_progress(&self) {
        assert_eq!(self.progress.load(Ordering::Relaxed), self.want_progress, "progress of {:?}", self.terms);
    }
}
