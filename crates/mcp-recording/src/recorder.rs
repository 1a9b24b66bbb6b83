//! Writes down the sessions of any number of servers at once.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_model::{RawJson, Secret};

use crate::connection_log::{Room, Take};
use crate::message::LISTEN;
use crate::recording::{Exchange, Recording, ServerRecording};
use crate::redact::Cleaner;
use crate::transport::RecordedDial;
use mcp_transport::Dial;

/// How many bytes a recording may have, about.
const MOST: usize = 256 << 20;

/// Writes down what crosses the wires that it is put around. All clones write the same recording.
#[derive(Clone)]
pub struct Recorder {
    room: Arc<Room>,
    servers: Arc<Mutex<Vec<Arc<Server>>>>,
}

/// The connections of one server.
struct Server {
    name: String,
    takes: Mutex<Vec<Arc<Mutex<Take>>>>,
}

/// One connection of a server, to be told what crosses it.
#[derive(Clone)]
pub(crate) struct Recorded {
    server: Arc<Server>,
    cleaner: Arc<Cleaner>,
    room: Arc<Room>,
}

impl Default for Recorder {
    /// Nothing is recorded yet.
    fn default() -> Recorder {
        Recorder { room: Arc::new(Room::of(MOST)), servers: Arc::default() }
    }
}

impl Recorder {
    /// The same place, its connections written down under this server's name. `secrets` are taken out of everything, and
    /// are in general [`endpoint_secrets`](crate::endpoint_secrets) and what else the server was given.
    pub fn wrap(&self, server: &str, dial: Arc<dyn Dial>, secrets: &[Secret]) -> Arc<dyn Dial> {
        Arc::new(RecordedDial { dial, recorded: self.recorded(server, secrets) })
    }

    /// What was recorded so far.
    pub fn recording(&self) -> Recording {
        let servers = lock(&self.servers);
        let tapes = servers.iter().map(|it| Arc::new(it.tape())).collect();
        Recording { servers: tapes, omitted: self.room.left_out() }
    }

    pub(crate) fn recorded(&self, server: &str, secrets: &[Secret]) -> Recorded {
        let mut servers = lock(&self.servers);
        let known = servers.iter().find(|it| it.name == server).map(Arc::clone);
        let server = known.unwrap_or_else(|| {
            let server = Arc::new(Server { name: server.to_owned(), takes: Mutex::default() });
            servers.push(Arc::clone(&server));
            server
        });
        Recorded { server, cleaner: Arc::new(Cleaner::new(secrets)), room: Arc::clone(&self.room) }
    }
}

impl Recorded {
    /// A connection that begins.
    pub(crate) fn begin(&self) -> Arc<Mutex<Take>> {
        let take = Arc::new(Mutex::new(Take::new(Arc::clone(&self.cleaner), Arc::clone(&self.room))));
        lock(&self.server.takes).push(Arc::clone(&take));
        take
    }
}

impl Server {
    fn tape(&self) -> ServerRecording {
        let mut tape = ServerRecording { server: self.name.clone(), ..ServerRecording::default() };
        for take in lock(&self.takes).iter() {
            let take = lock(take);
            tape.version = take.version.or(tape.version);
            tape.exchanges.extend(take.exchanges.iter().cloned());
        }
        // Streams are opened beside everything else; where they stand says nothing.
        let exchanges = tape.exchanges.into_iter().filter(|it| !is_mute(it));
        let (streams, others): (Vec<_>, Vec<_>) = exchanges.partition(|it| it.method == LISTEN);
        tape.exchanges = without_repetition(others.into_iter().chain(streams).collect());
        tape
    }
}

/// Without openings and lists that only say again what the same request was answered before: the last answer is played
/// for as long as it is asked for.
fn without_repetition(exchanges: Vec<Exchange>) -> Vec<Exchange> {
    // From the end: of a run of equal answers the first one stays, and `None` says that the run is over.
    let mut runs: HashMap<(&str, Option<&RawJson>), Option<usize>> = HashMap::new();
    let mut dropped = HashSet::new();
    for (at, it) in exchanges.iter().enumerate().rev().filter(|(_, it)| opens(&it.method)) {
        match runs.entry((&it.method, it.params.as_ref())) {
            Entry::Vacant(entry) => {
                entry.insert(Some(at));
            }
            Entry::Occupied(mut entry) => {
                let alike = |later: &usize| exchanges[*later] == *it;
                let later = entry.insert(None).filter(alike);
                if let Some(later) = later {
                    dropped.insert(later);
                    entry.insert(Some(at));
                }
            }
        }
    }
    let mut at = 0..;
    exchanges.into_iter().filter(|_| at.next().is_some_and(|it| !dropped.contains(&it))).collect()
}

fn opens(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover" | "ping" | LISTEN) || method.ends_with("/list")
}

/// Is it a stream on which nothing was heard?
fn is_mute(exchange: &Exchange) -> bool {
    exchange.method == LISTEN && exchange.before_response.is_empty() && exchange.response.is_none()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Whatever panics in the middle of a change leaves a recording that says less.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordedResponse;

    /// Each is `method answer`; what stays.
    #[track_caller]
    fn check(exchanges: &str, want: &str) {
        let one = |it: &str| {
            let (method, answer) = it.split_once(' ').unwrap();
            Exchange {
                method: method.to_owned(),
                params: None,
                before_response: Vec::new(),
                response: Some(RecordedResponse::Result(RawJson::parse(answer.to_owned().into()).unwrap())),
                after_response: Vec::new(),
            }
        };
        let kept = without_repetition(exchanges.split('|').map(one).collect());
        let word = |it: &Exchange| match &it.response {
            Some(RecordedResponse::Result(answer)) => format!("{} {}", it.method, answer.as_str()),
            other => panic!("{other:?}"),
        };
        assert_eq!(kept.iter().map(word).collect::<Vec<_>>().join("|"), want);
    }

    #[test]
    fn only_what_the_last_answer_stands_for_is_left_out() {
        check("ping 1|a/list 1|ping 1|a/list 1|ping 1", "ping 1|a/list 1");
        check("a/list 1|a/list 2|a/list 2", "a/list 1|a/list 2");
        check("a/list 1|a/list 1|a/list 2", "a/list 1|a/list 1|a/list 2");
        check("a/list 1|a/list 2|a/list 1", "a/list 1|a/list 2|a/list 1");
        check("tools/call 1|tools/call 1", "tools/call 1|tools/call 1");
    }
}
