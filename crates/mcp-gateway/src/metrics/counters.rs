//! Counters of requests, responses and bytes. All label values are known in advance; none contains text of a client
//! or server.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_host_model::{Method, MethodName};
use metrics::{Counter, Histogram, counter, histogram};
use tokio::time::Instant;

use crate::metrics::{RECEIVED_BYTES, REQUEST_DURATION, REQUESTS, RESPONSES, SENT_BYTES};

/// Methods with a label of their own; all others are `other`.
const METHODS: [Method; 22] = [
    Method::CallTool,
    Method::ListTools,
    Method::GetPrompt,
    Method::ListPrompts,
    Method::ReadResource,
    Method::ListResources,
    Method::ListResourceTemplates,
    Method::Subscribe,
    Method::Unsubscribe,
    Method::Complete,
    Method::ListSkills,
    Method::GetSkill,
    Method::ReadDirectory,
    Method::GetTask,
    Method::CancelTask,
    Method::UpdateTask,
    Method::GetTaskResult,
    Method::Listen,
    Method::SetLevel,
    Method::Discover,
    Method::Initialize,
    Method::Ping,
];

/// Statuses with a label of their own. All others are counted as the last one, 0.
const STATUSES: [u16; 15] = [200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 413, 415, 429, 503, 0];

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Error,
    /// The request was dropped while it was handled.
    Cancelled,
}

impl Outcome {
    const COUNT: usize = Outcome::Cancelled as usize + 1;

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Error => "error",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// The counters of a gateway. Those with labels are registered at their first use.
#[derive(Debug)]
pub(crate) struct Counters {
    /// By the index in [`METHODS`]; the last ones are for other methods.
    requests: [[OnceLock<Counter>; Outcome::COUNT]; METHODS.len() + 1],
    durations: Histogram,
    responses: [OnceLock<Counter>; STATUSES.len()],
    received: Counter,
    sent: Counter,
}

impl Counters {
    /// Counters at the recorder of this process.
    pub(crate) fn new() -> Counters {
        Counters {
            requests: Default::default(),
            durations: histogram!(REQUEST_DURATION),
            responses: Default::default(),
            received: counter!(RECEIVED_BYTES),
            sent: counter!(SENT_BYTES),
        }
    }

    /// Counts a request when the result is dropped.
    pub(crate) fn request(self: &Arc<Counters>, method: &MethodName) -> CountedRequest {
        CountedRequest {
            counters: Arc::clone(self),
            method: METHODS.iter().position(|known| *method == *known).unwrap_or(METHODS.len()),
            start: Instant::now(),
            outcome: Outcome::Error,
        }
    }

    fn request_ended(&self, method: usize, outcome: Outcome, took: Duration) {
        let label = METHODS.get(method).map_or("other", |it| it.as_str());
        let requests = || counter!(REQUESTS, "method" => label, "outcome" => outcome.as_str());
        self.requests[method][outcome as usize].get_or_init(requests).increment(1);
        self.durations.record(took.as_secs_f64());
    }

    /// Counts an HTTP response that started.
    pub(crate) fn response_started(&self, status: u16) {
        let at = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        let responses = || match STATUSES[at] {
            0 => counter!(RESPONSES, "status" => "other"),
            status => counter!(RESPONSES, "status" => status.to_string()),
        };
        self.responses[at].get_or_init(responses).increment(1);
    }

    /// Counts bytes that were received over HTTP.
    pub(crate) fn bytes_received(&self, bytes: usize) {
        self.received.increment(bytes as u64);
    }

    /// Counts bytes that were sent over HTTP.
    pub(crate) fn bytes_sent(&self, bytes: usize) {
        self.sent.increment(bytes as u64);
    }
}

/// A request that a client sent. It is counted once, when this is dropped: as an error if it was not
/// [begun](Self::begin).
#[derive(Debug)]
pub(crate) struct CountedRequest {
    counters: Arc<Counters>,
    /// The index in [`Counters::requests`].
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
    use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

    use super::*;
    use crate::metrics::REQUEST_DURATION_BUCKETS;

    #[tokio::test(start_paused = true)]
    async fn label_values_are_fixed() {
        let durations = Matcher::Full(REQUEST_DURATION.to_owned());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(durations, &REQUEST_DURATION_BUCKETS);
        let recorder = builder.unwrap().build_recorder();
        let _guard = metrics::set_default_local_recorder(&recorder);
        let counters = Arc::new(Counters::new());
        let request = counters.request(&Method::CallTool.into());
        tokio::time::advance(Duration::from_micros(250)).await;
        request.end(&Ok::<(), ()>(()));
        let mut request = counters.request(&Method::CallTool.into());
        request.begin();
        tokio::time::advance(Duration::from_secs(100)).await;
        drop(request);
        drop(counters.request(&"x\"y".into()));
        counters.response_started(200);
        counters.response_started(599);
        counters.bytes_received(3);
        let page = recorder.handle().render();
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
