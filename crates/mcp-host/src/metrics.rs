//! What a host counts and measures, by the [`metrics`](https://docs.rs/metrics) facade: whoever installs a recorder
//! gets all of it, and without one it costs next to nothing.
//!
//! Here is every name there is, with its unit and labels. No label holds what a user, a model or a server wrote, but
//! for the server's name in the configuration. Labels are few: `server` has at most [`MAX_SERVER_LABELS`] values for one
//! host, and those that come later share [`OTHER_SERVERS`]; all other labels have the values listed here. There is no
//! label for the tool, for servers name those as they like: a call's span has it.
//!
//! | name | kind, unit | labels | what it is |
//! |---|---|---|---|
//! | [`CALLS`] | counter | `server`, `outcome` | calls that ended |
//! | [`CALL_DURATION`] | histogram, seconds | `server`, `outcome` | from a call to its end |
//! | [`FAILURES`] | counter | `server`, `operation`, `kind` | what went wrong |
//! | [`RESTARTS`] | counter | `server` | starts after a server was lost, or did not come up |
//! | [`INSTANCES`] | gauge | `server` | connections that are open now |
//! | [`LEASES`] | gauge | | instances that dialogs hold now |
//! | [`RELOADS`] | counter | `outcome` | configurations that were applied |
//! | [`GENERATION`] | gauge | | the number of the last generation |
//! | [`SPILLS`] | counter | `server` | parts of results that were written to a file |
//! | [`CUT_RESULTS`] | counter | `server` | results of which something was left out, spilled or not |
//!
//! `outcome` of a call is `success`, `cancelled` for one whose caller stopped waiting, or the kind of its failure as in
//! [`ErrorKind::as_str`](mcp_model::ErrorKind::as_str). `operation` is `connect`, `list` or `call`, and `kind` a kind of failure.
//! `outcome` of a reload is `taken`, `refused`, or `unread` each time when the files that are followed begin not to
//! answer. A call that found no server has the server [`NO_SERVER`].
//!
//! The gauges of several hosts in one process are added up, but for the generation, which is that of the last to publish.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{Counter, Histogram, SharedString, Unit, counter, gauge, histogram};
use tokio::time::Instant;

/// Calls that ended, by `server` and `outcome`.
pub const CALLS: &str = "mcp_host_calls_total";
/// From a call to its end, in seconds, by `server` and `outcome`.
pub const CALL_DURATION: &str = "mcp_host_call_duration_seconds";
/// Connections, lists and calls that failed, by `server`, `operation` and `kind`.
pub const FAILURES: &str = "mcp_host_failures_total";
/// Starts after a server was lost or did not come up, by `server`.
pub const RESTARTS: &str = "mcp_host_restarts_total";
/// Connections that are open now, by `server`.
pub const INSTANCES: &str = "mcp_host_running_instances";
/// Instances that dialogs hold now.
pub const LEASES: &str = "mcp_host_leases";
/// Configurations that were applied, or refused, or could not be read, by `outcome`.
pub const RELOADS: &str = "mcp_host_reloads_total";
/// The number of the last generation.
pub const GENERATION: &str = "mcp_host_generation";
/// Parts of results that were written to a file, by `server`.
pub const SPILLS: &str = "mcp_host_spills_total";
/// Results of which something was left out, by `server`.
pub const CUT_RESULTS: &str = "mcp_host_cut_results_total";

/// How many values the label `server` has at most for one host, [`OTHER_SERVERS`] and [`NO_SERVER`] aside.
pub const MAX_SERVER_LABELS: usize = 256;
/// The label `server` of servers that were met when there were [`MAX_SERVER_LABELS`] already.
pub const OTHER_SERVERS: &str = "(other)";
/// The label `server` where there is none.
pub const NO_SERVER: &str = "(none)";

/// Tells the recorder of this process the unit and the meaning of each name. To be called once, after the recorder was
/// installed; what is counted does not depend on it.
pub fn describe() {
    metrics::describe_counter!(CALLS, Unit::Count, "Calls that ended.");
    metrics::describe_histogram!(CALL_DURATION, Unit::Seconds, "From a call to its end.");
    metrics::describe_counter!(FAILURES, Unit::Count, "Connections, lists and calls that failed.");
    let restarts = "Starts after a server was lost or did not come up.";
    metrics::describe_counter!(RESTARTS, Unit::Count, restarts);
    metrics::describe_gauge!(INSTANCES, Unit::Count, "Connections that are open.");
    metrics::describe_gauge!(LEASES, Unit::Count, "Instances that dialogs hold.");
    metrics::describe_counter!(RELOADS, Unit::Count, "Configurations that were applied, or refused.");
    metrics::describe_gauge!(GENERATION, Unit::Count, "The number of the last generation.");
    metrics::describe_counter!(SPILLS, Unit::Count, "Parts of results that were written to a file.");
    let cut = "Results of which something was left out.";
    metrics::describe_counter!(CUT_RESULTS, Unit::Count, cut);
}

/// What can fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Connect,
    List,
    Call,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Connect => "connect",
            Operation::List => "list",
            Operation::Call => "call",
        }
    }
}

/// What became of a configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reload {
    Taken,
    Refused,
    Unread,
}

/// `outcome` of a call that succeeded.
pub(crate) const SUCCESS: &str = "success";

/// How long a recorder is not asked again where a server's calls are counted. It may be another one by then, or have
/// forgotten what nobody counted for a while.
const KEPT: Duration = Duration::from_secs(1);

/// Counts for one host, and knows the names of its servers.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    servers: Mutex<ahash::HashMap<Arc<str>, Option<Succeeded>>>,
}

/// Where the calls of a server are counted that succeed, as most do.
#[derive(Debug, Clone)]
struct Succeeded {
    calls: Counter,
    durations: Histogram,
    /// Whose they are.
    recorder: usize,
    asked: Instant,
}

impl Succeeded {
    fn of(server: SharedString, now: Instant) -> Succeeded {
        Succeeded {
            calls: counter!(CALLS, "server" => server.clone(), "outcome" => SUCCESS),
            durations: histogram!(CALL_DURATION, "server" => server, "outcome" => SUCCESS),
            recorder: recorder(),
            asked: now,
        }
    }
}

/// Which recorder counts here and now.
fn recorder() -> usize {
    metrics::with_recorder(|it| std::ptr::from_ref(it).addr())
}

/// A connection that is open as long as this is there.
#[derive(Debug)]
pub(crate) struct Open(SharedString);

impl Drop for Open {
    fn drop(&mut self) {
        gauge!(INSTANCES, "server" => self.0.clone()).decrement(1.0);
    }
}

/// How many leases a host has; none of them is left when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Leased(usize);

impl Leased {
    /// There are so many now.
    pub(crate) fn are(&mut self, now: usize) {
        let before = std::mem::replace(&mut self.0, now);
        match now.checked_sub(before) {
            Some(more) => gauge!(LEASES).increment(more as f64),
            None => gauge!(LEASES).decrement((before - now) as f64),
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if self.0 > 0 {
            self.are(0);
        }
    }
}

impl Meter {
    /// A call has ended `now`.
    pub(crate) fn called(
        &self,
        server: Option<&str>,
        outcome: &'static str,
        duration: Duration,
        now: Instant,
    ) {
        if outcome == SUCCESS
            && let Some(server) = server
        {
            return self.succeeded(server, duration, now);
        }
        let server = self.server(server);
        counter!(CALLS, "server" => server.clone(), "outcome" => outcome).increment(1);
        histogram!(CALL_DURATION, "server" => server, "outcome" => outcome).record(duration.as_secs_f64());
    }

    fn succeeded(&self, server: &str, duration: Duration, now: Instant) {
        let recorder = recorder();
        let is_new = |it: &&Succeeded| {
            it.recorder == recorder && now.checked_duration_since(it.asked).is_some_and(|it| it < KEPT)
        };
        let known = self.known().get(server).and_then(|it| it.as_ref().filter(is_new).cloned());
        // What the recorder does is done outside the lock.
        let counted = known.unwrap_or_else(|| {
            let counted = Succeeded::of(self.server(Some(server)), now);
            if let Some(place) = self.known().get_mut(server) {
                *place = Some(counted.clone());
            }
            counted
        });
        counted.calls.increment(1);
        counted.durations.record(duration.as_secs_f64());
    }

    /// Something went wrong.
    pub(crate) fn failed(&self, operation: Operation, server: Option<&str>, kind: mcp_model::ErrorKind) {
        let (operation, kind) = (operation.as_str(), kind.as_str());
        let server = self.server(server);
        counter!(FAILURES, "server" => server, "operation" => operation, "kind" => kind).increment(1);
    }

    /// A server is started again.
    pub(crate) fn restarted(&self, server: &str) {
        counter!(RESTARTS, "server" => self.server(Some(server))).increment(1);
    }

    /// A connection was opened.
    pub(crate) fn opened(&self, server: &str) -> Open {
        let server = self.server(Some(server));
        gauge!(INSTANCES, "server" => server.clone()).increment(1.0);
        Open(server)
    }

    /// A configuration came.
    pub(crate) fn reloaded(&self, outcome: Reload) {
        let outcome = match outcome {
            Reload::Taken => "taken",
            Reload::Refused => "refused",
            Reload::Unread => "unread",
        };
        counter!(RELOADS, "outcome" => outcome).increment(1);
    }

    /// A generation was published.
    pub(crate) fn published(&self, generation: u64) {
        gauge!(GENERATION).set(generation as f64);
    }

    /// Something of a result was left out, and so many parts of it were written to a file.
    pub(crate) fn cut(&self, server: Option<&str>, spilled: usize) {
        let server = self.server(server);
        counter!(CUT_RESULTS, "server" => server.clone()).increment(1);
        if spilled > 0 {
            counter!(SPILLS, "server" => server).increment(spilled as u64);
        }
    }

    fn server(&self, name: Option<&str>) -> SharedString {
        let Some(name) = name else { return SharedString::const_str(NO_SERVER) };
        let mut servers = self.known();
        if let Some((known, _)) = servers.get_key_value(name) {
            return SharedString::from_shared(Arc::clone(known));
        }
        if servers.len() >= MAX_SERVER_LABELS {
            return SharedString::const_str(OTHER_SERVERS);
        }
        let name: Arc<str> = name.into();
        servers.insert(Arc::clone(&name), None);
        SharedString::from_shared(name)
    }

    fn known(&self) -> MutexGuard<'_, ahash::HashMap<Arc<str>, Option<Succeeded>>> {
        // Every change under the lock is complete before anything can panic.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    #[test]
    fn names_without_end_make_no_labels_without_end() {
        let meter = Meter::default();
        for number in 0..MAX_SERVER_LABELS {
            assert_eq!(&*meter.server(Some(&number.to_string())), number.to_string());
        }
        assert_eq!(&*meter.server(Some("late")), OTHER_SERVERS);
        assert_eq!(&*meter.server(Some("7")), "7");
        assert_eq!(&*meter.server(None), NO_SERVER);
    }

    #[test]
    fn calls_are_counted_by_the_recorder_that_there_is() {
        let meter = Meter::default();
        let begun = Instant::now();
        let call = |after: u64| {
            meter.called(Some("a"), SUCCESS, Duration::from_secs(1), begun + Duration::from_millis(after));
        };
        call(0);
        for (recorder, calls) in [(DebuggingRecorder::new(), 3), (DebuggingRecorder::new(), 2)] {
            metrics::with_local_recorder(&recorder, || (0..calls).for_each(|it| call(it * 700)));
            let counted = recorder.snapshotter().snapshot().into_vec().into_iter();
            let counted: Vec<_> =
                counted.filter_map(|(key, _, _, it)| (key.key().name() == CALLS).then_some(it)).collect();
            assert_eq!(counted, [DebugValue::Counter(calls)]);
        }
    }
}
