//! Export of traces and [`metrics`](crate::telemetry::metrics) to an OpenTelemetry collector, and propagation of the
//! trace context to servers.
//!
//! Requires the feature `otel`. Nothing is installed implicitly: a program has one subscriber and one recorder, and it
//! composes them itself.
//!
//! ```no_run
//! use tracing_subscriber::layer::SubscriberExt;
//! use tracing_subscriber::util::SubscriberInitExt;
//!
//! let export = mcp_host_runtime::otel::export(mcp_host_runtime::otel::Collector::for_service("my-agent"))?;
//! tracing_subscriber::registry().with(export.layer()).init();
//! metrics::set_global_recorder(export.recorder())?;
//! mcp_host_runtime::metrics::describe();
//! // … at the end of the program, outside of any task:
//! export.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the layer installed, a call's span is sent as `traceparent` and `tracestate` in the `_meta` of its
//! request, unless [`CallContext::trace`](mcp_host_transport::CallContext::trace) or
//! [`TelemetryOptions::trace`](crate::TelemetryOptions::trace) is set. Baggage is not sent: it may contain
//! anything, and servers are third parties.
//!
//! Spans have the names and attributes of OpenTelemetry's convention for MCP: a request that a server receives is
//! `tools/call NAME` of the kind client, a request that the gateway handles one of the kind server. Attributes that the
//! convention does not have begin with `mcp_host.`. The histograms `mcp.client.operation.duration` and
//! `mcp.server.operation.duration` count all requests, sampled or not.

mod convention;
mod durations;

use std::error::Error;
use std::time::Duration;

/// For [`Export::recorder`].
#[doc(no_inline)]
pub use metrics;
/// For [`Export::layer`].
#[doc(no_inline)]
pub use {tracing, tracing_subscriber};

use mcp_host_model::TraceContext;
use metrics::Recorder;
use metrics_opentelemetry::{OpenTelemetryMetrics, OpenTelemetryRecorder};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::telemetry::metrics::CALL_DURATION;
use convention::{ConventionExporter, LastError};
use durations::DurationLayer;

/// The variable that names the service; it has precedence over the program's own name.
const SERVICE_VARIABLE: &str = "OTEL_SERVICE_NAME";

/// The maximum time in which pending data is sent at the end, for traces and for metrics.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The name of the instrumentation scope.
const SCOPE: &str = "mcp-host";

/// The histogram bounds of call durations, in seconds.
const DURATION_BOUNDS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The collector of traces and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collector {
    /// The base URL of an OTLP/HTTP collector; `/v1/traces` and `/v1/metrics` are appended. `None`: the variables of
    /// OpenTelemetry (`OTEL_EXPORTER_OTLP_ENDPOINT` …), else `http://localhost:4318`.
    pub endpoint: Option<String>,
    /// The name of the program, sent as `service.name` unless the variable `OTEL_SERVICE_NAME` names another.
    pub service: String,
}

impl Collector {
    /// Creates the collector of the environment, for this service.
    pub fn for_service(service: impl Into<String>) -> Collector {
        Collector { endpoint: None, service: service.into() }
    }
}

/// The error of an export that could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The exporter rejected the configuration.
    #[error(
        "cannot export {what} to OpenTelemetry: look at the collector's address and OTEL_EXPORTER_OTLP_* variables"
    )]
    Exporter {
        /// `traces` or `metrics`.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Not everything could be sent.
    #[error("the last {what} could not be sent to the OpenTelemetry collector")]
    Unsent {
        /// `traces` or `metrics`.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A running export. Dropping it sends pending data and blocks, like [`Export::shutdown`].
#[derive(Debug)]
pub struct Export {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    last_error: LastError,
}

/// Sets up an export. It uses its own threads. `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` can be `none`.
///
/// TLS uses `ring`, unless the program has installed another provider for `rustls`.
pub fn export(collector: Collector) -> Result<Export, ExportError> {
    // Fails if the program has installed one, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Collector { endpoint, service } = collector;
    let resource = match std::env::var_os(SERVICE_VARIABLE) {
        Some(_) => Resource::builder().build(),
        None => Resource::builder().with_service_name(service).build(),
    };
    let failed = |what| move |source| ExportError::Exporter { what, source: Box::from(source) };
    let target = |path: &str| endpoint.as_ref().map(|it| format!("{}{path}", it.trim_end_matches('/')));
    let last_error = LastError::default();
    let mut traces = SdkTracerProvider::builder().with_resource(resource.clone());
    if !is_switched_off("OTEL_TRACES_EXPORTER") {
        let mut exporter = SpanExporter::builder().with_http();
        if let Some(target) = target("/v1/traces") {
            exporter = exporter.with_endpoint(target);
        }
        let exporter = exporter.build().map_err(failed("traces"))?;
        let last_error = LastError::clone(&last_error);
        traces = traces.with_batch_exporter(ConventionExporter { exporter, last_error });
    }
    let mut metrics = SdkMeterProvider::builder().with_resource(resource);
    if !is_switched_off("OTEL_METRICS_EXPORTER") {
        let mut exporter = MetricExporter::builder().with_http();
        if let Some(target) = target("/v1/metrics") {
            exporter = exporter.with_endpoint(target);
        }
        metrics = metrics.with_periodic_exporter(exporter.build().map_err(failed("metrics"))?);
    }
    Ok(Export { traces: traces.build(), metrics: metrics.build(), last_error })
}

/// Whether a variable of OpenTelemetry names no exporter. Others than OTLP do not exist here.
fn is_switched_off(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "none")
}

impl Export {
    /// Returns the layer for the program's `tracing` subscriber. It exports every span that it receives; filters are up
    /// to the program.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let spans = tracing_opentelemetry::layer()
            .with_tracer(self.traces.tracer(SCOPE))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_level(false);
        spans.and_then(DurationLayer::new(&self.metrics.meter(SCOPE)))
    }

    /// Returns the recorder for [`metrics`](crate::telemetry::metrics).
    pub fn recorder(&self) -> impl Recorder + Send + Sync + use<> {
        let mut recorder = OpenTelemetryRecorder::new(OpenTelemetryMetrics::new(self.metrics.meter(SCOPE)));
        recorder.set_histogram_bounds_mut([CALL_DURATION].into_iter(), &DURATION_BOUNDS);
        recorder
    }

    /// Sends pending data. Blocks until the collector has responded, so it must not run on a runtime thread.
    pub fn flush(&self) {
        let flushed = [self.traces.force_flush(), self.metrics.force_flush()];
        for error in flushed.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "OpenTelemetry: not everything could be sent");
        }
    }

    /// Sends pending data and ends the export, within a few seconds. Blocks like [`Export::flush`]. Fails if not
    /// everything could be sent.
    pub fn shutdown(self) -> Result<(), ExportError> {
        let unsent = |what| move |source: Box<dyn Error + Send + Sync>| ExportError::Unsent { what, source };
        let (traces, metrics) = self.end();
        if let Some(error) = self.last_error.lock().take() {
            return Err(unsent("traces")(error.into()));
        }
        traces.map_err(|error| unsent("traces")(error.into()))?;
        metrics.map_err(|error| unsent("metrics")(error.into()))
    }

    fn end(&self) -> (OTelSdkResult, OTelSdkResult) {
        // Both are ended, whatever happens to the first.
        (
            self.traces.shutdown_with_timeout(SHUTDOWN_TIMEOUT),
            self.metrics.shutdown_with_timeout(SHUTDOWN_TIMEOUT),
        )
    }
}

impl Drop for Export {
    /// Ends the export, if it has not ended.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The values of a trace context as OpenTelemetry reads them.
struct TraceValues<'a>(&'a TraceContext);

impl Extractor for TraceValues<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(self.0.traceparent()),
            "tracestate" => self.0.tracestate(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Makes a span that has not been entered a part of a trace that another program began. Does nothing if spans are not
/// exported.
pub fn set_parent(span: &tracing::Span, trace: &TraceContext) {
    let parent = TraceContextPropagator::new().extract(&TraceValues(trace));
    // Fails if no layer exports spans.
    let _ = span.set_parent(parent);
}

/// Returns the current trace: of the current `tracing` span, else of OpenTelemetry's current context. `None` if neither
/// is exported.
pub fn current_trace() -> Option<TraceContext> {
    let context = tracing::Span::current().context();
    trace_context(context.span().span_context())
        .or_else(|| trace_context(opentelemetry::Context::current().span().span_context()))
}

/// Converts a span context; `None` if it is invalid.
fn trace_context(span: &SpanContext) -> Option<TraceContext> {
    if !span.is_valid() {
        return None;
    }
    let (trace, own, flags) = (span.trace_id(), span.span_id(), span.trace_flags().to_u8());
    let state = span.trace_state().header();
    let parent = format!("00-{trace}-{own}-{flags:02x}");
    let state = Some(state.as_str()).filter(|it| !it.is_empty());
    // An invalid `tracestate` is dropped; `traceparent` remains.
    TraceContext::parse(&parent, state).or_else(|_| TraceContext::parse(&parent, None)).ok()
}
