//! Counters of requests, responses and bytes. All label values are known in advance; none contains text of a client
//! or server.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Methods with a label of their own; all others are `other`.
const METHODS: [&str; 15] = [
    "tools/call",
    "tools/list",
    "prompts/get",
    "prompts/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "initialize",
    "ping",
    "other",
];

/// The outcomes of a request.
const OUTCOMES: [&str; 3] = ["success", "error", "cancelled"];

/// Statuses with a label of their own. All others are counted as the last one, 0.
const STATUSES: [u16; 14] = [200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 413, 415, 503, 0];

/// Upper bounds of the duration buckets in microseconds.
const DURATIONS: [u64; 14] = [
    100, 250, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 10_000_000,
    30_000_000, 60_000_000,
];

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Error,
    /// The request was dropped before it had a result.
    Cancelled,
}

/// The counters of a gateway since its start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: [[AtomicU64; OUTCOMES.len()]; METHODS.len()],
    /// One counter per bucket; the last one is for longer durations.
    durations: [AtomicU64; DURATIONS.len() + 1],
    microseconds: AtomicU64,
    responses: [AtomicU64; STATUSES.len()],
    received: AtomicU64,
    sent: AtomicU64,
}

impl Counters {
    /// Counts a request that ended.
    pub(crate) fn request_ended(&self, method: &str, outcome: Outcome, took: Duration) {
        let method = METHODS.iter().position(|it| *it == method).unwrap_or(METHODS.len() - 1);
        let outcome = match outcome {
            Outcome::Success => 0,
            Outcome::Error => 1,
            Outcome::Cancelled => 2,
        };
        self.requests[method][outcome].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = DURATIONS.iter().position(|it| micros <= *it).unwrap_or(DURATIONS.len());
        self.durations[bucket].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts an HTTP response that started.
    pub(crate) fn response_started(&self, status: u16) {
        let at = STATUSES.iter().position(|it| *it == status).unwrap_or(STATUSES.len() - 1);
        self.responses[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes that were received over HTTP.
    pub(crate) fn bytes_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that were sent over HTTP.
    pub(crate) fn bytes_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Writes all counters in the Prometheus text format. Labels that never occurred are left out.
    pub(crate) fn write_page(&self, res: &mut String) {
        let take = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let mut line =
            |text: std::fmt::Arguments<'_>| writeln!(res, "{text}").expect("a String takes everything");
        line(format_args!("# HELP mcp_gateway_requests_total Requests that ended, by method and outcome."));
        line(format_args!("# TYPE mcp_gateway_requests_total counter"));
        for (method, outcomes) in METHODS.iter().zip(&self.requests) {
            for (outcome, count) in OUTCOMES.iter().zip(outcomes).filter(|(_, it)| take(it) > 0) {
                let count = take(count);
                line(format_args!(
                    "mcp_gateway_requests_total{{method=\"{method}\",outcome=\"{outcome}\"}} {count}"
                ));
            }
        }
        line(format_args!("# HELP mcp_gateway_request_duration_seconds From a request to its end."));
        line(format_args!("# TYPE mcp_gateway_request_duration_seconds histogram"));
        let mut below = 0;
        for (limit, count) in DURATIONS.iter().zip(&self.durations) {
            below += take(count);
            let limit = *limit as f64 / 1e6;
            line(format_args!("mcp_gateway_request_duration_seconds_bucket{{le=\"{limit}\"}} {below}"));
        }
        let all = below + take(&self.durations[DURATIONS.len()]);
        line(format_args!("mcp_gateway_request_duration_seconds_bucket{{le=\"+Inf\"}} {all}"));
        let seconds = take(&self.microseconds) as f64 / 1e6;
        line(format_args!("mcp_gateway_request_duration_seconds_sum {seconds}"));
        line(format_args!("mcp_gateway_request_duration_seconds_count {all}"));
        line(format_args!("# HELP mcp_gateway_responses_total Responses over HTTP, by status."));
        line(format_args!("# TYPE mcp_gateway_responses_total counter"));
        for (status, count) in STATUSES.iter().zip(&self.responses).filter(|(_, it)| take(it) > 0) {
            let count = take(count);
            match status {
                0 => line(format_args!("mcp_gateway_responses_total{{status=\"other\"}} {count}")),
                status => line(format_args!("mcp_gateway_responses_total{{status=\"{status}\"}} {count}")),
            }
        }
        for (name, help, count) in [
            ("mcp_gateway_received_bytes_total", "Bytes that came in over connections.", &self.received),
            ("mcp_gateway_sent_bytes_total", "Bytes that went out over connections.", &self.sent),
        ] {
            let count = take(count);
            line(format_args!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_fixed() {
        let counters = Counters::default();
        counters.request_ended("tools/call", Outcome::Success, Duration::from_micros(250));
        counters.request_ended("tools/call", Outcome::Cancelled, Duration::from_secs(100));
        counters.request_ended("x\"y", Outcome::Error, Duration::ZERO);
        counters.response_started(200);
        counters.response_started(599);
        counters.bytes_received(3);
        let mut page = String::new();
        counters.write_page(&mut page);
        for line in [
            "mcp_gateway_requests_total{method=\"tools/call\",outcome=\"success\"} 1",
            "mcp_gateway_requests_total{method=\"tools/call\",outcome=\"cancelled\"} 1",
            "mcp_gateway_requests_total{method=\"other\",outcome=\"error\"} 1",
            "mcp_gateway_request_duration_seconds_bucket{le=\"0.0001\"} 1",
            "mcp_gateway_request_duration_seconds_bucket{le=\"0.00025\"} 2",
            "mcp_gateway_request_duration_seconds_bucket{le=\"60\"} 2",
            "mcp_gateway_request_duration_seconds_bucket{le=\"+Inf\"} 3",
            "mcp_gateway_request_duration_seconds_sum 100.00025",
            "mcp_gateway_request_duration_seconds_count 3",
            "mcp_gateway_responses_total{status=\"200\"} 1",
            "mcp_gateway_responses_total{status=\"other\"} 1",
            "mcp_gateway_received_bytes_total 3",
            "mcp_gateway_sent_bytes_total 0",
        ] {
            assert!(page.lines().any(|it| it == line), "{line} in {page}");
        }
        assert!(!page.contains("x\"y"));
    }
}
