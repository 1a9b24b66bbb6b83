//! Counters of calls, for each tool and for each client. The number of tools and clients is bounded: those beyond it
//! share one series, `other`.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ahash::HashMap;
use parking_lot::RwLock;

use crate::access::principal::Principal;
use crate::lists::definitions::Target;
use crate::metrics::prometheus::Page;

/// Maximum number of series of tools, and of clients. A server can change the names of its tools at any time, and an
/// authorization server has any number of users.
const MAX_SERIES: usize = 1024;

/// The label of all further tools and clients.
const OTHER: &str = "other";

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Success,
    /// The result says that the tool failed.
    ToolError,
    Error,
    /// The call was refused because of a rate limit.
    Limited,
    /// The call was dropped before it had a result.
    Cancelled,
}

impl CallOutcome {
    /// All outcomes. Each is at the index `outcome as usize`.
    const ALL: [CallOutcome; 5] = [
        CallOutcome::Success,
        CallOutcome::ToolError,
        CallOutcome::Error,
        CallOutcome::Limited,
        CallOutcome::Cancelled,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            CallOutcome::Success => "success",
            CallOutcome::ToolError => "tool_error",
            CallOutcome::Error => "error",
            CallOutcome::Limited => "limited",
            CallOutcome::Cancelled => "cancelled",
        }
    }
}

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedCall {
    pub(crate) outcome: CallOutcome,
    pub(crate) took: Duration,
    /// The size of its parameters.
    pub(crate) request_bytes: usize,
    /// The size of its result; 0 without one.
    pub(crate) result_bytes: usize,
}

/// The counters of one tool or client.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    calls: [AtomicU64; CallOutcome::ALL.len()],
    microseconds: AtomicU64,
    request_bytes: AtomicU64,
    result_bytes: AtomicU64,
}

impl CallCounters {
    pub(crate) fn count(&self, call: EndedCall) {
        let EndedCall { outcome, took, request_bytes, result_bytes } = call;
        self.calls[outcome as usize].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
        self.request_bytes.fetch_add(request_bytes as u64, Ordering::Relaxed);
        self.result_bytes.fetch_add(result_bytes as u64, Ordering::Relaxed);
    }

    fn is_unused(&self) -> bool {
        self.calls.iter().all(|count| count.load(Ordering::Relaxed) == 0)
    }
}

/// The counters of all tools and of all clients, since the start.
#[derive(Debug, Default)]
pub(crate) struct CallSeries {
    tools: SeriesMap<Target>,
    clients: SeriesMap<Principal>,
}

impl CallSeries {
    /// The counters of a tool, which exists.
    pub(crate) fn of_tool(&self, tool: &Target) -> Arc<CallCounters> {
        self.tools.get_or_insert(tool)
    }

    /// Counts a call of a client.
    pub(crate) fn count_client(&self, principal: &Principal, call: EndedCall) {
        // A token may have this name. Two series must not have the same labels.
        match principal.name() {
            OTHER => self.clients.other.count(call),
            _ => self.clients.get_or_insert(principal).count(call),
        }
    }

    pub(crate) fn write_to(&self, page: &mut Page) {
        let tools = self.tools.sorted(|target| {
            vec![("server", target.server.as_str().to_owned()), ("tool", target.name.clone())]
        });
        // No server has an empty id.
        let other = vec![("server", String::new()), ("tool", OTHER.to_owned())];
        write_family(page, "tool", &tools, (&other, &self.tools.other));
        let clients = self.clients.sorted(|principal| vec![("token", principal.name().to_owned())]);
        write_family(page, "token", &clients, (&vec![("token", OTHER.to_owned())], &self.clients.other));
    }
}

type Labels = Vec<(&'static str, String)>;

/// Series by key.
#[derive(Debug)]
struct SeriesMap<K> {
    series: RwLock<HashMap<K, Arc<CallCounters>>>,
    other: Arc<CallCounters>,
}

impl<K> Default for SeriesMap<K> {
    fn default() -> SeriesMap<K> {
        SeriesMap { series: RwLock::default(), other: Arc::default() }
    }
}

impl<K: Hash + Eq + Clone> SeriesMap<K> {
    fn get_or_insert(&self, key: &K) -> Arc<CallCounters> {
        if let Some(counters) = self.series.read().get(key) {
            return Arc::clone(counters);
        }
        let mut series = self.series.write();
        if series.len() >= MAX_SERIES && !series.contains_key(key) {
            return Arc::clone(&self.other);
        }
        Arc::clone(series.entry(key.clone()).or_default())
    }

    fn sorted(&self, labels: impl Fn(&K) -> Labels) -> Vec<(Labels, Arc<CallCounters>)> {
        let mut res: Vec<(Labels, Arc<CallCounters>)> =
            self.series.read().iter().map(|(key, counters)| (labels(key), Arc::clone(counters))).collect();
        res.sort_by(|left, right| left.0.cmp(&right.0));
        res
    }
}

/// Writes the metrics `mcp_gateway_KIND_…` of these series.
fn write_family(
    page: &mut Page,
    kind: &str,
    series: &[(Labels, Arc<CallCounters>)],
    other: (&Labels, &Arc<CallCounters>),
) {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let all: Vec<(Vec<(&str, &str)>, &CallCounters)> = series
        .iter()
        .map(|(labels, counters)| (labels, counters))
        .chain([other])
        .filter(|(_, counters)| !counters.is_unused())
        .map(|(labels, counters)| {
            (labels.iter().map(|(key, value)| (*key, value.as_str())).collect(), &**counters)
        })
        .collect();
    let name = format!("mcp_gateway_{kind}_calls_total");
    page.family(&name, "counter", &format!("Calls that ended, by {kind} and outcome."));
    for (labels, counters) in &all {
        for (outcome, count) in CallOutcome::ALL.iter().zip(&counters.calls).filter(|it| load(it.1) > 0.0) {
            page.sample(&name, &[labels, &[("outcome", outcome.as_str())][..]].concat(), load(count));
        }
    }
    let name = format!("mcp_gateway_{kind}_seconds_total");
    page.family(&name, "counter", &format!("Time that calls took, by {kind}."));
    for (labels, counters) in &all {
        page.sample(&name, labels, load(&counters.microseconds) / 1e6);
    }
    let name = format!("mcp_gateway_{kind}_bytes_total");
    page.family(&name, "counter", &format!("Bytes of parameters and results, by {kind}."));
    for (labels, counters) in &all {
        for (direction, count) in [("request", &counters.request_bytes), ("result", &counters.result_bytes)] {
            page.sample(&name, &[labels, &[("direction", direction)][..]].concat(), load(count));
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::ServerId;

    use super::*;

    fn call(outcome: CallOutcome) -> EndedCall {
        EndedCall { outcome, took: Duration::from_millis(250), request_bytes: 3, result_bytes: 5 }
    }

    fn tool(server: &str, name: &str) -> Target {
        Target { server: ServerId::parse(server).unwrap(), name: name.to_owned() }
    }

    fn page(series: &CallSeries) -> String {
        let mut page = Page::default();
        series.write_to(&mut page);
        page.into_text()
    }

    #[test]
    fn calls_are_counted_by_tool_and_by_client() {
        let series = CallSeries::default();
        series.of_tool(&tool("a", "a__x")).count(call(CallOutcome::Success));
        series.of_tool(&tool("a", "a__x")).count(call(CallOutcome::ToolError));
        series.count_client(&Principal::named("ann"), call(CallOutcome::Cancelled));
        series.count_client(&Principal::anonymous(), call(CallOutcome::Error));
        // A tool that was never called has no series.
        series.of_tool(&tool("a", "a__y"));
        let page = page(&series);
        for line in [
            r#"mcp_gateway_tool_calls_total{server="a",tool="a__x",outcome="success"} 1"#,
            r#"mcp_gateway_tool_calls_total{server="a",tool="a__x",outcome="tool_error"} 1"#,
            r#"mcp_gateway_tool_seconds_total{server="a",tool="a__x"} 0.5"#,
            r#"mcp_gateway_tool_bytes_total{server="a",tool="a__x",direction="request"} 6"#,
            r#"mcp_gateway_tool_bytes_total{server="a",tool="a__x",direction="result"} 10"#,
            r#"mcp_gateway_token_calls_total{token="ann",outcome="cancelled"} 1"#,
            r#"mcp_gateway_token_calls_total{token="",outcome="error"} 1"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in {page}");
        }
        assert!(!page.contains("a__y") && !page.contains("other"), "{page}");
    }

    #[test]
    fn tools_and_clients_beyond_the_limit_share_a_series() {
        let series = CallSeries::default();
        for number in 0..MAX_SERIES + 3 {
            series.of_tool(&tool("a", &format!("t{number}"))).count(call(CallOutcome::Success));
            series.count_client(&Principal::named(&format!("c{number}")), call(CallOutcome::Success));
        }
        // A token of this name does not make a second series with the same labels.
        series.count_client(&Principal::named("other"), call(CallOutcome::Success));
        // Known ones keep their series.
        series.of_tool(&tool("a", "t0")).count(call(CallOutcome::Success));
        let page = page(&series);
        let lines = |start: &str| page.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(lines("mcp_gateway_tool_calls_total{"), MAX_SERIES + 1);
        assert_eq!(lines("mcp_gateway_token_calls_total{"), MAX_SERIES + 1);
        for line in [
            r#"mcp_gateway_tool_calls_total{server="",tool="other",outcome="success"} 3"#,
            r#"mcp_gateway_tool_calls_total{server="a",tool="t0",outcome="success"} 2"#,
            r#"mcp_gateway_token_calls_total{token="other",outcome="success"} 4"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line}");
        }
    }
}
