//! What the host counts while it serves, for `/metrics`: the recorder of the `metrics` facade, and its text.

use std::convert::Infallible;
use std::time::Duration;

use mcp_gateway::MoreMetrics;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Between which durations calls are told apart, in seconds.
const DURATIONS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// How often what was measured is put into its place, so that it does not gather where nobody asks.
const UPKEEP: Duration = Duration::from_secs(5);

/// The recorder of this process.
pub(crate) struct Counted(PrometheusHandle);

impl Counted {
    /// Counts from now on; `None` where something else counts in this process already.
    pub(crate) fn begin() -> Option<Counted> {
        let durations = Matcher::Full(mcp_host::metrics::CALL_DURATION.to_owned());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(durations, &DURATIONS);
        let recorder = builder.expect("there are buckets").build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        mcp_host::metrics::describe();
        Some(Counted(handle))
    }

    /// What was counted so far.
    pub(crate) fn page(&self) -> MoreMetrics {
        let handle = self.0.clone();
        MoreMetrics::new(move || handle.render())
    }

    /// Keeps it in order.
    pub(crate) async fn keep(&self) -> Infallible {
        loop {
            tokio::time::sleep(UPKEEP).await;
            self.0.run_upkeep();
        }
    }
}
