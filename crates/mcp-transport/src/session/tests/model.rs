//! The model: the expected outcome of each call, derived from the events only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::calls::{CallFuture, CallKind, CallSpec, WakeFlag, expiry_text};
use crate::error::Expiry;
use crate::transport::{Epoch, RequestId};

/// The default timeout of a request, and the timeout for reopening a session. The timeout of a list is the longer one.
pub(super) const REQUEST: Duration = Duration::from_millis(50);
pub(super) const STARTUP: Duration = Duration::from_millis(60);

/// A call and its state in the model.
pub(super) struct Call {
    pub(super) future: Option<CallFuture>,
    pub(super) flag: Arc<WakeFlag>,
    pub(super) spec: CallSpec,
    /// When the current request started. Each page of a list is a request.
    pub(super) started_at: Instant,
    /// The deadline of a list for all of its pages.
    pub(super) list_deadline: Option<Instant>,
    pub(super) stage: Stage,
    pub(super) retried: bool,
    pub(super) reopened: bool,
    /// The texts of the pages that were received.
    pub(super) pages: Vec<String>,
    /// The actual number of progress reports.
    pub(super) progress: Arc<AtomicUsize>,
    /// The expected number of progress reports.
    pub(super) want_progress: usize,
}

/// The stage of a call, and the expected result of its next poll.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// The next poll sends a request, or ends the call because the connection is closed.
    Sending,
    /// The request is in flight.
    Waiting(Waiting),
    /// The session was lost and must be reopened, by this call or another.
    ReopeningSession { since: Instant, epoch: Epoch },
    /// The next poll ends the call with one of these texts.
    Ending { texts: Vec<String>, request: RequestId, due: Instant },
    /// The call has ended or was dropped.
    Done,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) request: RequestId,
    pub(super) epoch: Epoch,
    /// The idle deadline and its timeout.
    pub(super) idle: Option<(Instant, Duration)>,
    /// The number of open server requests that may belong to the request. They pause its idle deadline.
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
        any_woken: &Arc<Notify>,
    ) -> Call {
        let now = Instant::now();
        Call {
            future: Some(future),
            flag: Arc::new(WakeFlag { woken: AtomicBool::new(true), any_woken: Arc::clone(any_woken) }),
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

    /// The request in flight, if there is one.
    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.stage {
            Stage::Waiting(waiting) => Some(waiting),
            Stage::Sending | Stage::ReopeningSession { .. } | Stage::Ending { .. } | Stage::Done => None,
        }
    }

    /// Like [`Call::waiting`], mutable.
    pub(super) fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        match &mut self.stage {
            Stage::Waiting(waiting) => Some(waiting),
            Stage::Sending | Stage::ReopeningSession { .. } | Stage::Ending { .. } | Stage::Done => None,
        }
    }

    /// The text of a list whose later page failed: the pages before it are kept.
    pub(super) fn kept_pages_text(&self) -> Option<String> {
        (self.spec.kind == CallKind::Prompts && !self.pages.is_empty()).then(|| self.pages.join(" + "))
    }

    /// Whether a call that ended with this text has reached a deadline.
    pub(super) fn is_expiry(&self, text: &str) -> bool {
        let is_kept = self.kept_pages_text().is_some_and(|kept| kept == text);
        text.starts_with("Absolute") || text.starts_with("Idle") || (is_kept && self.due() <= Instant::now())
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

    /// The current deadlines, each with the expiry that it causes.
    fn deadlines(&self) -> Vec<(Instant, Expiry)> {
        let absolute = Some((self.started_at + self.limit(), Expiry::Absolute(self.limit())));
        let list_deadline = self.list_deadline.map(|it| (it, Expiry::Absolute(STARTUP.max(REQUEST))));
        let idle = self.waiting().filter(|it| it.open_server_requests == 0).and_then(|it| it.idle);
        [absolute, list_deadline, idle.map(|(at, limit)| (at, Expiry::Idle(limit)))]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The earliest deadline.
    pub(super) fn due(&self) -> Instant {
        self.deadlines().into_iter().map(|it| it.0).min().expect("each call has a deadline")
    }

    /// The texts of the expiries that are possible at the earliest deadline. Absolute deadlines take precedence.
    pub(super) fn expiries(&self) -> Vec<String> {
        let (due, deadlines) = (self.due(), self.deadlines());
        let first: Vec<Expiry> = deadlines.into_iter().filter(|it| it.0 == due).map(|it| it.1).collect();
        let is_absolute = |it: &Expiry| matches!(it, Expiry::Absolute(_));
        let any_absolute = first.iter().any(is_absolute);
        if let Some(text) = self.kept_pages_text() {
            return vec![text];
        }
        first.into_iter().filter(|it| !any_absolute || is_absolute(it)).map(expiry_text).collect()
    }

    /// Records that the request was sent.
    pub(super) fn record_sent(&mut self, request: RequestId, epoch: Epoch) {
        let idle = match self.spec.kind {
            CallKind::Prompts => None,
            CallKind::Tool | CallKind::Raw | CallKind::Ping | CallKind::Read => {
                self.spec.idle.map(Duration::from_millis)
            }
        };
        let idle = idle.map(|it| (Instant::now() + it, it));
        self.stage = Stage::Waiting(Waiting { request, epoch, idle, open_server_requests: 0 });
    }

    /// Records progress, which restarts the idle deadline.
    pub(super) fn record_progress(&mut self) {
        if let Some((at, limit)) = self.waiting_mut().and_then(|it| it.idle.as_mut()) {
            *at = Instant::now() + *limit;
        }
    }

    /// Records the outcome of the request in flight.
    pub(super) fn set_outcome(&mut self, outcome: RequestOutcome) {
        let Waiting { request, epoch, .. } = *self.waiting().expect("a request is in flight");
        let due = self.due();
        let ending = |text: &str| Stage::Ending { texts: vec![text.to_owned()], request, due };
        let kept = self.kept_pages_text();
        let failing = |text: &str| ending(kept.as_deref().unwrap_or(text));
        let kind = self.spec.kind;
        self.stage = match outcome {
            RequestOutcome::Page(text) if kind == CallKind::Prompts => {
                self.pages.push(text);
                (self.started_at, self.retried, self.reopened) = (Instant::now(), false, false);
                Stage::Sending
            }
            RequestOutcome::Result(text) | RequestOutcome::Page(text) => {
                self.pages.push(text);
                ending(&self.pages.join(" + "))
            }
            RequestOutcome::Error(text) => failing(&text),
            RequestOutcome::Invalid => failing(kind.invalid_text()),
            RequestOutcome::Lost if kind.retries(self.spec.retry) && !self.retried => {
                self.retried = true;
                Stage::Sending
            }
            RequestOutcome::Lost => ending(kind.lost_text()),
            RequestOutcome::TooLarge => failing("too large"),
            RequestOutcome::NotExecuted if self.reopened => {
                ending("the server loses the session as soon as it is opened")
            }
            RequestOutcome::NotExecuted => {
                self.reopened = true;
                Stage::ReopeningSession { since: Instant::now(), epoch }
            }
        };
    }

    /// Checks that progress was reported as often as expected.
    pub(super) fn check_progress(&self) {
        assert_eq!(self.progress.load(Ordering::Relaxed), self.want_progress, "progress of {:?}", self.spec);
    }
}
