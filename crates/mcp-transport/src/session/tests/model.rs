//! The model: the expected outcome of each call, derived from the events only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::calls::{CallFuture, CallKind, CallSpec, WakeFlag, timed_out};
use crate::error::Expiry;
use crate::transport::{Epoch, RequestId};

/// The default timeout of a request, and the timeout for reopening a session. A list uses the longer one.
pub(super) const REQUEST: Duration = Duration::from_millis(50);
pub(super) const STARTUP: Duration = Duration::from_millis(60);

/// A call.
pub(super) struct Call {
    pub(super) future: Option<CallFuture>,
    pub(super) flag: Arc<WakeFlag>,
    pub(super) spec: CallSpec,
    /// When its current request started; each page of a list is one.
    pub(super) started_at: Instant,
    /// The deadline of a list_deadline list.
    pub(super) list_deadline: Option<Instant>,
    pub(super) stage: Stage,
    pub(super) retried: bool,
    pub(super) reopened: bool,
    pub(super) pages: Vec<String>,
    pub(super) progress: Arc<AtomicUsize>,
    pub(super) want_progress: usize,
}

/// The stage of a call, and the expected result of its next poll.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// It sends a request, or ends because the connection is closed.
    Sending,
    /// Pending: its request is in flight.
    Waiting(Waiting),
    /// The session was lost and must be reopened, by this call or another.
    ReopeningSession { since: Instant, epoch: Epoch },
    /// It ends with one of these texts.
    Ending { texts: Vec<String>, request: RequestId, due: Instant },
    /// It has ended or was dropped.
    Done,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) request: RequestId,
    pub(super) epoch: Epoch,
    pub(super) idle: Option<(Instant, Duration)>,
    /// Number of open server requests that may belong to it; they pause its idle deadline.
    pub(super) open_server_requests: usize,
}

/// The outcome of a request.
#[derive(Debug, Clone)]
pub(super) enum RequestOutcome {
    Result(String),
    /// A result followed by another page, for a list.
    Page(String),
    Error(String),
    Invalid,
    Lost,
    TooLarge,
    NotExecuted,
}

impl Call {
    pub(super) fn new(
        future: CallFuture,
        spec: CallSpec,
        progress: Arc<AtomicUsize>,
        any: &Arc<Notify>,
    ) -> Call {
        let now = Instant::now();
        Call {
            future: Some(future),
            flag: Arc::new(WakeFlag { woken: AtomicBool::new(true), any: Arc::clone(any) }),
            spec,
            started_at: now,
            list_deadline: (spec.kind == CallKind::Prompts).then(|| now + STARTUP.max(REQUEST)),
            stage: Stage::Sending,
            retried: false,
            reopened: false,
            pages: Vec::new(),
            progress,
            want_progress: 0,
        }
    }

    pub(super) fn waits(&self) -> Option<&Waiting> {
        match &self.stage {
            Stage::Waiting(waits) => Some(waits),
            Stage::Sending | Stage::ReopeningSession { .. } | Stage::Ending { .. } | Stage::Done => None,
        }
    }

    pub(super) fn waits_mut(&mut self) -> Option<&mut Waiting> {
        match &mut self.stage {
            Stage::Waiting(waits) => Some(waits),
            Stage::Sending | Stage::ReopeningSession { .. } | Stage::Ending { .. } | Stage::Done => None,
        }
    }

    /// The timeout of one request.
    fn limit(&self) -> Duration {
        match self.spec.kind {
            CallKind::Prompts => REQUEST,
            CallKind::Tool | CallKind::Raw | CallKind::Ping | CallKind::Read => {
                self.spec.deadline.map_or(REQUEST, Duration::from_millis)
            }
        }
    }

    /// The current deadlines.
    fn deadlines(&self) -> Vec<(Instant, Expiry)> {
        let absolute = Some((self.started_at + self.limit(), Expiry::Absolute(self.limit())));
        let list_deadline = self.list_deadline.map(|it| (it, Expiry::Absolute(STARTUP.max(REQUEST))));
        let idle = self.waits().filter(|it| it.open_server_requests == 0).and_then(|it| it.idle);
        [absolute, list_deadline, idle.map(|(at, limit)| (at, Expiry::Idle(limit)))]
            .into_iter()
            .flatten()
            .collect()
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
        let idle = match self.spec.kind {
            CallKind::Prompts => None,
            CallKind::Tool | CallKind::Raw | CallKind::Ping | CallKind::Read => {
                self.spec.idle.map(Duration::from_millis)
            }
        };
        let idle = idle.map(|it| (Instant::now() + it, it));
        self.stage = Stage::Waiting(Waiting { request, epoch, idle, open_server_requests: 0 });
    }

    /// Records progress.
    pub(super) fn record_progress(&mut self) {
        if let Some((at, limit)) = self.waits_mut().and_then(|it| it.idle.as_mut()) {
            *at = Instant::now() + *limit;
        }
    }

    /// Records the outcome of the request in flight.
    pub(super) fn set_outcome(&mut self, outcome: RequestOutcome) {
        let Waiting { request, epoch, .. } = *self.waits().expect("it waits");
        let due = self.due();
        let ends = |word: &str| Stage::Ending { texts: vec![word.to_owned()], request, due };
        let kind = self.spec.kind;
        self.stage = match outcome {
            RequestOutcome::Page(text) if kind == CallKind::Prompts => {
                self.pages.push(text);
                (self.started_at, self.retried, self.reopened) = (Instant::now(), false, false);
                Stage::Sending
            }
            RequestOutcome::Result(text) | RequestOutcome::Page(text) => {
                self.pages.push(text);
                ends(&self.pages.join(" + "))
            }
            RequestOutcome::Error(text) => ends(&text),
            RequestOutcome::Invalid => ends(kind.invalid_text()),
            RequestOutcome::Lost if kind.retries(self.spec.retry) && !self.retried => {
                self.retried = true;
                Stage::Sending
            }
            RequestOutcome::Lost => ends(kind.lost_text()),
            RequestOutcome::TooLarge => ends("too large"),
            RequestOutcome::NotExecuted if self.reopened => {
                ends("the server loses the session as soon as it is opened")
            }
            RequestOutcome::NotExecuted => {
                self.reopened = true;
                Stage::ReopeningSession { since: Instant::now(), epoch }
            }
        };
    }

    /// Whether progress was reported as often as expected.
    pub(super) fn check_progress(&self) {
        assert_eq!(self.progress.load(Ordering::Relaxed), self.want_progress, "progress of {:?}", self.spec);
    }
}
