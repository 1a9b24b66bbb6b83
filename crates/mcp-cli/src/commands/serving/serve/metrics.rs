//! The metrics recorder of the process. Its page is part of `/metrics`.

use std::convert::Infallible;
use std::time::Duration;

use mcp_host_gateway::RecorderPage;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::layers::FanoutBuilder;

use super::process_metrics;
use crate::output::otlp;

/// The histogram buckets of the durations of calls to servers, in seconds.
const CALL_DURATION_BUCKETS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// How often samples are aggregated, so that they do not accumulate between scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The metrics recorder of this process.
pub(crate) struct MetricsRecorder(PrometheusHandle);

impl MetricsRecorder {
    /// Installs the recorder; `None` if the process already has one.
    pub(crate) fn install() -> Option<MetricsRecorder> {
        let name = |name: &str| Matcher::Full(name.to_owned());
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(name(mcp_host_runtime::metrics::CALL_DURATION), &CALL_DURATION_BUCKETS)
            .and_then(|builder| {
                let buckets = &mcp_host_gateway::metrics::REQUEST_DURATION_BUCKETS;
                builder.set_buckets_for_metric(name(mcp_host_gateway::metrics::REQUEST_DURATION), buckets)
            })
            .expect("the buckets are not empty")
            .build_recorder();
        let handle = recorder.handle();
        let installed = match otlp::recorder() {
            Some(exporter) => {
                let both = FanoutBuilder::default().add_recorder(recorder).add_recorder(exporter).build();
                metrics::set_global_recorder(both).is_ok()
            }
            None => metrics::set_global_recorder(recorder).is_ok(),
        };
        if !installed {
            return None;
        }
        mcp_host_runtime::metrics::describe();
        mcp_host_gateway::metrics::describe();
        Some(MetricsRecorder(handle))
    }

    /// The page for the gateway.
    pub(crate) fn page(&self) -> RecorderPage {
        let handle = self.0.clone();
        RecorderPage::new(move || handle.render() + &process_metrics::render())
    }

    /// Aggregates samples periodically. Never returns.
    pub(crate) async fn run_upkeep(&self) -> Infallible {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            self.0.run_upkeep();
        }
    }
}
