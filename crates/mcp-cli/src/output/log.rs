//! The log on standard error: that of `--verbose`, and that of `serve`.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use clap::ValueEnum;
use mcp_host_config::Colour;
use mcp_host_gateway::internal::{LineTarget, LineWriter};
use serde_json::json;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::output::{otlp, sanitize};

/// The target of the events that an operator of `serve` must know.
pub(crate) const OPERATOR: &str = "operator";

/// The variable with the filter of the log of `serve`.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// The filter of the log of `--verbose`. Other libraries log too much, and may log messages of servers.
const VERBOSE_FILTER: &str =
    "warn,mcp_host_runtime=debug,mcp_host_transport=debug,mcp_host_gateway=debug,operator=debug,rmcp=warn";

/// How long the end of the program waits for the rest of the log.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The writer of the log of `serve`.
static WRITER: OnceLock<LineWriter> = OnceLock::new();

/// The least important events that `serve` logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevelName {
    /// What needs repair
    Error,
    /// Also what may need attention: servers that are down, withheld tools, refused files and tokens
    Warn,
    /// Also what changed: servers that are up, applied files
    Info,
    /// Also each call, without its content
    Debug,
    /// Everything
    Trace,
}

/// The format of the log of `serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatName {
    /// Lines for people
    Text,
    /// One JSON object per line
    Json,
}

impl LogLevelName {
    /// The filter. The libraries report the state of servers too, so by default only their errors are logged.
    fn filter(self) -> &'static str {
        match self {
            LogLevelName::Error => "error",
            LogLevelName::Warn => {
                "warn,mcp_host_runtime=error,mcp_host_transport=error,mcp_server=off,operator=warn"
            }
            LogLevelName::Info => {
                "warn,mcp_host_runtime=error,mcp_host_transport=error,mcp_server=off,operator=info"
            }
            LogLevelName::Debug => VERBOSE_FILTER,
            LogLevelName::Trace => "trace",
        }
    }
}

/// Starts the log of `--verbose`. Called once.
pub(crate) fn start_verbose(colour: Colour) {
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(move || SanitizedStderr(colour))
        .with_ansi(colour == Colour::Always)
        // By default a failed write is reported on standard error, which panics if standard error is closed.
        .log_internal_errors(false)
        .with_filter(EnvFilter::new(VERBOSE_FILTER));
    start(Some(layer.boxed()));
}

/// Starts the export of traces without a log. Called once.
pub(crate) fn start_silent() {
    start(None);
}

/// Starts the log and the export of traces, those that there are.
fn start(log: Option<Box<dyn Layer<Registry> + Send + Sync>>) {
    let layers: Vec<_> = log.into_iter().chain(otlp::layer()).collect();
    tracing_subscriber::registry().with(layers).init();
}

/// Starts the log of `serve`. Called once. Without a level, the filter is that of the variable `RUST_LOG`,
/// else `default`.
pub(crate) fn start_serving(
    level: Option<LogLevelName>,
    default: LogLevelName,
    format: LogFormatName,
    colour: Colour,
) -> Result<(), String> {
    let filter = match (level, std::env::var(FILTER_VARIABLE)) {
        (None, Ok(text)) if !text.trim().is_empty() => EnvFilter::try_new(&text)
            .map_err(|error| format!("the variable {FILTER_VARIABLE} is not a filter: {error}"))?,
        (level, _) => EnvFilter::new(level.unwrap_or(default).filter()),
    };
    let target = StandardError { colour, format };
    let writer = LineWriter::start(target).map_err(|error| format!("cannot start the log: {error}"))?;
    let writer = QueuedLines { writer: WRITER.get_or_init(|| writer).clone(), colour, format };
    let layer = tracing_subscriber::fmt::layer().log_internal_errors(false).with_writer(writer);
    let layer = match format {
        LogFormatName::Json => layer
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_ansi(false)
            .boxed(),
        LogFormatName::Text => layer.with_ansi(colour == Colour::Always).boxed(),
    };
    start(Some(layer.with_filter(filter_fn(is_safe)).with_filter(filter).boxed()));
    Ok(())
}

/// Waits, for a limited time, until the log of `serve` is written.
pub(crate) fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush(FLUSH_TIMEOUT);
    }
}

/// Whether an event may be logged. Below warnings, other libraries log headers, which contain tokens.
fn is_safe(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= LevelFilter::WARN
        || metadata.target() == OPERATOR
        || metadata.target().starts_with("mcp_")
}

/// Standard error, with every write sanitized: log messages may contain text of a server.
struct SanitizedStderr(Colour);

impl Write for SanitizedStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = sanitize::for_terminal(&String::from_utf8_lossy(bytes), self.0);
        io::stderr().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Queues events for standard error, so that a reader that stops blocks no request.
struct QueuedLines {
    writer: LineWriter,
    colour: Colour,
    format: LogFormatName,
}

impl<'a> MakeWriter<'a> for QueuedLines {
    type Writer = &'a QueuedLines;

    fn make_writer(&'a self) -> &'a QueuedLines {
        self
    }
}

impl Write for &QueuedLines {
    /// Receives one event.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = match self.format {
            LogFormatName::Json => sanitize::json(&text),
            LogFormatName::Text => sanitize::for_terminal(&text, self.colour),
        };
        self.writer.write(text.into_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error as the target of the log.
struct StandardError {
    colour: Colour,
    format: LogFormatName,
}

impl LineTarget for StandardError {
    fn open(&mut self) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(io::stderr()))
    }

    fn drop_notice(&self, lines: u64) -> String {
        let message = format!("{lines} lines of the log were dropped: standard error was not read in time");
        match self.format {
            LogFormatName::Json => {
                let level = "WARN";
                format!("{}\n", json!({"level": level, "target": OPERATOR, "message": message}))
            }
            LogFormatName::Text => sanitize::for_terminal(&format!(" WARN {message}\n"), self.colour),
        }
    }

    /// The program also runs without standard error.
    fn on_error(&self, _error: &io::Error) {}
}
