//! Metrics of the host in the Prometheus text format, for `/metrics`.

use std::convert::Infallible;
use std::time::Duration;

use mcp_host_gateway::ExtraMetrics;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// The histogram buckets of call durations, in seconds.
const DURATION_BUCKETS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// How often samples are aggregated, so that they do not accumulate between scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The metrics recorder of this process.
pub(crate) struct HostMetrics(PrometheusHandle);

impl HostMetrics {
    /// Installs the recorder; `None` if the process already has one.
    pub(crate) fn install() -> Option<HostMetrics> {
        let durations = Matcher::Full(mcp_host_runtime::metrics::CALL_DURATION.to_owned());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(durations, &DURATION_BUCKETS);
        let recorder = builder.expect("the buckets are not empty").build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        mcp_host_runtime::metrics::describe();
        Some(HostMetrics(handle))
    }

    /// The metrics text for the gateway.
    pub(crate) fn text(&self) -> ExtraMetrics {
        let handle = self.0.clone();
        ExtraMetrics::new(move || handle.render())
    }

    /// Aggregates samples periodically. Never returns.
    pub(crate) async fn run_upkeep(&self) -> Infallible {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            self.0.run_upkeep();
        }
    }
}
