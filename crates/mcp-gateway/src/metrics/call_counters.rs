//! Counters of calls, for each tool and for each client. The number of tools and clients is bounded: those beyond it
//! share one series, `other`.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ahash::HashMap;
use metrics::{Counter, Label, counter};
use parking_lot::RwLock;

use crate::access::principal::Principal;
use crate::lists::definitions::CatalogTarget;
use crate::metrics::prometheus::MetricsPage;
use crate::metrics::{TOKEN_BYTES, TOKEN_CALLS, TOKEN_SECONDS, TOOL_BYTES, TOOL_CALLS, TOOL_SECONDS};

/// Maximum number of series of tools, and of clients. A server can change the names of its tools at any time, and an
/// authorization server has any number of users.
const MAX_SERIES: usize = 1024;

/// The label of all further tools and clients.
const OTHER: &str = "other";

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStatus {
    Success,
    /// The result says that the tool failed.
    ToolError,
    Error,
    /// The call was refused because of a rate limit.
    Limited,
    /// The call was dropped before it had a result.
    Cancelled,
}

impl CallStatus {
    const COUNT: usize = CallStatus::Cancelled as usize + 1;

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            CallStatus::Success => "success",
            CallStatus::ToolError => "tool_error",
            CallStatus::Error => "error",
            CallStatus::Limited => "limited",
            CallStatus::Cancelled => "cancelled",
        }
    }
}

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedCall {
    pub(crate) status: CallStatus,
    pub(crate) duration: Duration,
    /// The size of its parameters.
    pub(crate) request_bytes: usize,
    /// The size of its result; 0 without one.
    pub(crate) result_bytes: usize,
}

/// The names of the metrics of tools, or of clients.
#[derive(Debug, Clone, Copy)]
struct MetricNames {
    calls: &'static str,
    bytes: &'static str,
}

const TOOL_METRICS: MetricNames = MetricNames { calls: TOOL_CALLS, bytes: TOOL_BYTES };
const TOKEN_METRICS: MetricNames = MetricNames { calls: TOKEN_CALLS, bytes: TOKEN_BYTES };

/// The counters of one tool or client. They are registered at its first call.
#[derive(Debug)]
pub(crate) struct CallCounters {
    names: MetricNames,
    labels: Vec<Label>,
    calls: [OnceLock<Counter>; CallStatus::COUNT],
    bytes: OnceLock<ByteCounters>,
    /// The time that its calls took. Not a counter of the `metrics` crate: these count whole numbers, and the metric is
    /// in seconds.
    microseconds: AtomicU64,
}

#[derive(Debug)]
struct ByteCounters {
    request: Counter,
    result: Counter,
}

impl CallCounters {
    fn new(names: MetricNames, labels: Vec<Label>) -> CallCounters {
        CallCounters {
            names,
            labels,
            calls: Default::default(),
            bytes: OnceLock::new(),
            microseconds: AtomicU64::new(0),
        }
    }

    /// Counts a call.
    pub(crate) fn count(&self, call: EndedCall) {
        let EndedCall { status, duration, request_bytes, result_bytes } = call;
        let calls = || counter!(self.names.calls, self.labels_with("outcome", status.as_str()));
        self.calls[status as usize].get_or_init(calls).increment(1);
        let bytes = |direction| counter!(self.names.bytes, self.labels_with("direction", direction));
        let bytes =
            self.bytes.get_or_init(|| ByteCounters { request: bytes("request"), result: bytes("result") });
        bytes.request.increment(request_bytes as u64);
        bytes.result.increment(result_bytes as u64);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
    }

    fn labels_with(&self, key: &'static str, value: &'static str) -> Vec<Label> {
        let mut labels = self.labels.clone();
        labels.push(Label::from_static_parts(key, value));
        labels
    }

    fn is_used(&self) -> bool {
        self.bytes.get().is_some()
    }
}

/// The counters of all tools and of all clients, since the start.
#[derive(Debug)]
pub(crate) struct CallSeries {
    tools: SeriesMap<CatalogTarget>,
    clients: SeriesMap<Principal>,
}

impl CallSeries {
    pub(crate) fn new() -> CallSeries {
        // No server has an empty id.
        let other_tools = vec![Label::new("server", ""), Label::new("tool", OTHER)];
        CallSeries {
            tools: SeriesMap::new(TOOL_METRICS, other_tools),
            clients: SeriesMap::new(TOKEN_METRICS, vec![Label::new("token", OTHER)]),
        }
    }

    /// The counters of a tool of the catalog.
    pub(crate) fn tool_counters(&self, tool: &CatalogTarget) -> Arc<CallCounters> {
        self.tools.get_or_insert(tool, || {
            vec![Label::new("server", tool.server.to_string()), Label::new("tool", tool.name.clone())]
        })
    }

    /// Counts a call of a client.
    pub(crate) fn count_client(&self, principal: &Principal, call: EndedCall) {
        // A token may have this name. Two series must not have the same labels.
        match principal.name() {
            OTHER => self.clients.other.count(call),
            name => {
                let labels = || vec![Label::new("token", name.to_owned())];
                self.clients.get_or_insert(principal, labels).count(call);
            }
        }
    }

    /// Writes the metrics of the time that calls took.
    pub(crate) fn write_to(&self, page: &mut MetricsPage) {
        page.start_metric(TOOL_SECONDS, "counter", "Time that calls took, by tool.");
        self.tools.write_seconds(TOOL_SECONDS, page);
        page.start_metric(TOKEN_SECONDS, "counter", "Time that calls took, by token.");
        self.clients.write_seconds(TOKEN_SECONDS, page);
    }
}

/// The series of each key. Keys beyond [`MAX_SERIES`] share the series `other`.
#[derive(Debug)]
struct SeriesMap<K> {
    names: MetricNames,
    series: RwLock<HashMap<K, Arc<CallCounters>>>,
    other: Arc<CallCounters>,
}

impl<K: Hash + Eq + Clone> SeriesMap<K> {
    fn new(names: MetricNames, other: Vec<Label>) -> SeriesMap<K> {
        SeriesMap { names, series: RwLock::default(), other: Arc::new(CallCounters::new(names, other)) }
    }

    /// The counters for `key`; those for all others if there are too many keys.
    fn get_or_insert(&self, key: &K, labels: impl Fn() -> Vec<Label>) -> Arc<CallCounters> {
        if let Some(counters) = self.series.read().get(key) {
            return Arc::clone(counters);
        }
        let mut series = self.series.write();
        if series.len() >= MAX_SERIES && !series.contains_key(key) {
            return Arc::clone(&self.other);
        }
        let create = || Arc::new(CallCounters::new(self.names, labels()));
        Arc::clone(series.entry(key.clone()).or_insert_with(create))
    }

    fn write_seconds(&self, name: &str, page: &mut MetricsPage) {
        let mut all: Vec<Arc<CallCounters>> = self.series.read().values().cloned().collect();
        all.sort_by(|left, right| left.labels.cmp(&right.labels));
        all.push(Arc::clone(&self.other));
        for counters in all.iter().filter(|counters| counters.is_used()) {
            let labels: Vec<_> = counters.labels.iter().map(|label| (label.key(), label.value())).collect();
            page.write_sample(name, &labels, counters.microseconds.load(Ordering::Relaxed) as f64 / 1e6);
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::ServerId;
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    fn call(status: CallStatus) -> EndedCall {
        EndedCall { status, duration: Duration::from_millis(250), request_bytes: 3, result_bytes: 5 }
    }

    fn tool(server: &str, name: &str) -> CatalogTarget {
        CatalogTarget { server: ServerId::parse(server).unwrap(), name: name.to_owned() }
    }

    /// Counts the calls, and returns the lines of the recorder and those of the gateway.
    fn page(count: impl Fn(&CallSeries)) -> Vec<String> {
        let recorder = PrometheusBuilder::new().build_recorder();
        let mut page = MetricsPage::default();
        metrics::with_local_recorder(&recorder, || {
            let series = CallSeries::new();
            count(&series);
            series.write_to(&mut page);
        });
        (page.into_text() + &recorder.handle().render()).lines().map(str::to_owned).collect()
    }

    #[test]
    fn calls_are_counted_by_tool_and_by_client() {
        let page = page(|series| {
            series.tool_counters(&tool("a", "a__x")).count(call(CallStatus::Success));
            series.tool_counters(&tool("a", "a__x")).count(call(CallStatus::ToolError));
            series.count_client(&Principal::named("ann"), call(CallStatus::Cancelled));
            series.count_client(&Principal::anonymous(), call(CallStatus::Error));
            // A tool that was never called has no series.
            series.tool_counters(&tool("a", "a__y"));
        });
        for line in [
            r#"mcp_gateway_tool_calls_total{server="a",tool="a__x",outcome="success"} 1"#,
            r#"mcp_gateway_tool_calls_total{server="a",tool="a__x",outcome="tool_error"} 1"#,
            r#"mcp_gateway_tool_seconds_total{server="a",tool="a__x"} 0.5"#,
            r#"mcp_gateway_tool_bytes_total{server="a",tool="a__x",direction="request"} 6"#,
            r#"mcp_gateway_tool_bytes_total{server="a",tool="a__x",direction="result"} 10"#,
            r#"mcp_gateway_token_calls_total{token="ann",outcome="cancelled"} 1"#,
            r#"mcp_gateway_token_calls_total{token="",outcome="error"} 1"#,
        ] {
            assert!(page.iter().any(|found| found == line), "{line} in {page:?}");
        }
        let unused = page.iter().find(|line| line.contains("a__y") || line.contains("other"));
        assert_eq!(unused, None);
    }

    #[test]
    fn tools_and_clients_beyond_the_limit_share_a_series() {
        let page = page(|series| {
            for number in 0..MAX_SERIES + 3 {
                series.tool_counters(&tool("a", &format!("t{number}"))).count(call(CallStatus::Success));
                series.count_client(&Principal::named(&format!("c{number}")), call(CallStatus::Success));
            }
            // A token of this name does not make a second series with the same labels.
            series.count_client(&Principal::named("other"), call(CallStatus::Success));
            // Known ones keep their series.
            series.tool_counters(&tool("a", "t0")).count(call(CallStatus::Success));
        });
        let lines = |start: &str| page.iter().filter(|line| line.starts_with(start)).count();
        assert_eq!(lines("mcp_gateway_tool_calls_total{"), MAX_SERIES + 1);
        assert_eq!(lines("mcp_gateway_token_calls_total{"), MAX_SERIES + 1);
        for line in [
            r#"mcp_gateway_tool_calls_total{server="",tool="other",outcome="success"} 3"#,
            r#"mcp_gateway_tool_calls_total{server="a",tool="t0",outcome="success"} 2"#,
            r#"mcp_gateway_token_calls_total{token="other",outcome="success"} 4"#,
        ] {
            assert!(page.iter().any(|found| found == line), "{line}");
        }
    }
}
