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

/// The outcome of a request. The error of a tool is a success here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Success,
    Error,
    /// The request was dropped while it was handled.
    Cancelled,
}

impl RequestOutcome {
    const COUNT: usize = RequestOutcome::Cancelled as usize + 1;

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RequestOutcome::Success => "success",
            RequestOutcome::Error => "error",
            RequestOutcome::Cancelled => "cancelled",
        }
    }
}

/// The counters of requests, responses and bytes. Those with labels are registered at their first use.
#[derive(Debug)]
pub(crate) struct Counters {
    /// The counters of requests, by the index of the method in [`METHODS`] and by outcome. The last row is for other
    /// methods.
    requests: [[OnceLock<Counter>; RequestOutcome::COUNT]; METHODS.len() + 1],
    durations: Histogram,
    responses: [OnceLock<Counter>; STATUSES.len()],
    received: Counter,
    sent: Counter,
}

impl Counters {
    /// Registers the counters at the recorder of this process.
    pub(crate) fn new() -> Counters {
        Counters {
            requests: Default::default(),
            durations: histogram!(REQUEST_DURATION),
            responses: Default::default(),
            received: counter!(RECEIVED_BYTES),
            sent: counter!(SENT_BYTES),
        }
    }

    /// Starts a request. It is counted when the returned guard is dropped.
    pub(crate) fn start_request(self: &Arc<Counters>, method: &MethodName) -> CountedRequest {
        CountedRequest {
            counters: Arc::clone(self),
            method: METHODS.iter().position(|known| *method == *known).unwrap_or(METHODS.len()),
            start: Instant::now(),
            outcome: RequestOutcome::Error,
        }
    }

    /// Counts a request. `method` is an index into [`METHODS`], or their number for any other method.
    fn count_request(&self, method: usize, outcome: RequestOutcome, duration: Duration) {
        let label = METHODS.get(method).map_or("other", |it| it.as_str());
        let requests = || counter!(REQUESTS, "method" => label, "outcome" => outcome.as_str());
        self.requests[method][outcome as usize].get_or_init(requests).increment(1);
        self.durations.record(duration.as_secs_f64());
    }

    /// Counts an HTTP response that started.
    pub(crate) fn count_response(&self, status: u16) {
        let at = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        let responses = || match STATUSES[at] {
            0 => counter!(RESPONSES, "status" => "other"),
            status => counter!(RESPONSES, "status" => status.to_string()),
        };
        self.responses[at].get_or_init(responses).increment(1);
    }

    /// Counts bytes that were received over HTTP.
    pub(crate) fn count_received_bytes(&self, bytes: usize) {
        self.received.increment(bytes as u64);
    }

    /// Counts bytes that were sent over HTTP.
    pub(crate) fn count_sent_bytes(&self, bytes: usize) {
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
    outcome: RequestOutcome,
}

impl CountedRequest {
    /// Notes that handling begins. A drop without a result then counts as cancelled.
    pub(crate) fn begin(&mut self) {
        self.outcome = RequestOutcome::Cancelled;
    }

    /// Notes the result of the request.
    pub(crate) fn end<T, E>(mut self, result: &Result<T, E>) {
        self.outcome = if result.is_ok() { RequestOutcome::Success } else { RequestOutcome::Error };
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.counters.count_request(self.method, self.outcome, self.start.elapsed());
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
        let request = counters.start_request(&Method::CallTool.into());
        tokio::time::advance(Duration::from_micros(250)).await;
        request.end(&Ok::<(), ()>(()));
        let mut request = counters.start_request(&Method::CallTool.into());
        request.begin();
        tokio::time::advance(Duration::from_secs(100)).await;
        drop(request);
        drop(counters.start_request(&"x\"y".into()));
        counters.count_response(200);
        counters.count_response(599);
        counters.count_received_bytes(3);
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
