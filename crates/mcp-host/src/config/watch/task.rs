//! The task that follows files. It decides nothing: it waits for whatever comes first, has the files read where that
//! blocks nobody, and hands over what they want.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_registry::Problem;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::Instant;

use super::FollowRequest;
use super::approved::{LockLook, LockNews, look_at_lock};
use super::debounce::Debounce;
use super::ear::{Ear, Heard, MakeWatch, Trust};
use super::event::{FollowEvent, WatchMode};
use super::files::{Asked, Files, Judgement, Since};
use super::look::{Look, Sources, absolute, is_same, look};
use crate::config::load::LoadRequest;
use crate::fs::blocking_pool::{Bench, End, Work};
use crate::metrics::Reload;
use crate::supervisor::committer::Command;

/// How many readings may hang.
const MOST_HANGING: usize = 4;

/// The task's state.
pub(super) struct Follower {
    files: Files,
    commands: mpsc::Sender<Command>,
    events: broadcast::Sender<FollowEvent>,
    make: Option<MakeWatch>,
    heard: Arc<Heard>,
    bench: Bench,
    /// Not here while it is at work.
    ear: Option<Ear>,
    debounce: Debounce,
    /// When something that is not believed yet is looked at again.
    again: Option<Instant>,
    poll: Duration,
    next_poll: Instant,
    trust: Trust,
    /// What was heard before the files are read next.
    since: Since,
    watching: Option<WatchMode>,
    /// What was last said of the files.
    said: Vec<Problem>,
}

/// What the files are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Is anything new?
    Poll,
    /// To be judged.
    Judge(Trust, Since),
}

/// What came of it.
struct Round {
    ear: Ear,
    purpose: Purpose,
    news: News,
}

enum News {
    /// Nothing is new, or it is not looked at more closely yet.
    Changed(bool),
    /// A look at each file that is not as it was.
    Looks(Vec<Option<Look>>, Option<LockLook>, Since),
}

impl Follower {
    pub(super) fn new(
        request: FollowRequest,
        commands: mpsc::Sender<Command>,
        events: broadcast::Sender<FollowEvent>,
        make: Option<MakeWatch>,
    ) -> Follower {
        let FollowRequest {
            files,
            lock,
            debounce,
            max_delay: longest_wait,
            settle,
            poll_interval: poll,
            read_timeout: patience,
        } = request;
        let debounce = debounce.clamp(Duration::from_millis(100), Duration::from_millis(500));
        let heard = Arc::new(Heard::default());
        Follower {
            files: Files::new(files, settle).locked(lock),
            commands,
            events,
            ear: Some(Ear::new(make.clone(), Arc::clone(&heard))),
            make,
            heard,
            bench: Bench::new(patience, MOST_HANGING),
            debounce: Debounce::new(debounce, longest_wait),
            again: None,
            poll: poll.clamp(Duration::from_millis(100), Duration::from_secs(3600)),
            next_poll: Instant::now(),
            trust: Trust::Keep,
            since: Since::Silent,
            watching: None,
            said: Vec::new(),
        }
    }

    /// Follows until it is told to stop, or its host shuts down. `begun` hears of the first reading.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>, begun: oneshot::Sender<()>) {
        let mut begun = Some(begun);
        let mut job = Some(self.begin(Purpose::Judge(Trust::Keep, Since::Silent)));
        loop {
            let due = self.due();
            tokio::select! {
                biased;
                // Whoever has dropped the other end wants the same.
                _ = &mut stopped => break,
                () = self.commands.closed() => return,
                Some(joined) = finished(&mut job) => {
                    job = None;
                    self.take(joined).await;
                    // Whoever waited for it may have stopped waiting.
                    begun.take().map(|it| it.send(()));
                }
                purpose = until(due), if job.is_none() => job = Some(self.begin(purpose)),
                () = self.heard.news() => {
                    self.since = Since::Told;
                    self.debounce = self.debounce.heard(Instant::now());
                }
            }
        }
        // Nobody would take back what is said of the files now.
        self.say((None, None), Vec::new(), None).await;
    }

    /// What is to be done next, and when.
    fn due(&self) -> (Instant, Purpose) {
        let judge = self.debounce.due().into_iter().chain(self.again).min();
        match judge {
            Some(at) if at <= self.next_poll => (at, Purpose::Judge(self.trust, self.since)),
            Some(_) | None => (self.next_poll, Purpose::Poll),
        }
    }

    /// Has the files read beside this task.
    fn begin(&mut self, purpose: Purpose) -> Work<Round> {
        match purpose {
            Purpose::Poll => {}
            Purpose::Judge(..) => {
                self.since = Since::Silent;
                self.debounce = self.debounce.taken();
                self.again = None;
                self.trust = Trust::Keep;
            }
        }
        let ear = self.ear.take().unwrap_or_else(|| Ear::new(self.make.clone(), Arc::clone(&self.heard)));
        let asked = self.files.asked();
        self.bench.begin(move || read(ear, &asked, purpose))
    }

    async fn take(&mut self, ended: Result<End<Round>, JoinError>) {
        let now = Instant::now();
        self.next_poll = now + self.poll;
        let Round { ear, purpose, news } = match ended {
            Ok(End::Done(round)) => round,
            // What was read last stays; the next look may be at something that can be read.
            Ok(End::GivenUp) => return self.not_read("they do not answer").await,
            Ok(End::Failed) => return self.not_read("a defect of this host ended it").await,
            Err(error) => return self.not_read(&error.to_string()).await,
        };
        let watching = match (&self.make, ear.trouble()) {
            (None, _) => WatchMode::PollOnly(None),
            (Some(_), None) => WatchMode::System,
            (Some(_), Some(why)) => WatchMode::PollOnly(Some(why.to_owned())),
        };
        self.ear = Some(ear);
        let (judgement, LockNews { approval, event }) = match news {
            News::Looks(looks, lock, since) => {
                (self.files.judge(looks, since, now), self.files.judge_lock(lock))
            }
            News::Changed(changed) => {
                if changed {
                    // What was found without having been told of it was missed by the watches.
                    self.trust = Trust::Renew;
                    self.debounce = self.debounce.heard(now);
                }
                (Judgement { again: self.again, ..Judgement::default() }, LockNews::default())
            }
        };
        let Judgement { wanted, events, again } = judgement;
        tracing::debug!(
            ?purpose,
            reload = wanted.is_some(),
            doubted = again.is_some(),
            "looked at the files"
        );
        self.again = again;
        let problems = self.files.problems(None).into_iter().chain(unwatched(&watching)).collect();
        let refused = events.iter().any(|it| matches!(it, FollowEvent::Refused(_)));
        let outcome = match (&wanted, refused) {
            (Some(_), _) => Some(Reload::Taken),
            (None, true) => Some(Reload::Refused),
            (None, false) => None,
        };
        if outcome.is_some() || approval.is_some() || self.said != problems {
            self.say((wanted, approval), problems, outcome).await;
        }
        let changed = self.watching.as_ref() != Some(&watching);
        let news = changed.then(|| FollowEvent::WatchModeChanged(watching.clone()));
        self.watching = Some(watching);
        for event in news.into_iter().chain(events).chain(event) {
            // Fails when nobody fetches them.
            let _ = self.events.send(event);
        }
    }

    /// The files could not be read, which whoever waits for them is told. What still hangs there must not be heard when
    /// it comes back.
    async fn not_read(&mut self, why: &str) {
        tracing::error!(why, "reading the files that are followed failed");
        self.heard = Arc::new(Heard::default());
        self.ear = None;
        let watching = self.watching.as_ref().and_then(unwatched);
        let problems = self.files.problems(Some(why)).into_iter().chain(watching).collect();
        if self.said != problems {
            self.say((None, None), problems, Some(Reload::Unread)).await;
        }
    }

    /// Tells the host what is wanted and what is approved from now on, if that is something else, what is wrong with the
    /// files, and what became of what they said anew.
    async fn say(
        &mut self,
        (wanted, approval): (
            Option<crate::config::desired::DesiredServers>,
            Option<crate::config::approval::Approval>,
        ),
        problems: Vec<Problem>,
        outcome: Option<Reload>,
    ) {
        self.said.clone_from(&problems);
        let (answer, taken) = oneshot::channel();
        let command = Command::Adopt { wanted: wanted.map(Box::new), approval, problems, outcome, answer };
        if self.commands.send(command).await.is_ok() {
            // No answer means that the host is gone, which the next wait finds out.
            let _ = taken.await;
        }
    }
}

async fn until((at, purpose): (Instant, Purpose)) -> Purpose {
    tokio::time::sleep_until(at).await;
    purpose
}

/// The end of the job; `None` at once where there is none.
async fn finished(job: &mut Option<Work<Round>>) -> Option<Result<End<Round>, JoinError>> {
    match job {
        Some(job) => Some(job.end().await),
        None => None,
    }
}

fn unwatched(watching: &WatchMode) -> Option<Problem> {
    match watching {
        WatchMode::PollOnly(Some(why)) => Some(Problem::workspace_unwatched(why)),
        WatchMode::System | WatchMode::PollOnly(None) => None,
    }
}

/// Listens, then reads, so that no change falls between the two. Blocks.
fn read(mut ear: Ear, asked: &Asked, purpose: Purpose) -> Round {
    let requests = asked.files.as_slice();
    let is_news = |seen: &Option<Sources>| seen.as_ref().is_none_or(|it| !is_same(it));
    let (trust, since) = match purpose {
        Purpose::Poll => {
            let is_new = requests.iter().any(|(_, seen)| is_news(seen)) || look_at(asked).is_some();
            // An ear that does not hear is tried again.
            if !is_new && ear.trouble().is_some() {
                ear.attend(&paths(asked, &[]), Trust::Keep);
            }
            return Round { ear, purpose, news: News::Changed(is_new) };
        }
        Purpose::Judge(trust, since) => (trust, since),
    };
    let attended = paths(asked, &[]);
    ear.attend(&attended, trust);
    let looks = |requests: &[(LoadRequest, Option<Sources>)]| -> Vec<Option<Look>> {
        requests.iter().map(|(request, seen)| is_news(seen).then(|| look(request))).collect()
    };
    let mut res = looks(requests);
    let needed = paths(asked, &res);
    if attended != needed {
        ear.attend(&needed, Trust::Keep);
        // A configuration may refer to files that nobody listened to while they were read.
        if !attended.is_superset(&needed) {
            res = looks(requests);
        }
    }
    Round { ear, purpose, news: News::Looks(res, look_at(asked), since) }
}

/// Looks at the lock, where there is one to look at.
fn look_at(asked: &Asked) -> Option<LockLook> {
    let (path, seen) = asked.lock.as_ref()?;
    look_at_lock(path, seen.as_ref())
}

/// Every file that matters, from the root on.
fn paths(asked: &Asked, looks: &[Option<Look>]) -> BTreeSet<PathBuf> {
    let requests = asked.files.as_slice();
    let named = requests.iter().flat_map(|(request, _)| [Some(&request.path), request.env_file.as_ref()]);
    let named = named.flatten().chain(asked.lock.as_ref().map(|it| &it.0));
    let mut res: BTreeSet<PathBuf> = named.map(|it| absolute(it)).collect();
    let seen = |at: usize| match looks.get(at) {
        Some(Some(look)) => Some(&look.sources),
        Some(None) | None => requests[at].1.as_ref(),
    };
    res.extend((0..requests.len()).filter_map(seen).flat_map(|it| it.keys().cloned()));
    res
}

#[cfg(test)]
mod tests;
