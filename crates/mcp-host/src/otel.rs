//! OpenTelemetry: what the host says by `tracing` and [`metrics`](crate::metrics) goes to a collector, and the servers
//! are told which trace a call belongs to.
//!
//! Only with the feature `otel`. Nothing here is installed by itself: a program has one subscriber and one recorder,
//! and they are its own to put together.
//!
//! ```no_run
//! use tracing_subscriber::layer::SubscriberExt;
//! use tracing_subscriber::util::SubscriberInitExt;
//!
//! let export = mcp_host::otel::export(mcp_host::otel::Collector::named("my-agent"))?;
//! tracing_subscriber::registry().with(export.layer()).init();
//! metrics::set_global_recorder(export.recorder())?;
//! mcp_host::metrics::describe();
//! // … the program, and at its end, outside of any task:
//! export.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the layer in place a call's span goes into the `_meta` of its request as `traceparent` and `tracestate`, unless
//! [`ToolCall::trace`](crate::calls::ToolCall::trace) or [`HostOptions::trace`](crate::host::HostOptions::trace) says otherwise.
//! Baggage is not sent: it is whatever a program put there, and servers are others'.

use mcp_model::TraceContext;
use metrics_opentelemetry::{OpenTelemetryMetrics, OpenTelemetryRecorder};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::Subscriber;
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::registry::LookupSpan;

use crate::metrics::CALL_DURATION;

/// Who we are to OpenTelemetry.
const SCOPE: &str = "mcp-host";

/// Between which durations calls are told apart, in seconds.
const DURATIONS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Where traces and metrics go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    /// The collector's base URL, where it takes OTLP over HTTP: `/v1/traces` and `/v1/metrics` are put behind it. Where
    /// `None`, OpenTelemetry's own variables say it (`OTEL_EXPORTER_OTLP_ENDPOINT` and so on), else it is
    /// `http://localhost:4318`.
    pub endpoint: Option<String>,
    /// The name of the program, `service.name`.
    pub service: String,
}

impl Collector {
    /// The collector that the environment names, for a program of this name.
    pub fn for_service(service: impl Into<String>) -> Collector {
        Collector { endpoint: None, service: service.into() }
    }
}

/// Why nothing can be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The exporter could not be made of what is configured.
    #[error(
        "cannot export {what} to OpenTelemetry: look at the collector's address and OTEL_EXPORTER_OTLP_* variables"
    )]
    Exporter {
        /// `traces` or `metrics`.
        what: &'static str,
        /// Why not.
        #[source]
        source: ExporterBuildError,
    },
}

/// An export that is set up. Dropping it sends what is left and blocks until then, as [`Export::shutdown`] does.
#[derive(Debug)]
pub struct Export {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

/// Sets up an export. It works in threads of its own, from the first span or measurement on.
///
/// TLS to the collector is that of `ring`, unless the program has installed another provider for `rustls` before.
pub fn export(collector: Collector) -> Result<Export, ExportError> {
    // Fails when the program has one already, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Collector { endpoint, service } = collector;
    let resource = Resource::builder().with_service_name(service).build();
    let failed = |what| move |source| ExportError::Exporter { what, source };
    let place = |path: &str| endpoint.as_ref().map(|it| format!("{}{path}", it.trim_end_matches('/')));
    let mut spans = SpanExporter::builder().with_http();
    if let Some(place) = place("/v1/traces") {
        spans = spans.with_endpoint(place);
    }
    let mut measurements = MetricExporter::builder().with_http();
    if let Some(place) = place("/v1/metrics") {
        measurements = measurements.with_endpoint(place);
    }
    let spans = spans.build().map_err(failed("traces"))?;
    let measurements = measurements.build().map_err(failed("metrics"))?;
    Ok(Export {
        traces: SdkTracerProvider::builder()
            .with_batch_exporter(spans)
            .with_resource(resource.clone())
            .build(),
        metrics: SdkMeterProvider::builder()
            .with_periodic_exporter(measurements)
            .with_resource(resource)
            .build(),
    })
}

impl Export {
    /// What a program adds to its `tracing` subscriber. It takes every span it gets: a filter in front of it is the
    /// program's business.
    pub fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer().with_tracer(self.traces.tracer(SCOPE))
    }

    /// What a program installs as its recorder of [`metrics`](crate::metrics).
    pub fn recorder(&self) -> OpenTelemetryRecorder {
        let mut res = OpenTelemetryRecorder::new(OpenTelemetryMetrics::new(self.metrics.meter(SCOPE)));
        res.set_histogram_bounds_mut([CALL_DURATION].into_iter(), &DURATIONS);
        res
    }

    /// Sends what was not sent yet. Blocks until the collector has it, or has failed to take it, so it is not for the
    /// threads of a runtime.
    pub fn flush(&self) {
        let flushed = [self.traces.force_flush(), self.metrics.force_flush()];
        for error in flushed.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "OpenTelemetry: not everything could be sent");
        }
    }

    /// Sends what is left, and ends the export. Blocks likewise.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let ended = [self.traces.shutdown(), self.metrics.shutdown()];
        for error in ended.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "OpenTelemetry: not everything could be sent");
        }
    }
}

/// The trace that is under way here: the current `tracing` span's, else OpenTelemetry's own current one. `None` where
/// there is neither, or nobody exports it.
pub fn current_trace() -> Option<TraceContext> {
    let of_span = tracing::Span::current().context();
    of(of_span.span().span_context()).or_else(|| of(opentelemetry::Context::current().span().span_context()))
}

fn of(span: &SpanContext) -> Option<TraceContext> {
    if !span.is_valid() {
        return None;
    }
    let (trace, own, flags) = (span.trace_id(), span.span_id(), span.trace_flags().to_u8());
    let state = span.trace_state().header();
    let parent = format!("00-{trace}-{own}-{flags:02x}");
    let state = Some(state.as_str()).filter(|it| !it.is_empty());
    // A state that cannot be sent is left out: the trace goes on without it.
    TraceContext::parse(&parent, state).or_else(|_| TraceContext::parse(&parent, None)).ok()
}
