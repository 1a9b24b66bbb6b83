//! Counters of requests, responses and bytes. All label values are known in advance; none contains text of a client
//! or server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::metrics::prometheus::Page;

/// Methods with a label of their own; all others are `other`.
const METHODS: [&str; 23] = [
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
    "skills/list",
    "skills/get",
    "resources/directory/read",
    "tasks/get",
    "tasks/cancel",
    "tasks/update",
    "tasks/result",
    "subscriptions/listen",
    "logging/setLevel",
    "server/discover",
    "initialize",
    "ping",
    "other",
];

/// Statuses with a label of their own. All others are counted as the last one, 0.
const STATUSES: [u16; 15] = [200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 413, 415, 429, 503, 0];

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
    /// The request was dropped while it was handled.
    Cancelled,
}

impl Outcome {
    /// All outcomes. Each is at the index `outcome as usize`.
    const ALL: [Outcome; 3] = [Outcome::Success, Outcome::Error, Outcome::Cancelled];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Error => "error",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// The counters of a gateway since its start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: [[AtomicU64; Outcome::ALL.len()]; METHODS.len()],
    /// One counter per bucket; the last one is for longer durations.
    durations: [AtomicU64; DURATIONS.len() + 1],
    microseconds: AtomicU64,
    responses: [AtomicU64; STATUSES.len()],
    received: AtomicU64,
    sent: AtomicU64,
}

impl Counters {
    /// Counts a request when the result is dropped.
    pub(crate) fn request(self: &Arc<Counters>, method: &str) -> CountedRequest {
        CountedRequest {
            counters: Arc::clone(self),
            method: METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1),
            start: Instant::now(),
            outcome: Outcome::Error,
        }
    }

    fn request_ended(&self, method: usize, outcome: Outcome, took: Duration) {
        self.requests[method][outcome as usize].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = DURATIONS.iter().position(|limit| micros <= *limit).unwrap_or(DURATIONS.len());
        self.durations[bucket].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts an HTTP response that started.
    pub(crate) fn response_started(&self, status: u16) {
        let at = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
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

    /// Writes all counters. Labels that never occurred are left out.
    pub(crate) fn write_to(&self, page: &mut Page) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let name = "mcp_gateway_requests_total";
        page.family(name, "counter", "Requests that ended, by method and outcome.");
        for (method, outcomes) in METHODS.iter().zip(&self.requests) {
            for (outcome, count) in Outcome::ALL.iter().zip(outcomes).filter(|(_, count)| load(count) > 0) {
                page.sample(name, &[("method", method), ("outcome", outcome.as_str())], load(count) as f64);
            }
        }
        let name = "mcp_gateway_request_duration_seconds";
        page.family(name, "histogram", "Time from the start of a request to its end.");
        let bucket = "mcp_gateway_request_duration_seconds_bucket";
        let mut total = 0;
        for (limit, count) in DURATIONS.iter().zip(&self.durations) {
            total += load(count);
            page.sample(bucket, &[("le", &(*limit as f64 / 1e6).to_string())], total as f64);
        }
        total += load(&self.durations[DURATIONS.len()]);
        page.sample(bucket, &[("le", "+Inf")], total as f64);
        let seconds = load(&self.microseconds) as f64 / 1e6;
        page.sample("mcp_gateway_request_duration_seconds_sum", &[], seconds);
        page.sample("mcp_gateway_request_duration_seconds_count", &[], total as f64);
        let name = "mcp_gateway_responses_total";
        page.family(name, "counter", "HTTP responses, by status.");
        for (status, count) in STATUSES.iter().zip(&self.responses).filter(|(_, count)| load(count) > 0) {
            let status = if *status == 0 { "other".to_owned() } else { status.to_string() };
            page.sample(name, &[("status", &status)], load(count) as f64);
        }
        for (name, help, count) in [
            ("mcp_gateway_received_bytes_total", "Bytes received over HTTP connections.", &self.received),
            ("mcp_gateway_sent_bytes_total", "Bytes sent over HTTP connections.", &self.sent),
        ] {
            page.family(name, "counter", help).sample(name, &[], load(count) as f64);
        }
    }
}

/// A request that a client sent. It is counted once, when this is dropped: as an error if it was not [begun](Self::begin).
#[derive(Debug)]
pub(crate) struct CountedRequest {
    counters: Arc<Counters>,
    /// The index in [`METHODS`].
    method: usize,
    start: Instant,
    outcome: Outcome,
}

impl CountedRequest {
    /// Notes that handling begins. From now on the request is cancelled if it has no result.
    pub(crate) fn begin(&mut self) {
        self.outcome = Outcome::Cancelled;
    }

    /// Notes the result of the request.
    pub(crate) fn end<T, E>(mut self, result: &Result<T, E>) {
        self.outcome = if result.is_ok() { Outcome::Success } else { Outcome::Error };
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.counters.request_ended(self.method, self.outcome, self.start.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn label_values_are_fixed() {
        let counters: Arc<Counters> = Arc::default();
        let request = counters.request("tools/call");
        tokio::time::advance(Duration::from_micros(250)).await;
        request.end(&Ok::<(), ()>(()));
        let mut request = counters.request("tools/call");
        request.begin();
        tokio::time::advance(Duration::from_secs(100)).await;
        drop(request);
        drop(counters.request("x\"y"));
        counters.response_started(200);
        counters.response_started(599);
        counters.bytes_received(3);
        let mut page = Page::default();
        counters.write_to(&mut page);
        let page = page.into_text();
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
            assert!(page.lines().any(|found| found == line), "{line} in {page}");
        }
        assert!(!page.contains("x\"y"));
    }
}
