//! Several files and what is wanted by all of them: looks in, a configuration and news out. Nothing here waits or
//! asks the time.
//!
//! Each file keeps what it last said that could be used. One that is refused (DM-121; for HoloDeck any error) goes on
//! saying that; so does one that has suddenly nothing in it, until it has had nothing for a while: an editor that
//! empties a file before it writes it must not stop every server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use mcp_config::{Profile, detect};
use mcp_model::{Dialect, ErrorKind};
use mcp_registry::{DesiredServer, Problem, ReloadPlan};
use tokio::time::Instant;

use super::approved::{FollowLock, LockLook, LockNews, Locked};
use super::event::{FilePresence, FollowEvent, RefusedFile, Reload, ReloadedFile, ShadowedServer};
use super::look::{Content, Look, Sources, is_absent};
use super::merge::{Good, merge};
use crate::config::desired::DesiredServers;
use crate::config::load::{LoadError, LoadRequest, LoadedConfig};
use crate::failure::HostError;
use crate::supervisor::machine::desired;

/// All files that are followed.
pub(crate) struct Files {
    files: Vec<File>,
    /// How long a file may have nothing in it before that is believed.
    settle: Duration,
    /// What was wanted last, as a plan compares it.
    desired: Vec<DesiredServer>,
    /// What of it does not count.
    shadowed: Vec<ShadowedServer>,
    /// What is approved of the servers.
    lock: Option<Locked>,
}

/// Everything to look at, and what was seen there when it was judged last.
pub(crate) struct Asked {
    /// The files.
    pub(crate) files: Vec<(LoadRequest, Option<Sources>)>,
    /// The lock.
    pub(crate) lock: Option<(PathBuf, Option<Content>)>,
}

/// One file.
struct File {
    request: LoadRequest,
    path: String,
    /// What was judged last.
    seen: Option<Sources>,
    /// Something that was there is not, which is not believed yet.
    doubt: Option<Doubt>,
    /// What it said last that could be used.
    good: Option<Good>,
    /// Why it is not used as it is.
    refusal: Option<HostError>,
}

/// Something has vanished.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// Since when every look has found it so.
    first: Instant,
    /// Since when it may have been so without a break: between two looks it may have come and gone again, which is
    /// heard of.
    since: Instant,
}

impl Doubt {
    /// When it is believed. What is heard of without end may concern other files.
    fn end(self, settle: Duration) -> Instant {
        (self.since + settle).min(self.first + settle * MOST_PATIENCE)
    }
}

/// How often a doubt may begin anew because something was heard.
const MOST_PATIENCE: u32 = 8;

/// Whether anything was heard of the files since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// Something was.
    Told,
    /// Nothing was, which means little where nothing is listened to.
    Silent,
}

/// What looks led to.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The configuration, where it is to be applied.
    pub(crate) wanted: Option<DesiredServers>,
    /// What happened.
    pub(crate) events: Vec<FollowEvent>,
    /// When to look again, because something is not believed yet.
    pub(crate) again: Option<Instant>,
}

/// What became of one file.
enum Verdict {
    Same,
    Doubted,
    Taken(ReloadedFile),
    Refused(RefusedFile),
}

impl Files {
    /// Files that were not looked at yet, in the order of their precedence.
    pub(crate) fn new(requests: Vec<LoadRequest>, settle: Duration) -> Files {
        let file = |request: LoadRequest| {
            let path = request.path.display().to_string();
            File { request, path, seen: None, doubt: None, good: None, refusal: None }
        };
        Files {
            files: requests.into_iter().map(file).collect(),
            settle,
            desired: Vec::new(),
            shadowed: Vec::new(),
            lock: None,
        }
    }

    /// With this lock beside them.
    pub(crate) fn locked(self, lock: Option<FollowLock>) -> Files {
        Files { lock: lock.map(Locked::new), ..self }
    }

    /// What to look at.
    pub(crate) fn asked(&self) -> Asked {
        Asked {
            files: self.files.iter().map(|it| (it.request.clone(), it.seen.clone())).collect(),
            lock: self.lock.as_ref().map(Locked::request),
        }
    }

    /// Takes a look at the lock, `None` where it is as it was when it was judged last.
    pub(crate) fn judge_lock(&mut self, look: Option<LockLook>) -> LockNews {
        match (&mut self.lock, look) {
            (Some(lock), Some(look)) => lock.judge(look),
            (Some(_), None) | (None, _) => LockNews::default(),
        }
    }

    /// Takes a look at each file, `None` where it is as it was when it was judged last.
    pub(crate) fn judge(&mut self, looks: Vec<Option<Look>>, since: Since, now: Instant) -> Judgement {
        let mut res = Judgement::default();
        let mut read = Vec::new();
        for (file, look) in self.files.iter_mut().zip(looks) {
            if let (Since::Told, Some(doubt)) = (since, &mut file.doubt) {
                doubt.since = now;
            }
            match file.judge(look, now, self.settle) {
                Verdict::Same | Verdict::Doubted => {}
                Verdict::Taken(taken) => read.push(taken),
                Verdict::Refused(refused) => res.events.push(FollowEvent::Refused(refused)),
            }
        }
        res.again = self.files.iter().filter_map(|it| it.doubt).map(|it| it.end(self.settle)).min();
        if !read.is_empty() {
            let good = self.files.iter().filter_map(|it| Some((it.path.as_str(), it.good.as_ref()?)));
            let (wanted, shadowed) = merge(good);
            let plan = self.plan(&wanted);
            self.shadowed.clone_from(&shadowed);
            res.events.push(FollowEvent::Reloaded(Reload { files: read, plan, shadowed }));
            res.wanted = Some(wanted);
        }
        res
    }

    /// What there is to say about the files as they are, where they could be read; else `unread` says why not.
    pub(crate) fn problems(&self, unread: Option<&str>) -> Vec<Problem> {
        let refused = self.files.iter().filter_map(|it| Some(it.refusal.as_ref()?.message.clone()));
        let unread = unread.map(|why| {
            let paths: Vec<&str> = self.files.iter().map(|it| it.path.as_str()).collect();
            format!("{} cannot be read now: {why}; what was read before stays", paths.join(", "))
        });
        let lock = self.lock.as_ref().and_then(Locked::refusal).map(|it| it.message.clone());
        let messages: Vec<String> = refused.chain(lock).chain(unread).collect();
        let error = (!messages.is_empty()).then(|| Problem::workspace_config_error(messages.join("; ")));
        error.into_iter().chain(self.shadowing()).collect()
    }

    /// A warning for each server of which an entry does not count.
    fn shadowing(&self) -> impl Iterator<Item = Problem> {
        let mut servers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for it in &self.shadowed {
            servers.entry(&it.server).or_default().push(it.to_string());
        }
        servers.into_iter().map(|(server, messages)| Problem::server_shadowed(server, messages.join("; ")))
    }

    /// The steps to `wanted`. An entry that is wrong now leaves its server as it is (DM-105).
    fn plan(&mut self, wanted: &DesiredServers) -> ReloadPlan {
        let mut new: Vec<DesiredServer> = wanted.servers.iter().map(desired).collect();
        let is_wrong = |it: &&DesiredServer| wanted.failed.iter().any(|failed| failed.id == it.id.as_str());
        let kept: Vec<DesiredServer> = self.desired.iter().filter(is_wrong).cloned().collect();
        new.extend(kept);
        let plan = ReloadPlan::compute(&self.desired, &new);
        self.desired = new;
        plan
    }
}

impl File {
    fn judge(&mut self, look: Option<Look>, now: Instant, settle: Duration) -> Verdict {
        let changed = look.filter(|it| self.seen.as_ref() != Some(&it.sources));
        let Some(Look { sources, outcome }) = changed else {
            self.doubt = None;
            return Verdict::Same;
        };
        if self.seen.as_ref().is_some_and(|seen| has_vanished(seen, &sources)) {
            let doubt = *self.doubt.get_or_insert(Doubt { first: now, since: now });
            if now < doubt.end(settle) {
                return Verdict::Doubted;
            }
        }
        self.doubt = None;
        self.seen = Some(sources);
        match outcome {
            Ok(loaded) if loaded.refused => self.refuse(loaded.refusal(), loaded.diagnostics),
            Ok(loaded) => self.take(loaded),
            Err(LoadError::File { source, .. }) if is_absent(&source) && self.may_be_absent() => {
                self.good = Some(Good { profile: self.profile(), ..Good::default() });
                self.refusal = None;
                Verdict::Taken(ReloadedFile {
                    path: self.path.clone(),
                    presence: FilePresence::Absent,
                    diagnostics: Vec::new(),
                })
            }
            Err(error) => self.refuse(sentence(&error), Vec::new()),
        }
    }

    fn take(&mut self, loaded: LoadedConfig) -> Verdict {
        let LoadedConfig { path, text: _, profile, reading, diagnostics, refused: _, desired: wanted } =
            loaded;
        let names = reading.entries.into_iter().map(|it| it.name).collect();
        self.good = Some(Good { profile: Some(profile), names, wanted });
        self.refusal = None;
        Verdict::Taken(ReloadedFile { path, presence: FilePresence::Present, diagnostics })
    }

    fn refuse(&mut self, why: String, diagnostics: Vec<mcp_config::Diagnostic>) -> Verdict {
        let kept = if self.good.is_some() { "; what it said before stays" } else { "" };
        let failure = HostError::new(ErrorKind::Config, format!("{why}{kept}"));
        self.refusal = Some(failure.clone());
        Verdict::Refused(RefusedFile { path: self.path.clone(), error: failure, diagnostics })
    }

    /// The rules that the file was read by, or would be.
    fn profile(&self) -> Option<Profile> {
        let LoadRequest { path: _, dialect, profile, env_file: _ } = &self.request;
        let of_dialect = || dialect.or_else(|| detect(&self.path, "")).map(Profile::default_for);
        profile.or(self.good.as_ref().and_then(|it| it.profile)).or_else(of_dialect)
    }

    /// Does a file that is not there mean what an empty one does? An agent without its file is no agent.
    fn may_be_absent(&self) -> bool {
        match self.profile().map(Profile::dialect) {
            Some(Dialect::Dominds | Dialect::McpJson) => true,
            Some(Dialect::HoloDeck | Dialect::Acp) | None => false,
        }
    }
}

/// Is there nothing in a file that had something in it?
fn has_vanished(before: &Sources, now: &Sources) -> bool {
    let had_some = |path| before.get(path).is_some_and(|it| !it.is_nothing());
    now.iter().any(|(path, content)| content.is_nothing() && had_some(path))
}

/// An error and its cause.
fn sentence(error: &LoadError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
