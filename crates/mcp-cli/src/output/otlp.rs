//! The export of traces and metrics to an OpenTelemetry collector (`--otlp`), one for the process.

use mcp_host_runtime::otel::{Collector, Export, export};
use metrics::Recorder;
use parking_lot::Mutex;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};
use url::Url;

use crate::output::error_chain;

/// The variables that choose the protocol; only [`PROTOCOL`] is supported.
const PROTOCOL_VARIABLES: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
];

const PROTOCOL: &str = "http/protobuf";

/// What is exported, and to which collector.
#[derive(Debug, Clone)]
pub(crate) struct OtlpOptions {
    /// The base URL of the collector; `None`: that of the variables of OpenTelemetry, else the local one.
    pub(crate) url: Option<Url>,
    /// Whether spans contain the arguments and results of calls.
    pub(crate) contents: bool,
}

/// An export, and what it contains.
struct OtlpExport {
    export: Export,
    contents: bool,
}

static EXPORT: Mutex<Option<OtlpExport>> = Mutex::new(None);

/// Starts the export. Called once, before the log starts. Fails with a message if the variables of OpenTelemetry
/// ask for what is not supported.
pub(crate) fn start(options: OtlpOptions) -> Result<(), String> {
    for name in PROTOCOL_VARIABLES {
        match std::env::var(name) {
            Ok(value) if !value.is_empty() && value != PROTOCOL => {
                return Err(format!(
                    "{name} must be `{PROTOCOL}` for --otlp, the only protocol that is supported"
                ));
            }
            _ => {}
        }
    }
    let mut collector = Collector::for_service("mcp-host");
    collector.endpoint = options.url.map(String::from);
    let export = export(collector).map_err(|error| error_chain(&error))?;
    *EXPORT.lock() = Some(OtlpExport { export, contents: options.contents });
    Ok(())
}

/// Whether spans contain the arguments and results of calls.
pub(crate) fn records_contents() -> bool {
    EXPORT.lock().as_ref().is_some_and(|running| running.contents)
}

/// The layer that exports the spans of this workspace; `None` without an export.
pub(crate) fn layer() -> Option<Box<dyn Layer<Registry> + Send + Sync>> {
    let running = EXPORT.lock();
    let layer = running.as_ref()?.export.layer();
    Some(layer.with_filter(filter_fn(is_exported)).boxed())
}

/// Spans, not events: messages of events may be long, and the log has them.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && *metadata.level() <= LevelFilter::INFO && metadata.target().starts_with("mcp_host_")
}

/// The recorder that exports metrics; `None` without an export.
pub(crate) fn recorder() -> Option<impl Recorder + Send + Sync + use<>> {
    EXPORT.lock().as_ref().map(|running| running.export.recorder())
}

/// Makes the export the recorder of the process, if there is one.
pub(crate) fn install_recorder() {
    if let Some(recorder) = recorder() {
        // Fails only if there is one.
        let _ = metrics::set_global_recorder(recorder);
        mcp_host_runtime::metrics::describe();
        mcp_host_gateway::metrics::describe();
    }
}

/// Sends the rest and ends the export. Waits for a limited time. Returns a message if something could not be sent.
pub(crate) fn finish() -> Option<String> {
    let running = EXPORT.lock().take()?;
    running.export.shutdown().err().map(|error| error_chain(&error))
}
