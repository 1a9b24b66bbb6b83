//! The log that `--verbose` writes to standard error.

use std::io::{self, Write};

use mcp_config::Colour;
use tracing_subscriber::EnvFilter;

use crate::output::sanitize;

/// Which events are logged. Other libraries log too much, and may log messages of servers.
const FILTER: &str = "warn,mcp_host=debug,mcp_transport=debug,rmcp=warn";

/// Starts the log. Called once.
pub(crate) fn start(colour: Colour) {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(FILTER))
        .with_writer(move || SanitizedStderr(colour))
        .with_ansi(colour == Colour::Always)
        // By default a failed write is reported on standard error, which panics if standard error is closed.
        .log_internal_errors(false)
        .init();
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
