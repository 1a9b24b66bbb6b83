//! Records the sessions of any number of servers.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mcp_host_model::{Method, MethodName, RawJson, Secret};
use mcp_host_transport::internal::Redactor;
use parking_lot::Mutex;

use crate::connection_log::{ConnectionLog, SizeBudget};
use crate::recording::{Exchange, Recording, ServerRecording};

/// Approximate maximum size of a recording in bytes.
const MAX_RECORDING_BYTES: usize = 256 << 20;

/// Records the sessions of any number of servers. All clones write to the same recording.
#[derive(Clone)]
pub struct Recorder {
    budget: Arc<SizeBudget>,
    servers: Arc<Mutex<Vec<Arc<RecordedServer>>>>,
}

/// The connections of one server.
struct RecordedServer {
    name: String,
    logs: Mutex<Vec<Arc<Mutex<ConnectionLog>>>>,
}

/// Records one connection.
#[derive(Clone)]
pub(crate) struct ConnectionRecorder {
    server: Arc<RecordedServer>,
    redactor: Arc<Redactor>,
    budget: Arc<SizeBudget>,
}

impl Default for Recorder {
    /// An empty recording.
    fn default() -> Recorder {
        Recorder { budget: Arc::new(SizeBudget::new(MAX_RECORDING_BYTES)), servers: Arc::default() }
    }
}

impl Recorder {
    /// The recording so far.
    pub fn recording(&self) -> Recording {
        let servers = self.servers.lock();
        let recordings = servers.iter().map(|it| Arc::new(it.recording())).collect();
        Recording { servers: recordings, omitted: self.budget.omitted() }
    }

    /// Creates a recorder for the connections of a server.
    pub(crate) fn connection_recorder(&self, server: &str, secrets: &[Secret]) -> ConnectionRecorder {
        let mut servers = self.servers.lock();
        let existing = servers.iter().find(|it| it.name == server).map(Arc::clone);
        let server = existing.unwrap_or_else(|| {
            let server = Arc::new(RecordedServer { name: server.to_owned(), logs: Mutex::default() });
            servers.push(Arc::clone(&server));
            server
        });
        ConnectionRecorder {
            server,
            redactor: Arc::new(Redactor::new(secrets.iter())),
            budget: Arc::clone(&self.budget),
        }
    }
}

impl ConnectionRecorder {
    /// Starts the log of a new connection.
    pub(crate) fn start(&self) -> Arc<Mutex<ConnectionLog>> {
        let log =
            Arc::new(Mutex::new(ConnectionLog::new(Arc::clone(&self.redactor), Arc::clone(&self.budget))));
        self.server.logs.lock().push(Arc::clone(&log));
        log
    }
}

impl RecordedServer {
    /// The recording of this server so far.
    fn recording(&self) -> ServerRecording {
        let mut recording = ServerRecording { server: self.name.clone(), ..ServerRecording::default() };
        for log in self.logs.lock().iter() {
            let log = log.lock();
            recording.version = log.version.or(recording.version);
            recording.exchanges.extend(log.exchanges.iter().cloned());
        }
        // Streams are opened concurrently, so their position has no meaning.
        let exchanges = recording.exchanges.into_iter().filter(|it| !is_empty_stream(it));
        let (streams, others): (Vec<_>, Vec<_>) = exchanges.partition(|it| it.method == Method::Listen);
        recording.exchanges = drop_repetitions(drop_unanswered(others).into_iter().chain(streams).collect());
        recording
    }
}

/// Removes handshakes and lists without a response that got one at another time: a client that disconnects
/// does not wait for them, and a replay would leave the next client without a response.
fn drop_unanswered(exchanges: Vec<Exchange>) -> Vec<Exchange> {
    let key = |it: &Exchange| (it.method.clone(), it.params.clone());
    let answered: HashSet<_> = exchanges.iter().filter(|it| it.response.is_some()).map(key).collect();
    let is_kept =
        |it: &Exchange| it.response.is_some() || !is_repeatable(&it.method) || !answered.contains(&key(it));
    exchanges.into_iter().filter(is_kept).collect()
}

/// Removes handshakes and lists that only repeat the previous response to the same request: the last response is
/// replayed as often as it is requested.
fn drop_repetitions(exchanges: Vec<Exchange>) -> Vec<Exchange> {
    // From the end: of a run of equal responses the first one is kept; `None` marks the end of a run.
    let mut runs: HashMap<(&MethodName, Option<&RawJson>), Option<usize>> = HashMap::new();
    let mut dropped = HashSet::new();
    for (at, it) in exchanges.iter().enumerate().rev().filter(|(_, it)| is_repeatable(&it.method)) {
        match runs.entry((&it.method, it.params.as_ref())) {
            Entry::Vacant(entry) => {
                entry.insert(Some(at));
            }
            Entry::Occupied(mut entry) => {
                let is_equal = |later: &usize| exchanges[*later] == *it;
                let later = entry.insert(None).filter(is_equal);
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

/// Whether a request may be repeated: a handshake, a ping, a list or a stream.
fn is_repeatable(method: &MethodName) -> bool {
    let is_known = |it: Method| it.is_handshake() || matches!(it, Method::Ping | Method::Listen);
    method.as_known().is_some_and(is_known) || method.is_list()
}

/// Whether it is a stream without messages.
fn is_empty_stream(exchange: &Exchange) -> bool {
    exchange.method == Method::Listen && exchange.before_response.is_empty() && exchange.response.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which exchanges are kept. They are written as `method response`, or `method -` without a response.
    #[track_caller]
    fn check(exchanges: &str, want: &str) {
        let exchange = |it: &str| {
            let (method, result) = it.split_once(' ').unwrap();
            let result = || RawJson::parse(result.to_owned().into()).ok();
            Exchange {
                method: method.into(),
                params: None,
                before_response: Vec::new(),
                response: result().map(Ok),
                after_response: Vec::new(),
            }
        };
        let retained = drop_repetitions(drop_unanswered(exchanges.split('|').map(exchange).collect()));
        let describe = |it: &Exchange| match &it.response {
            Some(Ok(result)) => format!("{} {}", it.method, result.as_str()),
            None => format!("{} -", it.method),
            other => panic!("{other:?}"),
        };
        assert_eq!(retained.iter().map(describe).collect::<Vec<_>>().join("|"), want);
    }

    #[test]
    fn repeated_responses_are_omitted() {
        check("ping 1|a/list 1|ping 1|a/list 1|ping 1", "ping 1|a/list 1");
        check("a/list 1|a/list 2|a/list 2", "a/list 1|a/list 2");
        check("a/list 1|a/list 1|a/list 2", "a/list 1|a/list 1|a/list 2");
        check("a/list 1|a/list 2|a/list 1", "a/list 1|a/list 2|a/list 1");
        check("tools/call 1|tools/call 1", "tools/call 1|tools/call 1");
    }

    #[test]
    fn lists_that_the_client_did_not_wait_for_are_omitted() {
        check("a/list 1|b/list -|a/list -", "a/list 1|b/list -");
        check("a/list -|a/list 1", "a/list 1");
        check("tools/call 1|tools/call -", "tools/call 1|tools/call -");
    }
}
