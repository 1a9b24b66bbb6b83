//! Metrics of a host, through the [`metrics`](https://docs.rs/metrics) facade. Without a recorder they cost next to
//! nothing.
//!
//! Labels contain no text of users, models or servers, except the server's name in the configuration. Their number is
//! limited: `server` has at most [`MAX_SERVER_LABELS`] values per host, and later servers share
//! [`OTHER_SERVERS`]; other labels have the values listed here. There is no label for the tool, because
//! servers choose tool names: the span of the call has it.
//!
//! | name | kind, unit | labels | what it is |
//! |---|---|---|---|
//! | [`CALLS`] | counter | `server`, `outcome` | finished calls |
//! | [`CALL_DURATION`] | histogram, seconds | `server`, `outcome` | duration of calls |
//! | [`FAILURES`] | counter | `server`, `operation`, `kind` | failed operations |
//! | [`RESTARTS`] | counter | `server` | restarts after a lost connection or a failed start |
//! | [`INSTANCES`] | gauge | `server` | open connections |
//! | [`LEASES`] | gauge | | current leases |
//! | [`RELOADS`] | counter | `outcome` | reloads |
//! | [`GENERATION`] | gauge | | the number of the last generation |
//! | [`SPILLS`] | counter | `server` | parts of results that were written to a file |
//! | [`CUT_RESULTS`] | counter | `server` | results that were cut, spilled or not |
//! | [`SESSION_DURATION`] | histogram, seconds | `network.transport`, `mcp.protocol.version` | duration of sessions |
//!
//! The `outcome` of a call is `success`, `cancelled` (its future was dropped), or the error kind as in
//! [`ErrorKind::as_str`](mcp_host_model::ErrorKind::as_str). `operation` is `connect`, `list` or `call`;
//! `kind` is an error kind. The `outcome` of a reload is `taken`, `refused`, or `unread` each time followed
//! files begin not to respond. A call without a server has the server [`NO_SERVER`].
//!
//! Gauges of several hosts in one process are added up, except the generation, which is that of the last publication.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{ProtocolVersion, TransportKind};
use metrics::{Counter, Histogram, SharedString, Unit, counter, gauge, histogram};
use parking_lot::Mutex;
use strum::IntoStaticStr;
use tokio::time::Instant;

/// Finished calls, by `server` and `outcome`.
pub const CALLS: &str = "mcp_host_calls_total";
/// Duration of calls in seconds, by `server` and `outcome`.
pub const CALL_DURATION: &str = "mcp_host_call_duration_seconds";
/// Failed connections, list requests and calls, by `server`, `operation` and `kind`.
pub const FAILURES: &str = "mcp_host_failures_total";
/// Restarts after a lost connection or a failed start, by `server`.
pub const RESTARTS: &str = "mcp_host_restarts_total";
/// Open connections, by `server`.
pub const INSTANCES: &str = "mcp_host_running_instances";
/// Current leases.
pub const LEASES: &str = "mcp_host_leases";
/// Reloads, by `outcome`.
pub const RELOADS: &str = "mcp_host_reloads_total";
/// The number of the last generation.
pub const GENERATION: &str = "mcp_host_generation";
/// Parts of results that were written to a file, by `server`.
pub const SPILLS: &str = "mcp_host_spills_total";
/// Results that were cut, by `server`.
pub const CUT_RESULTS: &str = "mcp_host_cut_results_total";

/// Duration of sessions with servers in seconds, by `network.transport` and `mcp.protocol.version`. The names are those
/// of OpenTelemetry's convention for MCP.
pub const SESSION_DURATION: &str = "mcp.client.session.duration";

/// The maximum number of values of the label `server` per host, without [`OTHER_SERVERS`] and [`NO_SERVER`].
pub const MAX_SERVER_LABELS: usize = 256;
/// The label `server` of servers beyond [`MAX_SERVER_LABELS`].
pub const OTHER_SERVERS: &str = "(other)";
/// The label `server` if there is no server.
pub const NO_SERVER: &str = "(none)";

/// Registers the units and descriptions with the recorder of this process. Call it once after the recorder is
/// installed.
pub fn describe() {
    metrics::describe_counter!(CALLS, Unit::Count, "Calls that ended.");
    metrics::describe_histogram!(CALL_DURATION, Unit::Seconds, "From a call to its end.");
    metrics::describe_counter!(FAILURES, Unit::Count, "Connections, lists and calls that failed.");
    let restarts = "Starts after a server was lost or failed to start.";
    metrics::describe_counter!(RESTARTS, Unit::Count, restarts);
    metrics::describe_gauge!(INSTANCES, Unit::Count, "Connections that are open.");
    metrics::describe_gauge!(LEASES, Unit::Count, "Instances that dialogs hold.");
    metrics::describe_counter!(RELOADS, Unit::Count, "Configurations that were applied, or refused.");
    metrics::describe_gauge!(GENERATION, Unit::Count, "The number of the last generation.");
    metrics::describe_counter!(SPILLS, Unit::Count, "Parts of results that were written to a file.");
    let cut = "Results of which something was left out.";
    metrics::describe_counter!(CUT_RESULTS, Unit::Count, cut);
    metrics::describe_histogram!(SESSION_DURATION, Unit::Seconds, "From the start of a session to its end.");
}

/// Operations that can fail.
#[derive(Debug, Clone, Copy, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Operation {
    Connect,
    List,
    Call,
}

/// The outcome of a reload, with its label.
#[derive(Debug, Clone, Copy, IntoStaticStr)]
pub(crate) enum ReloadOutcome {
    #[strum(serialize = "taken")]
    Applied,
    #[strum(serialize = "refused")]
    Refused,
    #[strum(serialize = "unread")]
    Unreadable,
}

/// The `outcome` of a successful call.
pub(crate) const SUCCESS: &str = "success";

/// The time for which cached counters are used. After it they are requested again, because the recorder may have been
/// replaced, or have removed idle counters.
const RECORDER_REFRESH: Duration = Duration::from_secs(1);

/// The metrics of one host, with its known server names.
#[derive(Debug, Default)]
pub(crate) struct HostMetrics {
    /// The known server names, with cached counters.
    servers: Mutex<ahash::HashMap<Arc<str>, Option<SuccessCounters>>>,
}

/// Cached counters for the successful calls of a server.
#[derive(Debug, Clone)]
struct SuccessCounters {
    calls: Counter,
    durations: Histogram,
    /// The address of the recorder that created them.
    recorder: usize,
    resolved_at: Instant,
}

impl SuccessCounters {
    fn of(server: SharedString, now: Instant) -> SuccessCounters {
        SuccessCounters {
            calls: counter!(CALLS, "server" => server.clone(), "outcome" => SUCCESS),
            durations: histogram!(CALL_DURATION, "server" => server, "outcome" => SUCCESS),
            recorder: recorder_address(),
            resolved_at: now,
        }
    }
}

/// Returns the address of the current recorder.
fn recorder_address() -> usize {
    metrics::with_recorder(|it| std::ptr::from_ref(it).addr())
}

/// A guard that counts an open connection until it is dropped, and then records its duration.
#[derive(Debug)]
pub(crate) struct ConnectionGauge {
    server: SharedString,
    started: Instant,
    transport: TransportKind,
    version: ProtocolVersion,
}

impl Drop for ConnectionGauge {
    fn drop(&mut self) {
        gauge!(INSTANCES, "server" => self.server.clone()).decrement(1.0);
        record_session(SESSION_DURATION, self.transport, self.version, self.started);
    }
}

/// Records the duration of a session that began at `started`, with the labels of [`SESSION_DURATION`]. The gateway
/// records the sessions of its clients under another `name`.
pub fn record_session(
    name: &'static str,
    transport: TransportKind,
    version: ProtocolVersion,
    started: Instant,
) {
    let transport = if transport == TransportKind::Stdio { "pipe" } else { "tcp" };
    histogram!(name, "network.transport" => transport, "mcp.protocol.version" => version.as_str())
        .record(started.elapsed().as_secs_f64());
}

/// The part of the metric [`LEASES`] of one host. Dropping it subtracts the leases.
#[derive(Debug, Default)]
pub(crate) struct LeaseGauge(usize);

impl LeaseGauge {
    /// Sets the current number.
    pub(crate) fn set(&mut self, now: usize) {
        let before = std::mem::replace(&mut self.0, now);
        match now.checked_sub(before) {
            Some(more) => gauge!(LEASES).increment(more as f64),
            None => gauge!(LEASES).decrement((before - now) as f64),
        }
    }
}

impl Drop for LeaseGauge {
    fn drop(&mut self) {
        if self.0 > 0 {
            self.set(0);
        }
    }
}

impl HostMetrics {
    /// Records the end of a call at `now`.
    pub(crate) fn record_call(
        &self,
        server: Option<&str>,
        outcome: &'static str,
        duration: Duration,
        now: Instant,
    ) {
        if outcome == SUCCESS
            && let Some(server) = server
        {
            return self.record_success(server, duration, now);
        }
        let server = self.server_label(server);
        counter!(CALLS, "server" => server.clone(), "outcome" => outcome).increment(1);
        histogram!(CALL_DURATION, "server" => server, "outcome" => outcome).record(duration.as_secs_f64());
    }

    /// Records a successful call with cached counters.
    fn record_success(&self, server: &str, duration: Duration, now: Instant) {
        let recorder = recorder_address();
        let is_current = |it: &&SuccessCounters| {
            it.recorder == recorder
                && now.checked_duration_since(it.resolved_at).is_some_and(|age| age < RECORDER_REFRESH)
        };
        let cached = self.servers.lock().get(server).and_then(|it| it.as_ref().filter(is_current).cloned());
        // The recorder runs outside the lock.
        let counters = cached.unwrap_or_else(|| {
            let counters = SuccessCounters::of(self.server_label(Some(server)), now);
            if let Some(target) = self.servers.lock().get_mut(server) {
                *target = Some(counters.clone());
            }
            counters
        });
        counters.calls.increment(1);
        counters.durations.record(duration.as_secs_f64());
    }

    /// Records a failed operation.
    pub(crate) fn record_failure(
        &self,
        operation: Operation,
        server: Option<&str>,
        kind: mcp_host_model::ErrorKind,
    ) {
        let (operation, kind): (&'static str, _) = (operation.into(), kind.as_str());
        let server = self.server_label(server);
        counter!(FAILURES, "server" => server, "operation" => operation, "kind" => kind).increment(1);
    }

    /// Records a restart.
    pub(crate) fn record_restart(&self, server: &str) {
        counter!(RESTARTS, "server" => self.server_label(Some(server))).increment(1);
    }

    /// Counts a connection as open until the result is dropped.
    pub(crate) fn count_connection(
        &self,
        server: &str,
        transport: TransportKind,
        version: ProtocolVersion,
    ) -> ConnectionGauge {
        let server = self.server_label(Some(server));
        gauge!(INSTANCES, "server" => server.clone()).increment(1.0);
        ConnectionGauge { server, started: Instant::now(), transport, version }
    }

    /// Records a reload.
    pub(crate) fn record_reload(&self, outcome: ReloadOutcome) {
        let outcome: &'static str = outcome.into();
        counter!(RELOADS, "outcome" => outcome).increment(1);
    }

    /// Records the number of the published generation.
    pub(crate) fn set_generation(&self, generation: u64) {
        gauge!(GENERATION).set(generation as f64);
    }

    /// Records a cut result with the number of parts written to files.
    pub(crate) fn record_cut(&self, server: Option<&str>, spilled: usize) {
        let server = self.server_label(server);
        counter!(CUT_RESULTS, "server" => server.clone()).increment(1);
        if spilled > 0 {
            counter!(SPILLS, "server" => server).increment(spilled as u64);
        }
    }

    /// Returns the label `server` for a server name.
    fn server_label(&self, name: Option<&str>) -> SharedString {
        let Some(name) = name else { return SharedString::const_str(NO_SERVER) };
        let mut servers = self.servers.lock();
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
}

#[cfg(test)]
mod tests {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    #[test]
    fn server_labels_are_limited() {
        let metrics = HostMetrics::default();
        for number in 0..MAX_SERVER_LABELS {
            assert_eq!(&*metrics.server_label(Some(&number.to_string())), number.to_string());
        }
        assert_eq!(&*metrics.server_label(Some("late")), OTHER_SERVERS);
        assert_eq!(&*metrics.server_label(Some("7")), "7");
        assert_eq!(&*metrics.server_label(None), NO_SERVER);
    }

    #[test]
    fn calls_are_counted_by_current_recorder() {
        let metrics = HostMetrics::default();
        let begun = Instant::now();
        let call = |after: u64| {
            metrics.record_call(
                Some("a"),
                SUCCESS,
                Duration::from_secs(1),
                begun + Duration::from_millis(after),
            );
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
